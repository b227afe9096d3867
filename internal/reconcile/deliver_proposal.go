// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/pkg/gitwriter"
)

// Trailers of commits on branches of our own: what is proposed, and what it was
// proposed instead of. They tell whether a branch is still good without anything
// being remembered.
const (
	trailerProposal = "Proposal"
	trailerBase     = "Proposal-Base"
)

// A proposal is what one pull request should bring about.
type proposal struct {
	name    string // of the branch, below config.OwnBranches
	plans   []*plan
	commits []gitwriter.Commit
	wanted  string // digest of our folders as they should be
	base    string // digest of what the target branch has where the commits write
	// recorded: some of it rests on what inputs.lock on the target branch recorded,
	// which an open pull request may be ahead of.
	recorded bool
}

// proposals puts the plans' changes together for pull requests: each ResourceSet by
// itself, or all in one.
func (r *Reconciler) proposals(p *pass, base *gitwriter.Snapshot) ([]*proposal, error) {
	var changed []*plan
	for _, pl := range p.plans {
		if pl.changed() {
			changed = append(changed, pl)
		}
	}
	if r.cfg.Target.PullRequest.Per == config.PerAll && len(changed) > 0 {
		all, err := r.newProposal(p, base, allBranch(r.delivery.scope), changed)
		return []*proposal{all}, err
	}
	proposals := make([]*proposal, len(changed))
	for i, pl := range changed {
		var err error
		if proposals[i], err = r.newProposal(p, base, branchName(pl.dir, r.delivery.scope), []*plan{pl}); err != nil {
			return nil, err
		}
	}
	return proposals, nil
}

// newProposal makes the commits of some plans, on the list of ResourceSets as it is at
// base, so that each branch builds by itself.
func (r *Reconciler) newProposal(p *pass, base *gitwriter.Snapshot, name string, plans []*plan) (*proposal, error) {
	root, err := r.readRoot(base)
	if err != nil {
		return nil, err
	}
	list := root.file
	pr := &proposal{name: name, plans: plans}
	pr.commits = r.commits(&pass{request: p.request, plans: plans}, root)
	writesList := slices.ContainsFunc(pr.commits, func(c gitwriter.Commit) bool { return c.Write[list] != nil })

	wanted, from := sha256.New(), sha256.New()
	for _, pl := range plans {
		pr.recorded = pr.recorded || pl.recorded
		fmt.Fprintf(wanted, "%q %s\n", pl.dir, pl.digest())
		at, err := entryHash(base, path.Join(r.cfg.Target.Path, pl.dir))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(from, "%q %s\n", pl.dir, at)
	}
	if writesList {
		at, err := entryHash(base, list)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(from, "%s\n", at)
	}
	pr.wanted = "sha256:" + hex.EncodeToString(wanted.Sum(nil))
	pr.base = "sha256:" + hex.EncodeToString(from.Sum(nil))
	for i := range pr.commits {
		pr.commits[i].Message = fmt.Sprintf("%s\n%s: %s\n%s: %s\n", strings.TrimRight(pr.commits[i].Message, "\n"),
			trailerProposal, pr.wanted, trailerBase, pr.base)
	}
	return pr, nil
}

// digest stands for a ResourceSet's folder as a plan wants it. Who wanted it, from
// which definitions and why does not count.
func (pl *plan) digest() string {
	h := sha256.New()
	if pl.removed || pl.out == nil {
		return "gone"
	}
	for _, file := range slices.Sorted(maps.Keys(pl.out.Files)) {
		fmt.Fprintf(h, "%q %s\n", file, pl.out.Files[file].Blob)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// wantedOf is what pull requests of one plan propose.
func wantedOf(plans ...*plan) string {
	h := sha256.New()
	for _, pl := range plans {
		fmt.Fprintf(h, "%q %s\n", pl.dir, pl.digest())
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func entryHash(base *gitwriter.Snapshot, file string) (string, error) {
	entry, err := base.Entry(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "none", nil
	}
	return entry.Hash.String(), err
}

// branchScope keeps the branches of one renderer from those of others that write to
// other folders, or for other branches, of one repository.
func branchScope(branch, path string) string {
	sum := sha256.Sum256([]byte(branch + "\x00" + path))
	return hex.EncodeToString(sum[:4])
}

func allBranch(scope string) string { return "all-" + scope }

// maxBranchPart bounds each of a branch name's parts, which are file names for Git.
const maxBranchPart = 100

// branchName is the branch of a ResourceSet's folder, "<namespace>/<name>-<scope>".
// Folders are found in Git and may be named by anybody, so whatever Git or a file
// system could refuse is replaced, and a digest tells such names apart.
func branchName(dir, scope string) string {
	namespace, name, _ := strings.Cut(dir, "/")
	clean := branchPart(namespace) + "/" + branchPart(name)
	if clean != dir {
		sum := sha256.Sum256([]byte(dir))
		clean += "-" + hex.EncodeToString(sum[:4])
	}
	return clean + "-" + scope
}

func branchPart(s string) string {
	s = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '-' {
			return c
		}
		return '-'
	}, s)
	for strings.Contains(s, "..") {
		s = strings.ReplaceAll(s, "..", ".")
	}
	s = strings.Trim(s[:min(len(s), maxBranchPart)], ".-")
	for strings.HasSuffix(s, ".lock") {
		s = strings.TrimRight(strings.TrimSuffix(s, ".lock"), ".-")
	}
	return cmp.Or(s, "x")
}

// An origin is what the trailers at a branch's tip say of it.
type origin struct {
	wanted, base string
	// others: the newest of the commits that say so is not as we pushed it, or
	// somebody's own commits are on top. Merges of the target branch do not count.
	others bool
}

// trailerOf is the last value of a trailer in a commit message.
func trailerOf(message, key string) string {
	value := ""
	for line := range strings.Lines(message) {
		if rest, ok := strings.CutPrefix(line, key+": "); ok {
			value = strings.TrimSpace(rest)
		}
	}
	return value
}
