// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Modes of tree entries, as Git writes them.
const (
	modeFile      = "100644"
	modeDirectory = "40000"
)

// An entry is one name in a folder; its zero value is nothing.
type entry struct {
	name, mode string
	hash       plumbing.Hash
}

func (e entry) isDir() bool { return e.mode == modeDirectory }
func (e entry) none() bool  { return e.mode == "" }

// key is where Git sorts an entry: folders as if their names ended in a slash.
func (e entry) key() string {
	if e.isDir() {
		return e.name + "/"
	}
	return e.name
}

// A lookup is a name in a tree.
type lookup struct {
	tree plumbing.Hash
	name string
}

// maxRemembered is how many trees and lookups are kept in memory.
const maxRemembered = 1 << 16

// list is the content of a folder, in Git's order; the zero hash is an empty one.
func (r *Repository) list(tree plumbing.Hash) ([]entry, error) {
	if tree.IsZero() {
		return nil, nil
	}
	if entries, ok := r.trees[tree]; ok {
		return entries, nil
	}
	data, err := r.read(plumbing.TreeObject, tree)
	if err != nil {
		return nil, err
	}
	entries, err := decodeTree(data)
	if err != nil {
		return nil, fmt.Errorf("%s: tree %s: %w", r.name, tree, err)
	}
	if len(r.trees) >= maxRemembered {
		clear(r.trees)
	}
	r.trees[tree] = entries
	return entries, nil
}

func decodeTree(data []byte) ([]entry, error) {
	entries := make([]entry, 0, bytes.Count(data, []byte{0})/2+1)
	text := string(data) // one copy that all names share
	for len(text) > 0 {
		space, null := strings.IndexByte(text, ' '), strings.IndexByte(text, 0)
		if space < 0 || null < space || len(text) < null+1+len(plumbing.Hash{}) {
			return nil, fmt.Errorf("damaged entry %q", text[:min(len(text), 40)])
		}
		e := entry{mode: text[:space], name: text[space+1 : null]}
		text = text[null+1+copy(e.hash[:], text[null+1:]):]
		entries = append(entries, e)
	}
	return entries, nil
}

// at is the entry at a slash path below a tree.
func (r *Repository) at(tree plumbing.Hash, path string) (entry, error) {
	e := entry{mode: modeDirectory, hash: tree}
	if path == "." || path == "" {
		return e, nil
	}
	for name := range strings.SplitSeq(path, "/") {
		if !e.isDir() || e.hash.IsZero() {
			return entry{}, nil
		}
		key := lookup{e.hash, name}
		found, known := r.lookups[key]
		if !known {
			var err error
			if found, err = r.find(e.hash, name); err != nil {
				return entry{}, err
			}
			if len(r.lookups) >= maxRemembered {
				clear(r.lookups)
			}
			r.lookups[key] = found
		}
		e = found
	}
	return e, nil
}

// find is one name in a tree. It takes no tree apart that is not needed whole.
func (r *Repository) find(tree plumbing.Hash, name string) (entry, error) {
	if entries, ok := r.trees[tree]; ok {
		for _, e := range entries {
			if e.name == name {
				return e, nil
			}
		}
		return entry{}, nil
	}
	data, err := r.read(plumbing.TreeObject, tree)
	if err != nil {
		return entry{}, err
	}
	for len(data) > 0 {
		space, null := bytes.IndexByte(data, ' '), bytes.IndexByte(data, 0)
		if space < 0 || null < space || len(data) < null+1+len(plumbing.Hash{}) {
			return entry{}, fmt.Errorf("%s: tree %s: damaged entry %s", r.name, tree, hex.EncodeToString(data[:min(len(data), 20)]))
		}
		end := null + 1 + len(plumbing.Hash{})
		if string(data[space+1:null]) == name {
			e := entry{mode: string(data[:space]), name: name}
			copy(e.hash[:], data[null+1:end])
			return e, nil
		}
		data = data[end:]
	}
	return entry{}, nil
}

// folder is the tree at a path; zero when there is none.
func (r *Repository) folder(tree plumbing.Hash, path string) (plumbing.Hash, error) {
	e, err := r.at(tree, path)
	if err != nil || !e.isDir() {
		return plumbing.ZeroHash, err
	}
	return e.hash, nil
}

// A difference is a file that two trees do not share.
type difference struct {
	path          string
	before, after entry // none where it does not exist
}

// letter is what happened to the file, as git status shows it.
func (d difference) letter() string {
	switch {
	case d.before.none():
		return "A"
	case d.after.none():
		return "D"
	}
	return "M"
}

// differences are the files that differ between two trees, by path. Folders that
// are the same are not looked into.
func (r *Repository) differences(before, after plumbing.Hash, prefix string, yield func(difference)) error {
	if before == after {
		return nil
	}
	return r.merge(before, after, func(old, new entry) error {
		name := old.name + new.name
		if !old.none() && !new.none() {
			name = new.name
		}
		path := prefix + name
		if old.isDir() || new.isDir() {
			return r.differences(hashIfDir(old), hashIfDir(new), path+"/", yield)
		}
		yield(difference{path: path, before: old, after: new})
		return nil
	})
}

func hashIfDir(e entry) plumbing.Hash {
	if e.isDir() {
		return e.hash
	}
	return plumbing.ZeroHash
}

// merge walks two folders side by side, and calls visit with what differs.
func (r *Repository) merge(before, after plumbing.Hash, visit func(old, new entry) error) error {
	olds, err := r.list(before)
	if err != nil {
		return err
	}
	news, err := r.list(after)
	if err != nil {
		return err
	}
	for len(olds) > 0 || len(news) > 0 {
		var old, new entry
		switch {
		case len(news) == 0 || len(olds) > 0 && olds[0].key() < news[0].key():
			old, olds = olds[0], olds[1:]
		case len(olds) == 0 || news[0].key() < olds[0].key():
			new, news = news[0], news[1:]
		default:
			old, olds, new, news = olds[0], olds[1:], news[0], news[1:]
		}
		if old == new {
			continue
		}
		if err := visit(old, new); err != nil {
			return err
		}
	}
	return nil
}
