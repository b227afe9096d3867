// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// A touch is a commit in which the tree at a path is another one than in every
// parent, or a merge that drops something of ours.
type touch struct {
	*commit
	before, after plumbing.Hash   // of the path in the first parent and in the commit
	others        []plumbing.Hash // in further parents, of a merge
	drops         []drop          // of a merge
}

// touches are the commits that touch the target path, newest first.
func (r *Repository) touches(path string) ([]touch, error) {
	all, err := r.walk()
	if err != nil {
		return nil, err
	}
	var found []touch
	for _, c := range all {
		t, err := r.touch(c, path)
		if err != nil {
			return nil, err
		}
		drops, err := r.drops(c, path)
		if err != nil {
			return nil, err
		}
		if t == nil && len(drops) > 0 {
			after, err := r.folder(c.tree, path)
			if err != nil {
				return nil, err
			}
			t = &touch{commit: c, before: after, after: after}
		}
		if t != nil {
			t.drops = drops
			found = append(found, *t)
		}
	}
	return found, nil
}

// touch is nil when the commit leaves the path as some parent has it.
func (r *Repository) touch(c *commit, path string) (*touch, error) {
	after, err := r.folder(c.tree, path)
	if err != nil {
		return nil, err
	}
	t := &touch{commit: c, after: after}
	if len(c.parents) == 0 {
		if after.IsZero() {
			return nil, nil
		}
		return t, nil
	}
	for i, hash := range c.parents {
		parent, err := r.commit(hash)
		if err != nil {
			return nil, err
		}
		before, err := r.folder(parent.tree, path)
		if err != nil {
			return nil, err
		}
		switch {
		case before == after:
			return nil, nil
		case i == 0:
			t.before = before
		default:
			t.others = append(t.others, before)
		}
	}
	return t, nil
}

// A folderChange is a ResourceSet's folder that differs.
type folderChange struct {
	dir           string // "namespace/name"
	before, after plumbing.Hash
}

// folders takes the change of the target path apart: the folders of ResourceSets,
// and the files that are in none.
func (r *Repository) folders(before, after plumbing.Hash) (dirs []folderChange, files []difference, err error) {
	err = r.merge(before, after, func(oldNS, newNS entry) error {
		name := oldNS.name
		if name == "" {
			name = newNS.name
		}
		if !oldNS.isDir() && !newNS.isDir() {
			files = append(files, difference{path: name, before: oldNS, after: newNS})
			return nil
		}
		return r.merge(hashIfDir(oldNS), hashIfDir(newNS), func(old, new entry) error {
			path := name + "/" + new.name
			if new.none() {
				path = name + "/" + old.name
			}
			if !old.isDir() && !new.isDir() {
				files = append(files, difference{path: path, before: old, after: new})
				return nil
			}
			dirs = append(dirs, folderChange{dir: path, before: hashIfDir(old), after: hashIfDir(new)})
			return nil
		})
	})
	return dirs, files, err
}

// inOthers reports whether a further parent of a merge has the path as the commit does.
func (r *Repository) inOthers(t *touch, path string, e entry) (bool, error) {
	for _, other := range t.others {
		have, err := r.at(other, path)
		if err != nil {
			return false, err
		}
		if have.hash == e.hash && have.mode == e.mode {
			return true, nil
		}
	}
	return false, nil
}

// unmerged leaves of a merge's differences those that come from no parent.
func (r *Repository) unmerged(t *touch, files []difference) ([]difference, error) {
	if len(t.others) == 0 {
		return files, nil
	}
	var err error
	files = slices.DeleteFunc(files, func(d difference) bool {
		found, e := r.inOthers(t, d.path, d.after)
		if e != nil {
			err = e
		}
		return found
	})
	return files, err
}
