// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"resourceset.example/renderer/internal/listing"
	"resourceset.example/renderer/pkg/gitwriter"
)

// A rootList is the kustomization.yaml of the target path: the list of the
// ResourceSets' folders. What somebody else put into it, or took out of it, stays
// that way.
type rootList struct {
	file        string
	current     []byte // nil when it does not exist
	before, now []string
	stale       func(entry string) bool
	list        *listing.List // the file as it was found
}

// readRoot reads the list at base.
func (r *Reconciler) readRoot(base *gitwriter.Snapshot) (*rootList, error) {
	root := &rootList{file: path.Join(r.cfg.Target.Path, kustomizationFile)}
	data, err := base.ReadFile(root.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("target path: %w", err)
	default:
		root.current = data
	}
	root.before = slices.Sorted(maps.Keys(r.committed))
	root.now = slices.Clone(root.before)
	root.stale = func(entry string) bool {
		return listing.IsFolder(entry) && r.committed[entry] == nil && gone(base, path.Join(r.cfg.Target.Path, entry))
	}
	if root.list, err = root.merge(); err != nil {
		return nil, &rootError{File: root.file, Err: err}
	}
	return root, nil
}

func (root *rootList) merge() (*listing.List, error) {
	return listing.Of(listing.Merge{Current: root.current, Before: root.before, Now: root.now, Stale: root.stale})
}

// gone tells an entry whose folder does not exist any more: kustomize could not
// build it.
func gone(base *gitwriter.Snapshot, file string) bool {
	_, err := base.Entry(path.Clean(file))
	return errors.Is(err, fs.ErrNotExist)
}

func (root *rootList) add(dir string) {
	if i, found := slices.BinarySearch(root.now, dir); !found {
		root.now = slices.Insert(root.now, i, dir)
	}
}

func (root *rootList) remove(dir string) {
	if i, found := slices.BinarySearch(root.now, dir); found {
		root.now = slices.Delete(root.now, i, i+1)
	}
}

// relist has a folder listed again that somebody took off the list.
func (root *rootList) relist(dir string) {
	root.before = slices.DeleteFunc(root.before, func(entry string) bool { return entry == dir })
}

// write adds the file to a commit when the list in Git is another one.
func (root *rootList) write(files map[string][]byte) {
	list, err := root.merge()
	if err != nil || bytes.Equal(list.Data, root.current) { // it could be read before
		return
	}
	files[root.file] = list.Data
	root.current, root.before = list.Data, slices.Clone(root.now)
}

// onlyListed is the subject of the commit of [Reconciler.unlist].
const onlyListed = "list only the ResourceSets that there are"

// unlist is the commit that takes entries off the list which lead nowhere since
// somebody deleted their folders: none when there are none. That they stay away is
// that person's decision; without the commit nothing at all would build.
func (r *Reconciler) unlist(p *pass, root *rootList) []gitwriter.Commit {
	list, err := root.merge()
	if err != nil || len(list.Stale) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString(onlyListed + "\n\nSomebody has deleted the folders of the others.\n\n")
	for i, dir := range list.Stale {
		m := message{ResourceSet: dir}
		if i == 0 {
			m.Revision = r.defs.revision
		}
		if i == len(list.Stale)-1 {
			m.Trigger, m.SkipCI = p.trigger, r.cfg.Target.Commit.SkipCI
		}
		m.trailers(&b)
	}
	author := r.cfg.Target.Commit.Author
	c := gitwriter.Commit{
		Write: map[string][]byte{}, Message: r.redactor.Scrub(b.String()),
		Author: gitwriter.Signature{Name: author.Name, Email: author.Email},
	}
	root.write(c.Write)
	return []gitwriter.Commit{c}
}

// A rootError is a kustomization.yaml of the target path that cannot be read.
type rootError struct {
	File string
	Err  error
}

func (e *rootError) Error() string { return fmt.Sprintf("%s: %v", e.File, e.Err) }

// Unwrap is the cause.
func (e *rootError) Unwrap() error { return e.Err }

// Suggestion is what to do about it.
func (e *rootError) Suggestion() string {
	return "somebody else changed this file; restore it, or delete it and have it written anew"
}
