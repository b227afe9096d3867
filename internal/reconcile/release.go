// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"strings"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/pkg/gitwriter"
)

// Release ends the hold on input sets that somebody changed or reverted: with the
// next pass they are what they should be. It is a commit that changes no file and
// says who released what, so that every renderer of the branch knows, and the trail
// shows it. Without sets it releases all of the ResourceSet.
func Release(ctx context.Context, target *gitwriter.Mirror, resourceSet string, sets []string, by string, author config.Author) (string, error) {
	if len(sets) == 0 {
		sets = []string{releasedAll}
	}
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
	result, err := target.Update(ctx, func(_ context.Context, base *gitwriter.Snapshot) ([]gitwriter.Commit, error) {
		if base.Hash().IsZero() {
			return nil, fmt.Errorf("target repository: the branch does not exist")
		}
		return []gitwriter.Commit{{
			Message: text.String(), Empty: true,
			Author: gitwriter.Signature{Name: author.Name, Email: author.Email},
		}}, nil
	})
	return result.New.String(), err
}
