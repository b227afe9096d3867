// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
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
