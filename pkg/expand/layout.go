// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// LayoutParams is what Layout makes files of.
type LayoutParams struct {
	ResourceSet *api.ResourceSet
	Sets        []Set
	Rendering   *Rendering
	// Previous is the committed inputs.lock; nil when there is none.
	Previous *Lock
	// Read returns what the templates read of a set's inputs ([Fields.Project]);
	// nothing else is recorded. Nil stands for all of it.
	Read func(api.Input) api.Input
	// Keep names sets whose folders stay as they are committed, whatever was
	// rendered for them, with the reason: a removal that is held back, a hand edit.
	// "shared" stands for the objects of no single set.
	Keep map[string]string
	// Refused are manifests that must not be made, by file name, with the reason:
	// another ResourceSet owns the object ([FindConflicts]). Their sets fail.
	Refused map[string]error
	// Sensitive are, by provider name, the fields that are recorded as digests.
	Sensitive map[string][]string
	// AllowPlainSecrets accepts Secret objects that are not encrypted.
	AllowPlainSecrets bool
	// Flux says how the ResourceSet is handed to Flux; nil for not at all, whatever
	// Previous says.
	Flux *FluxParams
	// Recorded is an inputs.lock whose decisions for Flux are taken over, in place of
	// new ones: what was rendered then is rendered again.
	Recorded *Lock
	// Encode returns the YAML of an object, from a cache perhaps; [Encode] of its
	// content if nil. Several goroutines call it.
	Encode func(Object) ([]byte, error)
}

// An Output is a ResourceSet's folder as it is to be. Paths are relative to that
// folder (see [Dir]) and have slashes.
type Output struct {
	// Write are the files whose content differs from what Previous records,
	// inputs.lock among them. Empty when nothing changed.
	Write map[string][]byte
	// Delete are the files that Previous lists and that are wanted no more, sorted.
	Delete []string
	// Files are all files that there are afterwards, inputs.lock left out: those that
	// were not rendered now, because their sets are kept, have no content.
	Files map[string]File
	// Lock is what inputs.lock holds afterwards: Previous when nothing changed.
	Lock *Lock
	// Changes are in the order of the sets; the removed ones come last.
	Changes []Change
	// Failed are the sets that failed, those of the Rendering included, ascending.
	Failed []SetError
	// Warnings are what the user should know although all went well.
	Warnings []*api.Fault
}

// A File is a manifest or kustomization.yaml.
type File struct {
	Blob    string // the Git blob that it must have
	Content []byte // nil when the file is kept as committed
}

// Changed says that there is something to commit.
func (o *Output) Changed() bool { return len(o.Write)+len(o.Delete) > 0 }

// Layout gives every object a path and finds out what that changes.
//
// An object whose identity depends on no input, or that several sets produce, or
// that was shared before, goes to the folder "shared"; every other one to its set's
// folder. A set that failed keeps its committed files, and a shared object whose
// content came from that set keeps its content. inputs.lock changes only along with
// other files.
//
// The error concerns the ResourceSet as a whole, which then stays as committed.
func Layout(p LayoutParams) (*Output, error) {
	out, err := lay(p)
	for err == nil && p.entering() && p.keepLosers(out) {
		out, err = lay(p)
	}
	return out, err
}

func lay(p LayoutParams) (*Output, error) {
	l := &layout{LayoutParams: p, out: &Output{Files: map[string]File{}}}
	if l.Previous == nil {
		l.Previous = &Lock{}
	}
	if l.Encode == nil {
		l.Encode = func(object Object) ([]byte, error) { return Encode(object.Content) }
	}
	if err := l.judge(); err != nil {
		return nil, err
	}
	l.place()
	unwritten, err := l.encode()
	if err != nil {
		return nil, err
	}
	if len(unwritten) > 0 { // without their objects other sets may share other files
		rendering := *p.Rendering
		rendering.Failed = slices.Concat(rendering.Failed, unwritten)
		p.Rendering = &rendering
		return lay(p)
	}
	l.collect()
	l.keepShared()
	if err := l.finish(); err != nil {
		return nil, err
	}
	return l.out, nil
}

// A setState is what becomes of an input set.
type setState int

const (
	stateWritten setState = iota // its files are those just rendered
	stateKept                    // its files stay as committed
	stateAbsent                  // it failed and has no committed files
)

// layout is one run of Layout.
type layout struct {
	LayoutParams
	out *Output

	states   []setState            // by index into Sets
	failed   map[int]error         // by index into Sets
	previous map[string]*LockedSet // Previous.Sets by name
	gone     []*LockedSet          // of Previous: not among Sets, and kept all the same
	kept     map[string]bool       // names of all kept sets
	allKept  []string              // the same, in Previous' order
	keptFile map[string]bool       // file names in the folders of kept sets
	recorded int                   // how many sets the lock records
	first    string                // the first of them

	placed []placed
	shared map[string]SharedFile
	files  []map[string]string // by index into Sets: file name to blob
	steps  map[string]string   // by file name, of the objects placed; nil until asked for
}

// placed is an object with its place.
type placed struct {
	object *Object
	folder string // a set's name, or sharedDir
	file   string
	owner  int   // index of the set whose folder it is; -1 in sharedDir
	sets   []int // the sets that produced it and are written
	data   []byte
	blob   string
	err    error
}

// judge decides for every set whether it is written, kept or absent.
func (l *layout) judge() error {
	l.failed = map[int]error{}
	var whole []error
	for _, f := range l.Rendering.Failed {
		if f.Set < 0 || f.Set >= len(l.Sets) {
			whole = append(whole, f.Err)
			continue
		}
		l.fail(f.Set, f.Err)
	}
	for i := range l.Rendering.Objects {
		object := &l.Rendering.Objects[i]
		err := l.refusal(object)
		if err == nil {
			continue
		}
		if len(object.Sets) == 0 {
			whole = append(whole, err)
		}
		for _, set := range object.Sets {
			l.fail(set, err)
		}
	}
	if err := l.checkNames(); err != nil {
		whole = append(whole, err)
	}
	if len(whole) > 0 {
		return errors.Join(whole...)
	}
	l.keepCommitted()
	for _, set := range slices.Sorted(maps.Keys(l.failed)) {
		l.out.Failed = append(l.out.Failed, SetError{Set: set, Err: l.failed[set]})
	}
	return nil
}

// keepCommitted finds the sets that are not written, and what they keep.
func (l *layout) keepCommitted() {
	l.states = make([]setState, len(l.Sets))
	l.kept, l.keptFile = map[string]bool{}, map[string]bool{}
	l.previous = make(map[string]*LockedSet, len(l.Previous.Sets))
	for i := range l.Previous.Sets {
		l.previous[l.Previous.Sets[i].Name] = &l.Previous.Sets[i]
	}
	current := make(map[string]bool, len(l.Sets))
	for i := range l.Sets {
		name := l.Sets[i].Name
		current[name] = true
		_, held := l.Keep[name]
		old := l.previous[name]
		switch {
		case l.failed[i] == nil && !held:
		case old != nil:
			l.states[i] = stateKept
			l.keepFiles(old)
		default:
			l.states[i] = stateAbsent
			continue
		}
		if l.recorded == 0 {
			l.first = name
		}
		l.recorded++
	}
	for i := range l.Previous.Sets {
		old := &l.Previous.Sets[i]
		if _, held := l.Keep[old.Name]; held && !current[old.Name] {
			l.gone = append(l.gone, old)
			l.keepFiles(old)
			l.recorded++
		}
		if l.kept[old.Name] {
			l.allKept = append(l.allKept, old.Name)
		}
	}
	if l.first == "" && len(l.gone) > 0 {
		l.first = l.gone[0].Name
	}
}

func (l *layout) fail(set int, err error) {
	if l.failed[set] == nil {
		l.failed[set] = err
	}
}

func (l *layout) keepFiles(old *LockedSet) {
	l.kept[old.Name] = true
	for name := range old.Files {
		l.keptFile[name] = true
	}
}

// checkNames guards what Sets promises: safe folder names, each once.
func (l *layout) checkNames() error {
	seen := make(map[string]int, len(l.Sets))
	for i := range l.Sets {
		name := l.Sets[i].Name
		if !isFolder(name) {
			return fmt.Errorf("%s: %s: %q is no folder name", l.ResourceSet, l.Sets[i].Origin, name)
		}
		if other, twice := seen[name]; twice {
			return fmt.Errorf("%s: %s and %s have the same folder %q",
				l.ResourceSet, l.Sets[other].Origin, l.Sets[i].Origin, name)
		}
		seen[name] = i
	}
	return nil
}

// place gives the objects of written sets their paths.
func (l *layout) place() {
	l.placed = make([]placed, 0, len(l.Rendering.Objects))
	taken := make(map[string]bool, len(l.Rendering.Objects))
	for i := range l.Rendering.Objects {
		object := &l.Rendering.Objects[i]
		p := placed{object: object, owner: -1, folder: sharedDir, file: FileName(object.ID)}
		for _, set := range object.Sets {
			if l.states[set] == stateWritten {
				p.sets = append(p.sets, set)
			}
		}
		if len(object.Sets) > 0 && len(p.sets) == 0 {
			continue
		}
		// Kinds that differ only in the case of letters are the one pair of IDs that
		// a file system could fold.
		if folded := strings.ToLower(p.file); taken[folded] {
			p.file = object.ID.digestedFileName()
		} else {
			taken[folded] = true
		}
		if l.keptFile[p.file] {
			continue // the folder of a kept set has it; a second copy would break every build
		}
		_, wasShared := l.Previous.Shared[p.file]
		if len(object.Sets) == 1 && !object.Static && !wasShared {
			p.owner = p.sets[0]
			p.folder = l.Sets[p.owner].Name
		}
		l.placed = append(l.placed, p)
	}
}

// keepShared adds the shared files that nobody produced now, but that a kept set
// produced earlier.
func (l *layout) keepShared() {
	held := l.sharedHeld()
	for file, old := range l.Previous.Shared {
		if _, produced := l.shared[file]; produced {
			continue
		}
		if held {
			l.shared[file] = old
			continue
		}
		if len(l.keptProducers(old)) > 0 {
			sets, all := l.sharedBy(nil, old, true)
			l.shared[file] = SharedFile{Blob: old.Blob, Sets: sets, All: all}
		}
	}
}

// keptProducers are the producers of a recorded shared file that are kept now.
func (l *layout) keptProducers(file SharedFile) []string {
	if file.All {
		return l.allKept
	}
	var sets []string
	for _, name := range file.Sets {
		if l.kept[name] {
			sets = append(sets, name)
		}
	}
	return sets
}

// keptContent returns a shared file as it is committed, when the set that its
// content came from is kept now: others must not change what that set shares.
func (l *layout) keptContent(p *placed) (SharedFile, bool) {
	old, ok := l.Previous.Shared[p.file]
	if p.owner >= 0 || !ok {
		return SharedFile{}, false
	}
	if l.sharedHeld() {
		return old, true
	}
	first := ""
	if len(old.Sets) > 0 {
		first = old.Sets[0]
	} else if old.All && len(l.Previous.Sets) > 0 {
		first = l.Previous.Sets[0].Name
	}
	return old, l.kept[first]
}

// sharedHeld says that the folder "shared" stays as it is committed.
func (l *layout) sharedHeld() bool {
	_, held := l.Keep[sharedDir]
	return held
}
