// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"fmt"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// emptyTree is the hash of a folder without entries. Git has no folder like that below
// the root, and knows the object without storing it.
var emptyTree = plumbing.NewHash("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

// A treeEditor is a repository's tree with changes on top. Only folders on the way to
// a change are loaded; nothing is written before write.
type treeEditor struct {
	read func(tree plumbing.Hash) ([]byte, error)
	root *folder
}

// A folder is a tree object that was loaded, or a new one.
type folder struct {
	entries []treeEntry        // sorted; those of loaded sub-folders hold the old hash
	loaded  map[string]*folder // sub-folders by name
	changed bool
}

// newTreeEditor starts from the given tree; the zero hash is an empty one.
func newTreeEditor(root plumbing.Hash, read func(tree plumbing.Hash) ([]byte, error)) (*treeEditor, error) {
	t := &treeEditor{read: read}
	var err error
	t.root, err = t.load(root)
	return t, err
}

func (t *treeEditor) load(hash plumbing.Hash) (*folder, error) {
	if hash.IsZero() {
		return &folder{}, nil
	}
	data, err := t.read(hash)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w", hash, err)
	}
	entries, err := decodeTree(data)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w", hash, err)
	}
	return &folder{entries: entries}, nil
}

// put sets the file at path to the blob. A file or a symbolic link there is replaced
// (a link's target is not touched); anything else in the way is an error.
func (t *treeEditor) put(path string, blob plumbing.Hash) error {
	if err := checkPath(path); err != nil {
		return err
	}
	dir := t.root
	name, rest, _ := nextComponent(path)
	for rest != "" {
		sub, err := t.enter(dir, name, true)
		if err != nil {
			return atPath(err, path, rest)
		}
		dir = sub
		name, rest, _ = nextComponent(rest)
	}
	return dir.set(path, name, blob)
}

func (f *folder) set(path, name string, blob plumbing.Hash) error {
	entry := treeEntry{mode: modeFile, name: name, hash: blob}
	i := indexEntry(f.entries, name)
	if i < 0 {
		f.insert(entry)
		return nil
	}
	old := f.entries[i]
	switch kind := old.kind(); kind {
	case KindDirectory, KindSubmodule:
		return &PathError{Path: path, Reason: "is a " + kind.String() + ", which a file must not replace", Kind: kind}
	case KindFile:
		if old.hash == blob { // whatever its executable bit
			return nil
		}
	}
	f.entries[i] = entry
	f.changed = true
	return nil
}

// remove takes the file at path out. A path with nothing there is fine.
func (t *treeEditor) remove(path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	dir := t.root
	name, rest, _ := nextComponent(path)
	for rest != "" {
		sub, err := t.enter(dir, name, false)
		if err != nil {
			return err
		}
		if sub == nil {
			return nil
		}
		dir = sub
		name, rest, _ = nextComponent(rest)
	}
	i := indexEntry(dir.entries, name)
	if i < 0 {
		return nil
	}
	if kind := dir.entries[i].kind(); kind == KindDirectory || kind == KindSubmodule {
		return &PathError{Path: path, Reason: "is a " + kind.String() + ", which is not deleted as a file", Kind: kind}
	}
	dir.cut(i)
	return nil
}

// enter is the sub-folder of that name, made if asked for. Without, anything but a
// folder is nil.
func (t *treeEditor) enter(dir *folder, name string, create bool) (*folder, error) {
	if sub, ok := dir.loaded[name]; ok {
		return sub, nil
	}
	var sub *folder
	i := indexEntry(dir.entries, name)
	switch {
	case i >= 0 && dir.entries[i].isDir():
		var err error
		if sub, err = t.load(dir.entries[i].hash); err != nil {
			return nil, err
		}
	case !create:
		return nil, nil
	case i >= 0:
		kind := dir.entries[i].kind()
		return nil, &PathError{Reason: "is a " + kind.String() + ", through which nothing is written", Kind: kind}
	default:
		sub = &folder{changed: true}
		dir.insert(treeEntry{mode: modeDir, name: name})
	}
	if dir.loaded == nil {
		dir.loaded = map[string]*folder{}
	}
	dir.loaded[name] = sub
	return sub, nil
}

// atPath names the folder at which the way to path was barred.
func atPath(err error, path, rest string) error {
	if barred, ok := err.(*PathError); ok && barred.Path == "" {
		barred.Path = strings.TrimSuffix(path, "/"+rest)
	}
	return err
}

// write encodes the folders that changed into objects and returns the root's hash.
// Folders that became empty are gone; the root may be the empty tree.
func (t *treeEditor) write(objects *newObjects) plumbing.Hash {
	hash, _ := t.root.write(objects)
	if hash == emptyTree {
		objects.add(plumbing.TreeObject, hash, nil)
	}
	return hash
}

// write returns the folder's hash and whether it changed at all.
func (f *folder) write(objects *newObjects) (plumbing.Hash, bool) {
	for _, name := range sortedNames(f.loaded) {
		sub := f.loaded[name]
		hash, changed := sub.write(objects)
		if !changed {
			continue
		}
		i := indexEntry(f.entries, name)
		if len(sub.entries) == 0 {
			delete(f.loaded, name)
			f.cut(i)
			continue
		}
		if f.entries[i].hash != hash {
			f.entries[i].hash = hash
			f.changed = true
		}
	}
	if !f.changed {
		return plumbing.ZeroHash, false
	}
	data := encodeTree(f.entries)
	hash := plumbing.ComputeHash(plumbing.TreeObject, data)
	if len(f.entries) > 0 {
		objects.add(plumbing.TreeObject, hash, data)
	}
	return hash, true
}

func sortedNames(folders map[string]*folder) []string {
	names := make([]string, 0, len(folders))
	for name := range folders {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (f *folder) insert(e treeEntry) {
	key := e.sortKey()
	i := sort.Search(len(f.entries), func(i int) bool { return f.entries[i].sortKey() >= key })
	f.entries = append(f.entries, treeEntry{})
	copy(f.entries[i+1:], f.entries[i:])
	f.entries[i] = e
	f.changed = true
}

func (f *folder) cut(i int) {
	f.entries = append(f.entries[:i], f.entries[i+1:]...)
	f.changed = true
}

// indexEntry finds a name among sorted entries, be it a folder or not.
func indexEntry(entries []treeEntry, name string) int {
	for _, key := range []string{name, name + "/"} {
		i := sort.Search(len(entries), func(i int) bool { return entries[i].sortKey() >= key })
		if i < len(entries) && entries[i].name == name {
			return i
		}
	}
	return -1
}

// nextComponent cuts the first component off a slash path.
func nextComponent(path string) (name, rest string, ok bool) {
	if path == "" {
		return "", "", false
	}
	name, rest, _ = strings.Cut(path, "/")
	return name, rest, true
}
