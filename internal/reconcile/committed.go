// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/pkg/expand"
	"resourceset.example/renderer/pkg/gitwriter"
)

// lockFile and kustomizationFile are the two files of ours in every ResourceSet's folder.
const (
	lockFile          = "inputs.lock"
	kustomizationFile = "kustomization.yaml"
)

// committed is what Git holds of one ResourceSet's folder.
type committed struct {
	dir  string        // "namespace/name", below the target path
	tree plumbing.Hash // of the folder
	hash plumbing.Hash // of inputs.lock; zero when there is none
	lock *expand.Lock
	err  error // inputs.lock cannot be read: nothing is written there

	// foreign is the state of the target (Reconciler.seen) in which this lock was
	// found and had not been written by us.
	foreign uint64
}

// scan looks at the target path of a snapshot: two levels of folders, and those
// inputs.lock files that are not known yet. What has gone from Git is forgotten.
func (r *Reconciler) scan(base *gitwriter.Snapshot) error {
	if r.scanned == base.Hash() && r.seen > 0 {
		return nil
	}
	namespaces, err := folders(base, r.cfg.Target.Path)
	if err != nil {
		return err
	}
	found := map[string]*committed{}
	changed := false
	for _, namespace := range namespaces {
		names, err := folders(base, path.Join(r.cfg.Target.Path, namespace.Name))
		if err != nil {
			return err
		}
		for _, name := range names {
			c, err := r.look(base, namespace.Name+"/"+name.Name, name.Hash)
			if err != nil {
				return err
			}
			if c == nil {
				continue
			}
			found[c.dir] = c
			if old := r.committed[c.dir]; old == nil || old.hash != c.hash {
				c.foreign = r.seen + 1
				changed = true
			}
		}
	}
	for dir := range r.committed {
		changed = changed || found[dir] == nil
	}
	if changed || r.seen == 0 {
		r.seen++
	}
	r.committed, r.scanned = found, base.Hash()
	return nil
}

// look reads one folder; nil when it is not one of ours, that is without inputs.lock.
func (r *Reconciler) look(base *gitwriter.Snapshot, dir string, tree plumbing.Hash) (*committed, error) {
	old := r.committed[dir]
	if old != nil && old.tree == tree {
		return old, nil
	}
	file := path.Join(r.cfg.Target.Path, dir, lockFile)
	entry, err := base.Entry(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	c := &committed{dir: dir, tree: tree, hash: entry.Hash}
	if old != nil && old.hash == entry.Hash {
		c.lock, c.err, c.foreign = old.lock, old.err, old.foreign
		return c, nil
	}
	data, err := base.ReadFile(file)
	if err == nil {
		c.lock, err = expand.ParseLock(data)
	}
	if err != nil {
		c.err = fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// folders are the directories in a directory; none when it does not exist.
func folders(base *gitwriter.Snapshot, dir string) ([]gitwriter.Entry, error) {
	entries, err := base.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("target path: %w", err)
	}
	dirs := entries[:0]
	for _, e := range entries {
		if e.Kind == gitwriter.KindDirectory {
			dirs = append(dirs, e)
		}
	}
	return dirs, nil
}
