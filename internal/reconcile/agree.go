// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"maps"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/gitwriter"
)

// trailerVersion names the version that made a commit; builds without a release have none.
const trailerVersion = "Renderer-Version"

// agree ends a quarrel before it begins. Somebody has replaced what we wrote by other
// bytes from the very same inputs and definition. If that is a renderer of a newer
// version, theirs stay, so that one folder changes hands at most once (DESIGN, rule
// 10). Anything else that carries our trailers was not rendered from what it says: it
// is held like any other change of somebody else, and reported (rule 7, and
// docs/decisions/0017).
func (r *Reconciler) agree(pl *plan, rs *api.ResourceSet, base *gitwriter.Snapshot) error {
	mine, ok := r.written[pl.dir]
	if !ok || pl.out == nil || !pl.out.Changed() || pl.previous == nil || pl.previous.lock == nil {
		return nil
	}
	same := mine.rs == rs && maps.Equal(mine.looked, pl.looked) && mine.lock != pl.previous.hash &&
		mine.inputs == pl.previous.lock.InputsDigest() && mine.inputs == pl.out.Lock.InputsDigest()
	if !same {
		return nil
	}
	made, released, err := r.madeBy(pl, base)
	if err != nil || released {
		return err
	}
	if made != nil {
		newer, err := r.newerRenderer(made)
		if err != nil {
			return err
		}
		if !newer {
			r.holdAsMade(pl, made)
			return nil
		}
	}
	pl.leave()
	pl.warnings = append(pl.warnings, &Problem{Pos: rs.Pos, Object: rs.String(), Err: errOtherBytes})
	r.reconsider(pl)
	return nil
}

var errOtherBytes = errors.New("a newer version of renderer makes other files of the same inputs and definition; its files stay")

// madeBy is the commit that made a folder what it is at base, on the line of which the
// folder has it; nil where history ends before. A release later than that is named.
func (r *Reconciler) madeBy(pl *plan, base *gitwriter.Snapshot) (made *gitwriter.Snapshot, released bool, err error) {
	past := r.pastOf(base)
	for at, n := base, 0; n < maxLookback(); n++ {
		trailers := trailersOf(at.Commit().Message)
		for _, name := range trailers["ResourceSet"] {
			released = released || name == pl.name && len(trailers["Released"]) > 0
		}
		parents, known, err := past.parents(at)
		if err != nil || !known {
			return nil, released, err
		}
		var from *gitwriter.Snapshot
		for _, parent := range parents {
			same, err := r.sameFolder(pl.dir, at, parent)
			if err != nil {
				return nil, false, err
			}
			if same {
				from = parent
				break
			}
		}
		if from == nil {
			return at, released, nil
		}
		at = from
	}
	return nil, released, nil
}

// newerRenderer reports whether a commit was made by a renderer of a newer version.
// Anybody can write a trailer, so where our own commits are signed, that one has to be
// signed with the same key.
func (r *Reconciler) newerRenderer(made *gitwriter.Snapshot) (bool, error) {
	trailers := trailersOf(made.Commit().Message)
	theirs, err := semver.NewVersion(strings.Join(trailers[trailerVersion], ""))
	if err != nil || len(trailers["Trigger"]) == 0 {
		return false, nil
	}
	if ours, err := semver.NewVersion(r.version); err == nil && !theirs.GreaterThan(ours) {
		return false, nil
	}
	if r.signer == nil {
		return true, nil
	}
	commit, err := made.CommitObject()
	return err == nil && r.signer.Signed(commit), err
}

// holdAsMade holds all that a commit changed of what we wrote.
func (r *Reconciler) holdAsMade(pl *plan, made *gitwriter.Snapshot) {
	sets := pl.touched(nil)
	author := made.Commit().Author
	pl.leave()
	pl.takenBack = true
	for _, set := range sets {
		pl.fail(pl.pos, "", &TakenBackError{
			ResourceSet: pl.name, Set: set, Commit: made.Hash().String(),
			Who: oneLine(author.Name + " <" + author.Email + ">"),
		})
	}
	r.reconsider(pl)
}

// A written is what we last pushed to one folder, and from what.
type written struct {
	rs     *api.ResourceSet
	looked map[string]*api.ConfigMap
	inputs string        // digest of the input sets
	lock   plumbing.Hash // of inputs.lock
}
