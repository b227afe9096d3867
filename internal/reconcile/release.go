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

// mayRelease is an error when a set is neither there nor held: a release of a name
// with a typo would say that something ends, and nothing would.
func (r *Reconciler) mayRelease(ctx context.Context, resourceSet string, sets []string) error {
	head, err := r.target.Fetch(ctx)
	if err != nil {
		return fmt.Errorf("target repository: %w", err)
	}
	if err := r.scan(head); err != nil {
		return err
	}
	known := map[string]bool{releasedAll: true, sharedFolder: true, kustomizationFile: true}
	for _, c := range r.committed {
		if c.lock == nil || c.lock.ResourceSet != resourceSet {
			continue
		}
		for i := range c.lock.Sets {
			known[c.lock.Sets[i].Name] = true
		}
	}
	var unknown []string
	for _, set := range sets {
		if !known[set] {
			unknown = append(unknown, set)
		}
	}
	if len(unknown) == 0 || head.Hash().IsZero() {
		return nil
	}
	if err := r.knows(ctx, head, resourceSet); err != nil {
		return err
	}
	// It may be an addition that was taken back, which only a pass can tell.
	preview, err := r.Preview(ctx)
	if err != nil {
		return err
	}
	var held []string
	for _, problem := range preview.Report.Problems {
		var taken *TakenBackError
		if errors.As(problem.Err, &taken) && taken.ResourceSet == resourceSet && !slices.Contains(held, taken.Set) {
			held = append(held, taken.Set)
		}
	}
	unknown = slices.DeleteFunc(unknown, func(set string) bool { return slices.Contains(held, set) })
	if len(unknown) > 0 {
		return &notHeldError{ResourceSet: resourceSet, Sets: unknown, Held: held}
	}
	return nil
}

// A notHeldError is a release of input sets that there are not.
type notHeldError struct {
	ResourceSet string
	Sets, Held  []string
}

func (e *notHeldError) Error() string {
	return fmt.Sprintf("ResourceSet %s: nothing is held as %s", e.ResourceSet, strings.Join(e.Sets, ", "))
}

// Suggestion is what to do about it.
func (e *notHeldError) Suggestion() string {
	if len(e.Held) == 0 {
		return "nothing of it is held as somebody left it"
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
