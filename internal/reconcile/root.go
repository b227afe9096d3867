// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"

	"resourceset.example/renderer/pkg/expand"
	"resourceset.example/renderer/pkg/gitwriter"
)

// ourEntry is what an entry for a ResourceSet's folder looks like.
var ourEntry = regexp.MustCompile(`^(\./)?[a-z0-9][a-z0-9.-]*/[a-z0-9][a-z0-9.-]*/?$`)

// A rootList is the kustomization.yaml of the target path: the list of the
// ResourceSets' folders. What somebody else put into it, or took out of it, stays
// that way.
type rootList struct {
	file    string
	current []byte         // nil when it does not exist
	doc     map[string]any // the file, when it is not as we write it
	dirs    []string       // our folders, sorted
	foreign []string       // other entries, in their order
}

// readRoot reads the list at base.
func (r *Reconciler) readRoot(base *gitwriter.Snapshot) (*rootList, error) {
	root := &rootList{file: path.Join(r.cfg.Target.Path, kustomizationFile)}
	data, err := base.ReadFile(root.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		root.dirs = slices.Sorted(maps.Keys(r.committed))
		return root, nil
	case err != nil:
		return nil, fmt.Errorf("target path: %w", err)
	}
	root.current = data
	if err := yaml.Unmarshal(data, &root.doc); err != nil {
		return nil, &rootError{File: root.file, Err: err}
	}
	entries, isList := root.doc["resources"].([]any)
	if !isList && root.doc["resources"] != nil {
		return nil, &rootError{File: root.file, Err: errors.New("resources is not a list")}
	}
	for _, e := range entries {
		entry, isText := e.(string)
		switch {
		case !isText:
			return nil, &rootError{File: root.file, Err: errors.New("resources holds something that is not a path")}
		case r.committed[path.Clean(entry)] != nil:
			root.add(path.Clean(entry))
		case !ourEntry.MatchString(entry) || !gone(base, path.Join(r.cfg.Target.Path, entry)):
			root.foreign = append(root.foreign, entry)
		}
	}
	if bytes.Equal(data, expand.RootKustomization(root.dirs)) {
		root.doc = nil
	}
	return root, nil
}

// gone tells an entry whose folder does not exist any more: kustomize could not
// build it.
func gone(base *gitwriter.Snapshot, file string) bool {
	_, err := base.Entry(path.Clean(file))
	return errors.Is(err, fs.ErrNotExist)
}

// add takes over an entry for dir that is there while the folder is not ours, as it
// is when somebody deletes inputs.lock: kustomize refuses a folder that is listed twice.
func (root *rootList) add(dir string) {
	root.foreign = slices.DeleteFunc(root.foreign, func(entry string) bool { return path.Clean(entry) == dir })
	if i, found := slices.BinarySearch(root.dirs, dir); !found {
		root.dirs = slices.Insert(root.dirs, i, dir)
	}
}

func (root *rootList) remove(dir string) {
	if i, found := slices.BinarySearch(root.dirs, dir); found {
		root.dirs = slices.Delete(root.dirs, i, i+1)
	}
}

// bytes is the file as it should be.
func (root *rootList) bytes() []byte {
	if root.doc == nil {
		return expand.RootKustomization(root.dirs)
	}
	entries := make([]any, 0, len(root.dirs)+len(root.foreign))
	for _, dir := range root.dirs {
		entries = append(entries, dir)
	}
	for _, entry := range root.foreign {
		entries = append(entries, entry)
	}
	root.doc["resources"] = entries
	data, err := yaml.Marshal(root.doc)
	if err != nil {
		return root.current // it was read from YAML: this cannot be
	}
	return data
}

// write adds the file to a commit when the list in Git is another one.
func (root *rootList) write(files map[string][]byte) {
	if data := root.bytes(); !bytes.Equal(data, root.current) {
		files[root.file] = data
		root.current = data
	}
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
