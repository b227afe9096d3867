// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"sigs.k8s.io/yaml"

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

// ourEntry is what an entry for a ResourceSet's folder looks like.
var ourEntry = regexp.MustCompile(`^(\./)?[a-z0-9.-]+/[a-z0-9.-]+/?$`)

// expectRoot works out the list of the ResourceSets' folders after some came or
// went. What somebody else put into the list, or took out, stays that way. Where
// others have changed the file, two spellings of one content are possible; then the
// one that is there counts.
func (e *examination) expectRoot(added, removed []string) error {
	name := path.Join(e.Target, kustomizationName)
	committed, err := e.committed(e.before)
	if err != nil {
		return err
	}
	current, doc, err := e.readRoot(e.before)
	if err != nil {
		e.unknown(name, "as the parent commit has it cannot be read: "+err.Error())
		return nil
	}
	dirs, foreign := committed, []string(nil)
	if current != nil {
		dirs = nil
		entries, _ := doc["resources"].([]any)
		for _, value := range entries {
			entry, _ := value.(string)
			switch folder := path.Clean(entry); {
			case slices.Contains(committed, folder):
				dirs = append(dirs, folder)
			default:
				stays, err := e.stays(entry)
				if err != nil {
					return err
				}
				if stays {
					foreign = append(foreign, entry)
				}
			}
		}
	}
	before := slices.Compact(slices.Sorted(slices.Values(dirs)))
	dirs = append(dirs, added...)
	foreign = slices.DeleteFunc(foreign, func(entry string) bool { return slices.Contains(added, path.Clean(entry)) })
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return slices.Contains(removed, dir) })
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)

	want := expand.RootKustomization(dirs)
	if doc != nil && !bytes.Equal(current, expand.RootKustomization(before)) {
		now, _, err := e.readRoot(e.after)
		if err != nil || len(foreign) > 0 || len(doc) > 3 || !bytes.Equal(now, want) {
			entries := []any{}
			for _, entry := range append(slices.Clone(dirs), foreign...) {
				entries = append(entries, entry)
			}
			doc["resources"] = entries
			if other, err := yaml.Marshal(doc); err == nil {
				want = other
			}
		}
	}
	e.expected[name] = expand.BlobHash(want)
	return nil
}

// stays tells an entry of somebody else from one of ours whose folder is gone.
func (e *examination) stays(entry string) (bool, error) {
	if !ourEntry.MatchString(entry) {
		return true, nil
	}
	have, err := e.at(e.before, path.Clean(entry))
	return !have.none(), err
}

// readRoot is the list at the target path, nil where there is none.
func (e *examination) readRoot(target plumbing.Hash) ([]byte, map[string]any, error) {
	if target.IsZero() {
		return nil, nil, nil
	}
	file, err := e.at(target, kustomizationName)
	if err != nil || file.none() || file.isDir() {
		return nil, nil, err
	}
	data, err := e.read(plumbing.BlobObject, file.hash)
	if err != nil {
		return nil, nil, err
	}
	doc := map[string]any{}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, nil, err
	}
	return data, doc, nil
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
