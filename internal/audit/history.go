// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"resourceset.example/renderer/pkg/expand"
)

// A Filter chooses events; its zero value chooses all.
type Filter struct {
	ResourceSet  string     // namespace/name
	Input        string     // a set's folder, the end of it ("12"), or its id
	Object       *ObjectRef // events that touch its manifest
	Since, Until time.Time  // of committing
}

// History is the timeline of everything below the target path, newest first. What the
// commits did at which a clone begins ([Repository.Begins]) is not known, and not told.
func (r *Repository) History(ctx context.Context, target string, filter Filter) ([]Event, error) {
	watched := target
	if filter.ResourceSet != "" {
		watched = path.Join(target, filter.ResourceSet)
	}
	all, err := r.walk()
	if err != nil {
		return nil, err
	}
	h := &historian{Repository: r, target: target, filter: filter}
	for _, c := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !filter.Since.IsZero() && c.when.Before(filter.Since) || !filter.Until.IsZero() && c.when.After(filter.Until) {
			continue
		}
		if rel := releaseOf(c.message); rel != nil {
			h.released(c, rel)
			continue
		}
		if c.cut {
			continue
		}
		t, err := r.touch(c, watched)
		if err == nil && t != nil {
			err = h.tell(t)
		}
		if err == nil {
			err = h.takenBack(c)
		}
		if err != nil {
			return nil, err
		}
	}
	return h.events, h.err
}

// allInputs is what a release of every set of a ResourceSet names.
const allInputs = "*"

// A historian turns commits into events.
type historian struct {
	*Repository
	target string
	filter Filter
	events []Event
	err    error
}

// released adds the release that a commit records.
func (h *historian) released(c *commit, rel *release) {
	if h.filter.ResourceSet != "" && h.filter.ResourceSet != rel.resourceSet {
		return
	}
	event := newEvent(c, nil)
	event.Kind, event.Renderer, event.ResourceSet, event.Inputs = Released, true, rel.resourceSet, rel.sets
	event.Trigger, event.ReleasedBy = "manual", rel.by
	h.add(event)
}

// tell adds the events of one commit.
func (h *historian) tell(t *touch) error {
	said := claimOf(t.message)
	dirs, files, err := h.changed(t)
	if err != nil {
		return err
	}
	claimed := map[string]bool{}
	if said != nil {
		for _, set := range said.sets {
			claimed[set.resourceSet] = true
		}
	}
	for _, d := range dirs {
		if claimed[d.dir] {
			err = h.rendered(t, said, d)
		} else {
			err = h.edited(t, d)
		}
		if err != nil {
			return err
		}
	}
	if said != nil {
		// The list of the folders changes with them.
		files = slices.DeleteFunc(files, func(d difference) bool { return d.path == kustomizationName })
	}
	return h.foreign(t, "", files)
}

// changed are the folders and other files that a commit touches, as far as the
// filter asks for them.
func (h *historian) changed(t *touch) ([]folderChange, []difference, error) {
	if h.filter.ResourceSet != "" {
		return []folderChange{{dir: h.filter.ResourceSet, before: t.before, after: t.after}}, nil, nil
	}
	return h.folders(t.before, t.after)
}

// rendered adds what a commit of ours did to one ResourceSet's input sets.
func (h *historian) rendered(t *touch, said *claim, d folderChange) error {
	before, after, err := h.lockPair(d.before, d.after)
	if unreadable(err) || err == nil && before == nil && after == nil {
		return h.edited(t, d) // without records: show the files
	}
	if err != nil {
		return err
	}
	old, new := before, after
	if old == nil {
		old = &expand.Lock{}
	}
	if new == nil {
		new = &expand.Lock{}
	}
	event := newEvent(t.commit, said)
	event.ResourceSet = d.dir
	changes := setEvents(event, path.Join(h.target, d.dir), old, new)
	switch {
	case before == nil:
		changes = append(changes, withKind(event, Added))
	case after == nil:
		changes = append(changes, withKind(event, Removed))
	}
	if said.holdsShared(d.dir) {
		held := withKind(event, Held)
		held.Input = sharedFolder
		changes = append(changes, held)
	}
	for _, e := range changes {
		h.add(e)
	}
	if len(changes) == 0 {
		return h.around(event, d, before, after)
	}
	return nil
}

// around adds what a commit did that changed no input set: it undid an edit, or it
// changed what is there for Flux, the record or the list.
func (h *historian) around(event Event, d folderChange, before, after *expand.Lock) error {
	var changed []string
	err := h.differences(d.before, d.after, "", func(f difference) {
		changed = append(changed, f.path)
		event.Files = append(event.Files, FileChange{Path: path.Join(h.target, d.dir, f.path), Change: f.letter()})
		if set, _, below := strings.Cut(f.path, "/"); below && !slices.Contains(event.Inputs, set) {
			event.Inputs = append(event.Inputs, set)
		}
	})
	if err != nil {
		return err
	}
	if event.Kind = aroundKind(event.Reverts, changed, before, after); event.Kind != Restored {
		event.Inputs = nil // it is about the ResourceSet as a whole
	}
	h.add(event)
	return nil
}

// aroundKind is what kind of change it is. Where the record is what it was, manifests
// were written as it lists them.
func aroundKind(undoes string, changed []string, before, after *expand.Lock) EventKind {
	manifest := func(name string) bool { return name != lockName && name != kustomizationName && !belowFlux(name) }
	switch {
	case undoes != "" || slices.ContainsFunc(changed, manifest):
		return Restored
	case !reflect.DeepEqual(before.Flux, after.Flux):
		return Flux
	case slices.ContainsFunc(changed, belowFlux):
		return Restored
	case slices.Contains(changed, lockName):
		return Updated
	}
	return Listed
}

func belowFlux(name string) bool { return strings.HasPrefix(name, fluxFolder+"/") }

// unreadable is a lock that is damaged, or of a newer format.
func unreadable(err error) bool {
	var newer *expand.NewerLockError
	var damaged *expand.DamagedLockError
	return errors.As(err, &newer) || errors.As(err, &damaged)
}

func withKind(e Event, kind EventKind) Event {
	e.Kind = kind
	return e
}

// setEvents compares two locks set by set. The sets that are the same give nothing.
func setEvents(event Event, folder string, old, new *expand.Lock) []Event {
	var events []Event
	before := make(map[string]*expand.LockedSet, len(old.Sets))
	for i := range old.Sets {
		before[old.Sets[i].Name] = &old.Sets[i]
	}
	for i := range new.Sets {
		now := &new.Sets[i]
		was := before[now.Name]
		delete(before, now.Name)
		if e, ok := setEvent(event, folder, was, now); ok {
			events = append(events, e)
		}
	}
	for i := range old.Sets {
		if was := &old.Sets[i]; before[was.Name] != nil {
			e, _ := setEvent(event, folder, was, nil)
			events = append(events, e)
		}
	}
	files := fileChanges(path.Join(folder, sharedFolder), sharedBlobs(old), sharedBlobs(new))
	if len(files) > 0 {
		event.Input, event.Kind, event.Files = sharedFolder, Updated, files
		if len(old.Shared) == 0 {
			event.Kind = Added
		} else if len(new.Shared) == 0 {
			event.Kind = Removed
		}
		events = append(events, event)
	}
	return events
}

// setEvent is what happened to one set; false when nothing did.
func setEvent(event Event, folder string, was, now *expand.LockedSet) (Event, bool) {
	set := now
	if now == nil {
		set = was
	}
	event.Input, event.ID, event.Provider = set.Name, set.ID, set.Provider
	var old, new map[string]string
	switch {
	case was == nil:
		event.Kind, new = Added, now.Files
	case now == nil:
		event.Kind, old = Removed, was.Files
	case now.Kept && !was.Kept:
		event.Kind = Held
		return event, true
	default:
		event.Kind, old, new = Updated, was.Files, now.Files
	}
	event.Fields = fieldChanges(was, now)
	event.Files = fileChanges(path.Join(folder, set.Name), old, new)
	return event, event.Kind != Updated || len(event.Fields) > 0 || len(event.Files) > 0
}

func sharedBlobs(lock *expand.Lock) map[string]string {
	blobs := make(map[string]string, len(lock.Shared))
	for name, file := range lock.Shared {
		blobs[name] = file.Blob
	}
	return blobs
}

// fileChanges compares the files of a folder by their blobs.
func fileChanges(folder string, old, new map[string]string) []FileChange {
	if maps.Equal(old, new) {
		return nil
	}
	var changes []FileChange
	for name, blob := range new {
		if before, had := old[name]; !had {
			changes = append(changes, FileChange{Path: path.Join(folder, name), Change: "A"})
		} else if before != blob {
			changes = append(changes, FileChange{Path: path.Join(folder, name), Change: "M"})
		}
	}
	for name := range old {
		if _, has := new[name]; !has {
			changes = append(changes, FileChange{Path: path.Join(folder, name), Change: "D"})
		}
	}
	slices.SortFunc(changes, func(a, b FileChange) int { return strings.Compare(a.Path, b.Path) })
	return changes
}

// takenBack adds what a merge drops of ours.
func (h *historian) takenBack(c *commit) error {
	drops, err := h.drops(c, h.target)
	if err != nil {
		return err
	}
	for _, d := range drops {
		if h.filter.ResourceSet != "" && h.filter.ResourceSet != d.path {
			continue
		}
		event := newEvent(c, nil)
		event.Kind, event.Reverts = Reverted, d.commit.hash.String()
		if d.dir == nil {
			event.Files = []FileChange{{Path: path.Join(h.target, d.path), Change: d.file.letter()}}
			h.add(event)
			continue
		}
		event.ResourceSet = d.path
		err := h.differences(d.dir.before, d.dir.after, "", func(f difference) {
			event.Files = append(event.Files, FileChange{Path: path.Join(h.target, d.path, f.path), Change: f.letter()})
			if set, _, below := strings.Cut(f.path, "/"); below && !slices.Contains(event.Inputs, set) {
				event.Inputs = append(event.Inputs, set)
			}
		})
		if err != nil {
			return err
		}
		h.add(event)
	}
	return nil
}

// edited adds what somebody else did to a ResourceSet's folder.
func (h *historian) edited(t *touch, d folderChange) error {
	var files []difference
	if err := h.differences(d.before, d.after, "", func(f difference) { files = append(files, f) }); err != nil {
		return err
	}
	return h.foreign(t, d.dir, files)
}

// foreign adds an event for files that renderer did not change; dir is empty for
// those that are in no ResourceSet's folder.
func (h *historian) foreign(t *touch, dir string, files []difference) error {
	prefix := ""
	if dir != "" && h.filter.ResourceSet == "" {
		prefix = dir + "/"
	}
	for i := range files {
		files[i].path = prefix + files[i].path
	}
	files, err := h.unmerged(t, files)
	if err != nil || len(files) == 0 {
		return err
	}
	event := newEvent(t.commit, nil)
	event.ResourceSet, event.Kind, event.Reverts = dir, Edited, reverts(t.message)
	if event.Reverts != "" {
		event.Kind = Reverted
	}
	root := h.target
	if h.filter.ResourceSet != "" {
		root = path.Join(h.target, dir)
	}
	for _, f := range files {
		event.Files = append(event.Files, FileChange{Path: path.Join(root, f.path), Change: f.letter()})
		set, _, below := strings.Cut(strings.TrimPrefix(f.path, prefix), "/")
		if dir != "" && below && !slices.Contains(event.Inputs, set) {
			event.Inputs = append(event.Inputs, set)
		}
	}
	h.add(event)
	return nil
}

// add keeps an event that the filter asks for.
func (h *historian) add(e Event) {
	if want := h.filter.Input; want != "" {
		named := func(folder string) bool { return folder == want || strings.HasSuffix(folder, "-"+want) }
		if !named(e.Input) && e.ID != want && !slices.ContainsFunc(e.Inputs, named) && !slices.Contains(e.Inputs, allInputs) {
			return
		}
	}
	if h.filter.Object != nil {
		found, err := h.concerns(e, h.filter.Object)
		if err != nil && h.err == nil {
			h.err = err
		}
		if !found {
			return
		}
	}
	h.events = append(h.events, e)
}
