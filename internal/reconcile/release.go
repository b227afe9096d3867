// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/gitwriter"
)

// Release ends the hold on input sets that somebody changed or reverted: with the
// next pass they are what they should be. It is a commit that changes no file and
// says who released what, so that every renderer of the branch knows, and the trail
// shows it. Without sets it releases all of the ResourceSet. It is signed as every
// commit of ours is, and never stands on one that source.verify refuses.
func (r *Reconciler) Release(ctx context.Context, resourceSet string, sets []string, by string) (string, error) {
	if r.delivery != nil {
		return "", errReleaseByRequest
	}
	if len(sets) == 0 {
		sets = []string{releasedAll}
	}
	message := releaseMessage(resourceSet, sets, by)
	if err := r.mayRelease(ctx, resourceSet, sets); err != nil {
		return "", err
	}
	author := r.cfg.Target.Commit.Author
	result, err := r.target.Update(ctx, func(ctx context.Context, base *gitwriter.Snapshot) ([]gitwriter.Commit, error) {
		if base.Hash().IsZero() {
			return nil, fmt.Errorf("target repository: the branch does not exist")
		}
		if err := r.verifyBase(base); err != nil {
			return nil, err
		}
		if err := r.knows(ctx, base, resourceSet); err != nil {
			return nil, err
		}
		return []gitwriter.Commit{{
			Message: message, Empty: true,
			Author: gitwriter.Signature{Name: author.Name, Email: author.Email},
		}}, nil
	})
	return result.New.String(), err
}

var errReleaseByRequest = errors.New("target.mode is pull-request: nothing is held there; reopen the request that was closed, or change what is wanted")

// mayRelease is an error when nothing of what is named is held: a release of a name
// with a typo would say that something ends, and nothing would. Only a pass can tell, so
// it costs one, up to the push.
func (r *Reconciler) mayRelease(ctx context.Context, resourceSet string, sets []string) error {
	head, err := r.target.Fetch(ctx)
	if err != nil {
		return fmt.Errorf("target repository: %w", err)
	}
	if head.Hash().IsZero() {
		return nil
	}
	if err := r.knows(ctx, head, resourceSet); err != nil {
		return err
	}
	known := r.committedSets(resourceSet)
	preview, err := r.Preview(ctx)
	if err != nil {
		return err
	}
	held, sure := preview.takenBack(resourceSet)
	waits := append(preview.moving(resourceSet), held...)
	named := func(set string) bool { return slices.Contains(waits, set) || !sure && known[set] }
	if slices.Equal(sets, []string{releasedAll}) {
		if len(waits) == 0 && sure {
			return &notHeldError{ResourceSet: resourceSet}
		}
		return nil
	}
	if none := slices.DeleteFunc(slices.Clone(sets), named); len(none) > 0 {
		return &notHeldError{ResourceSet: resourceSet, Sets: none, Held: held}
	}
	return nil
}

// committedSets are the names under which a part of a ResourceSet can be released.
func (r *Reconciler) committedSets(resourceSet string) map[string]bool {
	known := map[string]bool{sharedFolder: true, kustomizationFile: true, fluxFolder: true}
	for _, c := range r.committed {
		if c.lock == nil || c.lock.ResourceSet != resourceSet {
			continue
		}
		for i := range c.lock.Sets {
			known[c.lock.Sets[i].Name] = true
		}
	}
	return known
}

// takenBack are the sets of a ResourceSet that are held as somebody left them. sure is
// false where something failed, so that a hold may not have shown.
func (p *Preview) takenBack(resourceSet string) (held []string, sure bool) {
	sure = true
	for _, problem := range p.Report.Problems {
		var taken *TakenBackError
		var removal *HeldError
		switch {
		case errors.As(problem.Err, &taken):
			if taken.ResourceSet == resourceSet && !slices.Contains(held, taken.Set) {
				held = append(held, taken.Set)
			}
		case !errors.As(problem.Err, &removal):
			sure = false
		}
	}
	return held, sure
}

// moving are the sets of a ResourceSet that the next pass writes: a service that knows
// more history than this program may hold them.
func (p *Preview) moving(resourceSet string) []string {
	var sets []string
	for _, set := range p.Sets {
		if set.ResourceSet == resourceSet {
			sets = slices.Concat(sets, set.Added, set.Updated, set.Removed)
		}
	}
	return sets
}

// A notHeldError is a release of input sets that there are not.
type notHeldError struct {
	ResourceSet string
	Sets, Held  []string
}

func (e *notHeldError) Error() string {
	if len(e.Sets) == 0 {
		return fmt.Sprintf("ResourceSet %s: nothing of it is held as somebody left it", e.ResourceSet)
	}
	return fmt.Sprintf("ResourceSet %s: nothing is held as %s", e.ResourceSet, strings.Join(e.Sets, ", "))
}

// Suggestion is what to do about it.
func (e *notHeldError) Suggestion() string {
	if len(e.Held) == 0 {
		return "there is nothing to release; `renderer diff` shows what waits, and why"
	}
	return "held are " + strings.Join(e.Held, ", ")
}

// knows is an error unless a ResourceSet is committed or defined.
func (r *Reconciler) knows(ctx context.Context, base *gitwriter.Snapshot, resourceSet string) error {
	if err := r.scan(base); err != nil {
		return err
	}
	for _, c := range r.committed {
		if c.lock != nil && c.lock.ResourceSet == resourceSet {
			return nil
		}
	}
	if err := r.readAgain(ctx, base); err != nil {
		return err
	}
	for _, rs := range r.defs.ResourceSets {
		if rs.NamespacedName() == resourceSet {
			return nil
		}
	}
	return fmt.Errorf("ResourceSet %s is neither committed nor defined", resourceSet)
}

func releaseMessage(resourceSet string, sets []string, by string) string {
	what := strings.Join(sets, ", ")
	if what == releasedAll {
		what = "all input sets"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\n", cut(resourceSet+": release "+what, maxSubject))
	fmt.Fprintf(&text, "What was held as somebody left it moves on with the next pass.\n\n")
	fmt.Fprintf(&text, "ResourceSet: %s\n", resourceSet)
	for _, set := range sets {
		fmt.Fprintf(&text, "Released: %s\n", oneLine(set))
	}
	fmt.Fprintf(&text, "Released-By: %s\nTrigger: %s\n", oneLine(by), TriggerManual)
	return text.String()
}
