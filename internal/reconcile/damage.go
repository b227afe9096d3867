// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// soundPass is a pass, done again when a mirror turned out to be damaged in it: the
// state folder is a cache, and losing some of it must not cost more than all of it.
func (r *Reconciler) soundPass(ctx context.Context, req request) *Report {
	report := r.pass(ctx, req)
	if len(report.Commits) == 0 && ctx.Err() == nil && r.forgetDamaged() {
		report = r.pass(ctx, req)
	}
	return report
}

// forgetDamaged reports that a mirror turned out to be damaged, and forgets what was
// read from it. The mirror makes itself anew at the next fetch.
func (r *Reconciler) forgetDamaged() bool {
	source, target := r.source.Damaged(), r.target.Damaged()
	if source {
		r.sourceDue = time.Time{}
		if r.defs != nil {
			r.defs.hash = plumbing.ZeroHash // read it again, though the branch has not moved
		}
	}
	if target {
		r.scanned = plumbing.ZeroHash
		sound := map[string]*committed{}
		for dir, c := range r.committed {
			if c.err == nil {
				sound[dir] = c
			}
		}
		r.committed = sound
	}
	return source || target
}
