// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/expand"
	"resourceset.example/renderer/pkg/gitwriter"
)

// A FileChange is one file that a pass would write or delete.
type FileChange struct {
	Path     string // from the root of the target repository
	Old, New []byte // nil when the file does not exist before or after
}

// A SetPreview is what a pass would do to one ResourceSet.
type SetPreview struct {
	ResourceSet             string // namespace/name
	Message                 string // of the commit that would be made; empty when there would be none
	Added, Updated, Removed []string
	// Kept are the input sets that stay as they are committed although something
	// else is wanted: they failed, or are held back.
	Kept  []string
	Whole bool // the ResourceSet itself goes
}

// A Preview is what one full pass would commit. Nothing is pushed, and nothing is
// remembered.
type Preview struct {
	Report *Report
	Sets   []SetPreview // those of which there is something to say, by name
	Files  []FileChange // by path
}

// Preview does a full pass without its last stage.
func (r *Reconciler) Preview(ctx context.Context) (*Preview, error) {
	p, head := r.prepare(ctx, request{trigger: TriggerOnce})
	if head == nil {
		return nil, p.finish().Err()
	}
	var commits []gitwriter.Commit
	err := r.withHistory(ctx, head, func(head *gitwriter.Snapshot) (err error) {
		commits, err = r.planNewest(ctx, head, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.addPlans()
	p.addRoot(path.Join(r.cfg.Target.Path, kustomizationFile))
	p.addProviders(r)
	preview := &Preview{Report: p.finish()}
	for _, pl := range p.plans {
		if set, ok := pl.preview(); ok {
			preview.Sets = append(preview.Sets, set)
		}
	}
	slices.SortFunc(preview.Sets, func(a, b SetPreview) int { return strings.Compare(a.ResourceSet, b.ResourceSet) })
	preview.Files, err = fileChanges(head, commits)
	return preview, err
}

// preview is false when a plan has nothing to say.
func (pl *plan) preview() (SetPreview, bool) {
	set := SetPreview{ResourceSet: pl.name, Message: pl.message, Whole: pl.removed}
	if pl.out != nil {
		for _, c := range pl.out.Changes {
			switch c.Kind {
			case expand.Added:
				set.Added = append(set.Added, c.Set)
			case expand.Updated:
				set.Updated = append(set.Updated, c.Set)
			case expand.Removed:
				set.Removed = append(set.Removed, c.Set)
			case expand.Kept:
				set.Kept = append(set.Kept, c.Set)
			}
		}
	}
	if pl.removed {
		for _, s := range pl.previous.lock.Sets {
			set.Removed = append(set.Removed, s.Name)
		}
	}
	return set, pl.changed() || len(set.Kept) > 0
}

// fileChanges puts commits together: what is different after all of them.
func fileChanges(head *gitwriter.Snapshot, commits []gitwriter.Commit) ([]FileChange, error) {
	after := map[string][]byte{}
	for _, c := range commits {
		for _, path := range c.Delete {
			after[path] = nil
		}
		maps.Copy(after, c.Write)
	}
	var changes []FileChange
	for _, path := range slices.Sorted(maps.Keys(after)) {
		old, err := head.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if !bytes.Equal(old, after[path]) || (old == nil) != (after[path] == nil) {
			changes = append(changes, FileChange{Path: path, Old: old, New: after[path]})
		}
	}
	return changes, nil
}
