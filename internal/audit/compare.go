// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/internal/listing"
	"resourceset.example/renderer/pkg/expand"
)

// compare holds what the commit changed, in the whole repository, against what it
// must have changed.
func (e *examination) compare() error {
	seen := map[string]bool{}
	err := e.differences(e.parentTree, e.tree, "", func(d difference) {
		seen[d.path] = true
		e.judge(d)
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(e.expected)) {
		if seen[name] {
			continue
		}
		have, err := e.at(e.tree, name)
		if err != nil {
			return err
		}
		switch want := e.expected[name]; {
		case want == "" && !have.none():
			e.altered(name, "should have been deleted")
		case want != "" && have.hash.String() != want:
			e.altered(name, "is not what the definitions and the recorded inputs give")
		}
	}
	return nil
}

// judge is about one file that the commit changed.
func (e *examination) judge(d difference) {
	if folder, g := e.givenFor(d.path); g != nil {
		e.judgeGiven(d, strings.TrimPrefix(d.path, folder+"/"), g)
		return
	}
	want, known := e.expected[d.path]
	if blob, ok := e.recorded[d.path]; ok && !known {
		want, known = blob, true
	}
	switch {
	case !known && d.before.none():
		e.altered(d.path, "was added, and does not follow from the definitions and the recorded inputs")
	case !known:
		e.altered(d.path, "was changed, which does not follow from the definitions and the recorded inputs")
	case want == "" && !d.after.none():
		e.altered(d.path, "should have been deleted")
	case want == "":
	case d.after.none():
		e.altered(d.path, "was deleted, but the definitions and the recorded inputs give it")
	case d.after.hash.String() != want:
		e.altered(d.path, "is not what the definitions and the recorded inputs give")
	case d.after.mode != modeFile:
		e.altered(d.path, "has mode "+d.after.mode+" in place of "+modeFile)
	}
}

// givenFor is the folder that cannot be rendered again and that a file is in.
func (e *examination) givenFor(name string) (string, *given) {
	for folder, g := range e.free {
		if strings.HasPrefix(name, folder+"/") {
			return folder, g
		}
	}
	return "", nil
}

// judgeGiven: where nothing can be rendered again, at least no file may change
// that no record lists. Those that the new one lists are checked already.
func (e *examination) judgeGiven(d difference, file string, g *given) {
	if g.unread || file == lockName {
		return
	}
	_, is := g.after.Files()[file]
	_, was := g.before.Files()[file]
	if !is && !(was && d.after.none()) {
		e.altered(d.path, "was changed, and no "+lockName+" lists it")
	}
}

// expectRoot works out the list of the ResourceSets' folders after some came or went,
// or were put on it again. What somebody else put into the list, or took out, stays
// that way.
func (e *examination) expectRoot(added, removed, again []string) error {
	name := path.Join(e.Target, kustomizationName)
	committed, err := e.committed(e.before)
	if err != nil {
		return err
	}
	m := listing.Merge{Before: committed}
	if m.Current, err = e.text(e.before, kustomizationName); err != nil {
		return err
	}
	m.Now = slices.DeleteFunc(slices.Concat(committed, added), func(dir string) bool { return slices.Contains(removed, dir) })
	now, err := e.text(e.after, kustomizationName)
	if err != nil {
		return err
	}
	m.Before = slices.DeleteFunc(slices.Clone(committed), func(dir string) bool {
		return slices.Contains(again, dir) && strings.Contains(string(now), dir)
	})
	m.Stale = func(entry string) bool {
		if !listing.IsFolder(entry) {
			return false
		}
		have, lookErr := e.at(e.before, entry)
		err = cmp.Or(err, lookErr)
		return have.none()
	}
	list, damaged := listing.Of(m)
	if err != nil {
		return err
	}
	if damaged != nil {
		e.unknown(name, "as the parent commit has it cannot be read: "+damaged.Error())
		return nil
	}
	return e.expectList(name, list)
}

// expectList: of two spellings of a list the one that is there counts.
func (e *examination) expectList(name string, list *listing.List) error {
	have, err := e.at(e.tree, name)
	if err != nil {
		return err
	}
	e.expected[name] = expand.BlobHash(list.Data)
	if plain := expand.BlobHash(list.Plain); have.hash.String() == plain {
		e.expected[name] = plain
	}
	return nil
}

// text is a file below a tree; nil where there is none.
func (e *examination) text(tree plumbing.Hash, name string) ([]byte, error) {
	if tree.IsZero() {
		return nil, nil
	}
	file, err := e.at(tree, name)
	if err != nil || file.none() || file.isDir() {
		return nil, err
	}
	return e.read(plumbing.BlobObject, file.hash)
}

// follows finds the list of a ResourceSet's folder that follows from the records, and
// from what others had made of it before: with all of that kept, with what they took off
// it listed again, or, as earlier versions did that, all as it would be without them. Nil when the one that is there is neither.
func (e *examination) follows(folder string, old, lock *expand.Lock) (*listing.List, error) {
	var lookErr error
	in := func(tree plumbing.Hash) func(string) bool {
		return func(entry string) bool {
			have, err := e.at(tree, path.Join(folder, entry))
			lookErr = cmp.Or(lookErr, err)
			return !have.none()
		}
	}
	m := listing.Merge{Before: old.Resources(), Now: lock.Resources(), Was: in(e.parentTree), Is: in(e.tree)}
	m.Stale = func(entry string) bool { return strings.Count(path.Base(entry), "_") >= 3 && !in(e.parentTree)(entry) }
	current, err := e.text(e.parentTree, path.Join(folder, kustomizationName))
	if err != nil {
		return nil, err
	}
	have, err := e.at(e.tree, path.Join(folder, kustomizationName))
	if err != nil || have.none() || have.mode != modeFile {
		return nil, err
	}
	again, none := m, m
	m.Current, again.Current = current, current
	if kept, damaged := listing.Of(m); damaged == nil {
		again.Before = slices.DeleteFunc(slices.Clone(m.Before), func(entry string) bool { return slices.Contains(kept.Removed, entry) })
	}
	for _, way := range []listing.Merge{m, again, none} {
		list, damaged := listing.Of(way)
		if lookErr != nil {
			return nil, lookErr
		}
		if damaged == nil && slices.Contains([]string{expand.BlobHash(list.Data), expand.BlobHash(list.Plain)}, have.hash.String()) {
			return list, nil
		}
	}
	return nil, nil
}

// rootFollows reports whether the list holds exactly the folders that there are.
func (e *examination) rootFollows(file entry) (bool, error) {
	dirs, err := e.committed(e.after)
	return file.hash.String() == expand.BlobHash(expand.RootKustomization(dirs)), err
}

// committed are the ResourceSets' folders below the target path, sorted: those
// with a record.
func (e *examination) committed(target plumbing.Hash) ([]string, error) {
	namespaces, err := e.list(target)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, namespace := range namespaces {
		if !namespace.isDir() {
			continue
		}
		names, err := e.list(namespace.hash)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if !name.isDir() {
				continue
			}
			lock, err := e.at(name.hash, lockName)
			if err != nil {
				return nil, err
			}
			if !lock.none() && !lock.isDir() {
				dirs = append(dirs, namespace.name+"/"+name.name)
			}
		}
	}
	slices.Sort(dirs)
	return dirs, nil
}
