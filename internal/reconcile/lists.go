// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/listing"
	"resourceset.example/renderer/pkg/gitwriter"
)

// rootFile is the list of the target path as seen from a ResourceSet's folder. It
// stands for that list among the sets of which a person's changes are looked for.
const rootFile = "../../" + kustomizationFile

// A listed is what people made of the lists that a ResourceSet stands in.
type listed struct {
	list   *listing.List   // of its own folder; nil when there is none, or nobody has touched it
	merge  listing.Merge   // what that is made from
	there  map[string]bool // manifests in the folder
	held   []*TakenBackError
	relist bool   // what somebody took off the list is to be on it again
	inRoot bool   // the folder is to be put on the root's list again
	write  []byte // the list, where nothing else of the folder changes
}

// lookIntoLists finds out what people did to the lists. The folder's own one is of
// interest only where the folder is not as we left it.
func (r *Reconciler) lookIntoLists(pl *plan, base *gitwriter.Snapshot) error {
	pl.lists = listed{}
	if pl.previous == nil || pl.previous.lock == nil || r.accepted.is(pl.dir, pl.previous.tree) || r.delivery != nil && !pl.changed() {
		return nil
	}
	l := &pl.lists
	file := path.Join(r.cfg.Target.Path, pl.dir, kustomizationFile)
	data, err := base.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if l.there, err = r.filesIn(pl, base); err != nil {
		return err
	}
	entries := pl.previous.lock.Resources()
	there := func(entry string) bool { return !isManifest(path.Base(entry)) || l.there[entry] }
	l.merge = listing.Merge{
		Current: data, Before: entries, Now: entries, Was: there, Is: there,
		Stale: func(entry string) bool { return isManifest(path.Base(entry)) && !l.there[entry] },
	}
	if l.list, err = listing.Of(l.merge); err != nil {
		return &rootError{File: file, Err: err}
	}
	return nil
}

// filesIn are the manifests below a ResourceSet's folder, as its list names them.
func (r *Reconciler) filesIn(pl *plan, base *gitwriter.Snapshot) (map[string]bool, error) {
	there := map[string]bool{}
	sets, err := folders(base, path.Join(r.cfg.Target.Path, pl.dir))
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		files, err := r.manifests(base, pl.dir, set.Name)
		if err != nil {
			return nil, err
		}
		for name := range files {
			there[set.Name+"/"+name] = true
		}
	}
	return there, nil
}

// inOrder reports that nobody has touched the folder's list, and that it leads nowhere.
func (l *listed) inOrder() bool {
	return l.list == nil || !l.list.Edited() && bytes.Equal(l.list.Data, l.merge.Current)
}

// searched are the lists from which somebody took something of ours, as sets of which
// people's changes are looked for.
func (l *listed) searched(pl *plan, root *rootList) []string {
	var lists []string
	if l.list != nil && !pl.removed && len(l.list.Removed) > 0 {
		lists = append(lists, kustomizationFile)
	}
	if !pl.removed && slices.Contains(root.list.Removed, pl.dir) {
		lists = append(lists, rootFile)
	}
	return lists
}

// holdLists decides what becomes of entries that somebody took off a list: they stay off,
// unless they were released, or drift is to be restored.
func (r *Reconciler) holdLists(pl *plan, root *rootList, found map[string][]intervention, released map[string]bool) {
	l := &pl.lists
	for _, list := range l.searched(pl, root) {
		if r.cfg.Drift == config.DriftRestore || released[list] {
			l.relist = l.relist || list == kustomizationFile
			l.inRoot = l.inRoot || list == rootFile
			continue
		}
		held := &TakenBackError{ResourceSet: pl.name, Set: kustomizationFile}
		if list == rootFile {
			held.Unlisted = "the ResourceSet is not listed in " + root.file
		} else {
			held.Unlisted = enumerate(l.list.Removed, 3) + " not listed in " + path.Join(r.cfg.Target.Path, pl.dir, kustomizationFile)
		}
		if list := found[list]; len(list) > 0 {
			held.Commit, held.Who = list[0].commit, list[0].who
		}
		l.held = append(l.held, held)
	}
	if r.cfg.Drift == config.DriftRestore {
		pl.restores = newestOf(found)
	}
	delete(found, kustomizationFile)
	delete(found, rootFile)
}

// settleLists makes the folder's list what it is to be: what people made of it, with
// what the plan adds and takes away.
func (r *Reconciler) settleLists(pl *plan) {
	l := &pl.lists
	for _, held := range l.held {
		pl.fail(pl.pos, "", held)
		r.reconsider(pl)
	}
	if l.list == nil || pl.removed {
		return
	}
	m := l.merge
	if pl.out != nil {
		m.Now = pl.out.Lock.Resources()
		m.Is = func(entry string) bool { return pl.out.Write[entry] != nil || m.Was(entry) }
	}
	if l.relist {
		m.Before = without(m.Before, l.list.Removed)
	}
	list, err := listing.Of(m)
	if err != nil {
		return // it could be read before
	}
	same := bytes.Equal(list.Data, l.merge.Current)
	switch {
	case pl.out != nil && pl.out.Changed():
		delete(pl.out.Write, kustomizationFile)
		if !same {
			pl.out.Write[kustomizationFile] = list.Data
		}
	case !same && r.delivery == nil:
		l.write = list.Data
	}
	if len(list.Added)+len(list.Fields) > 0 {
		pl.warnings = append(pl.warnings, &Problem{Pos: pl.pos, Object: pl.object, Err: &listError{
			File: path.Join(r.cfg.Target.Path, pl.dir, kustomizationFile), Added: list.Added, Fields: list.Fields,
		}})
	}
}

// without is a list less some of its entries: to a merge those were never listed, so
// that it lists them, and leaves alone what else people did to the file.
func without(list, some []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(entry string) bool { return slices.Contains(some, entry) })
}

// A listError is what others added to a list: it stays.
type listError struct {
	File          string
	Added, Fields []string
}

func (e *listError) Error() string {
	var parts []string
	if len(e.Added) > 0 {
		parts = append(parts, "the resources "+enumerate(e.Added, 3))
	}
	if len(e.Fields) > 0 {
		parts = append(parts, "the fields "+enumerate(e.Fields, 3))
	}
	return fmt.Sprintf("%s has %s, which are somebody else's: they stay", e.File, strings.Join(parts, " and "))
}
