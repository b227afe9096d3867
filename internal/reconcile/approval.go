// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/pkg/gitwriter"
)

// ApprovalLasts is how long an approval counts that nobody uses: long enough for a
// review over a weekend, and no longer, because a plan that comes again later is
// another event.
const ApprovalLasts = 72 * time.Hour

// ApprovalFile is where an approval is committed in the definitions repository,
// below source.path. Its name has no ending that Flux would read.
func ApprovalFile(digest string) string { return ".renderer/approved/" + digest }

// ApprovalText is the content of an approval, in the state folder as in the definitions.
func ApprovalText(by string, now time.Time) []byte {
	return fmt.Appendf(nil, "by: %s\nat: %s\n", strings.Join(strings.Fields(by), " "), now.UTC().Format(time.RFC3339Nano))
}

// clockSkew is how far the clock of who approves may be ahead.
const clockSkew = 5 * time.Minute

// An approval releases one plan, once, within its time.
type approval struct {
	// id names this very approval: the plan's digest, and one of the text, so that the
	// same plan can be approved again. Empty where there is no approval.
	id string
	by string
	at time.Time // zero where the text does not say: then it does not count
}

// counts reports whether an approval is one of now.
func (a approval) counts(now time.Time) bool {
	return now.Before(a.at.Add(ApprovalLasts)) && a.at.Before(now.Add(clockSkew))
}

// parseApproval reads "key: value" lines; what else is in the file is for people.
func parseApproval(digest string, text []byte) approval {
	sum := sha256.Sum256(text)
	a := approval{id: digest + "/" + hex.EncodeToString(sum[:6]), by: "an operator"}
	for line := range bytes.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(string(line)), ":")
		switch value = strings.TrimSpace(value); key {
		case "by":
			a.by = oneLine(value)
		case "at":
			a.at, _ = time.Parse(time.RFC3339Nano, value) // zero on an error
		}
	}
	return a
}

// trailerApproved names the approval that a removal rests on.
const trailerApproved = "Approved"

// releasedBy says by whom or what a plan is released; empty while it is held. An
// approval is named by the commit that uses it, and counts once: what Git's history has
// is spent, whatever the state folder remembers.
func (r *Reconciler) releasedBy(pl *plan, record *HeldPlan, base *gitwriter.Snapshot) (string, error) {
	local, committed := r.heldFile.approval(record.Digest), r.approvalInSource(record.Digest)
	for _, given := range []struct {
		approval
		by, file string
	}{
		{local, local.by, ""},
		{committed, "a commit in the definitions repository", path.Join(r.cfg.Source.Path, ApprovalFile(record.Digest))},
	} {
		if given.id == "" || slices.Contains(r.held.Used, given.id) {
			continue
		}
		// What a pull request proposes a person looks at, however long that takes.
		if r.delivery == nil && (!given.counts(r.now()) || given.at.Before(r.held.Lapsed[record.Digest])) {
			record.ended = true
			continue
		}
		spent, err := r.spent(base, given.id, given.file)
		if err != nil {
			return "", err
		}
		if !spent {
			pl.approval = given.id
			return given.by, nil
		}
	}
	confirm := r.cfg.Prune.Confirm
	if confirm.Fetches > 0 && record.Fetches >= confirm.Fetches && r.now().Sub(record.Since) >= confirm.After {
		return fmt.Sprintf("%d agreeing fetches over %s", record.Fetches, r.now().Sub(record.Since).Round(time.Second)), nil
	}
	return "", nil
}

// approvalInSource is the one that was committed to the definitions, or none.
func (r *Reconciler) approvalInSource(digest string) approval {
	if r.sourceHead == nil {
		return approval{} // a preview of definitions from elsewhere
	}
	text, err := r.sourceHead.ReadFile(path.Join(r.cfg.Source.Path, ApprovalFile(digest)))
	if err != nil {
		return approval{}
	}
	return parseApproval(digest, text)
}

// lapse takes the approvals of a plan back that is not wanted any more, although it was
// not carried out: the source has recovered. When the same would go another time, that
// is another event, and somebody has to look again.
//
// One that is still to be merged is older than that then, and does not count either.
func (r *Reconciler) lapse(digest string, doc *heldDocument) error {
	if doc.Lapsed == nil {
		doc.Lapsed = map[string]time.Time{}
	}
	doc.Lapsed[digest] = r.now()
	if given := r.approvalInSource(digest); given.id != "" && !slices.Contains(doc.Used, given.id) {
		doc.Used = append(doc.Used, given.id)
	}
	return r.heldFile.use(digest)
}

// spent reports whether a commit of the target branch has used an approval already. It
// is asked only where a removal is held and an approval of it is there, and costs at
// most maxLookback commits, without their trees: what lies deeper is not found. Where
// definitions and manifests share the branch, the search ends where the file of the
// approval was not there yet.
func (r *Reconciler) spent(base *gitwriter.Snapshot, approval, file string) (bool, error) {
	if base.Commit() == nil {
		return false, nil
	}
	past := r.pastOf(base)
	seen := map[plumbing.Hash]bool{base.Hash(): true}
	for queue := []*gitwriter.Snapshot{base}; len(queue) > 0 && len(seen) <= maxLookback(); queue = queue[1:] {
		at := queue[0]
		if slices.Contains(trailersOf(at.Commit().Message)[trailerApproved], approval) {
			return true, nil
		}
		if file != "" && r.cfg.SameTree() && gone(at, file) {
			continue
		}
		for _, hash := range at.Commit().ParentHashes {
			if seen[hash] {
				continue
			}
			seen[hash] = true
			parent, err := past.at(hash)
			if err != nil {
				return false, err
			}
			if parent != nil {
				queue = append(queue, parent)
			}
		}
	}
	return false, nil
}
