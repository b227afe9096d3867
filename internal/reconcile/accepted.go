// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
)

// acceptedFolders remembers, by ResourceSet folder, the tree that nobody else has
// touched since we wrote it or looked, and the commit at which that was so. It is a
// cache in the state folder: without it the question who wrote what is asked of Git's
// history again.
type acceptedFolders struct {
	file    string
	doc     acceptedDocument
	changed bool
}

type acceptedDocument struct {
	Head  string            `json:"head"`
	Trees map[string]string `json:"trees"`
}

const acceptedFile = "folders.json"

func openAccepted(directory string) *acceptedFolders {
	a := &acceptedFolders{file: filepath.Join(directory, acceptedFile)}
	if data, err := os.ReadFile(a.file); err == nil {
		if json.Unmarshal(data, &a.doc) != nil {
			a.doc = acceptedDocument{} // damaged: it is a cache
		}
	}
	if a.doc.Trees == nil {
		a.doc.Trees = map[string]string{}
	}
	return a
}

// has reports whether anything is known of a folder.
func (a *acceptedFolders) has(dir string) bool {
	_, known := a.doc.Trees[dir]
	return known
}

// is reports whether a folder with that tree is known to be nobody else's.
func (a *acceptedFolders) is(dir string, tree plumbing.Hash) bool {
	known, ok := a.doc.Trees[dir]
	return ok && known == tree.String()
}

func (a *acceptedFolders) set(dir string, tree plumbing.Hash) {
	if a.is(dir, tree) {
		return
	}
	a.changed = true
	if tree.IsZero() {
		delete(a.doc.Trees, dir)
		return
	}
	a.doc.Trees[dir] = tree.String()
}

// isHead reports whether the trees are those of that commit.
func (a *acceptedFolders) isHead(hash plumbing.Hash) bool { return a.doc.Head == hash.String() }

func (a *acceptedFolders) setHead(hash plumbing.Hash) {
	if !a.isHead(hash) {
		a.doc.Head, a.changed = hash.String(), true
	}
}

// save writes what changed, in one step.
func (a *acceptedFolders) save() error {
	if !a.changed {
		return nil
	}
	data, err := json.Marshal(a.doc)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(a.file), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(a.file+".new", data, 0o600); err != nil {
		return err
	}
	if err := os.Rename(a.file+".new", a.file); err != nil {
		return err
	}
	a.changed = false
	return nil
}
