// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// handToFlux decides which Kustomizations there are to be, and adds their files.
func (l *layout) handToFlux(lock *Lock) error {
	p, old := l.Flux, l.Previous.Flux
	if p == nil || p.Source == nil && old == nil && l.Recorded == nil {
		return nil
	}
	var err error
	if l.Recorded != nil {
		err = l.adopt(lock)
	} else {
		lock.Flux, err = l.decide(lock)
	}
	if err != nil || lock.Flux == nil {
		return err
	}
	files, err := fluxFiles(l.ResourceSet, p.TargetPath, lock)
	if err != nil {
		return fmt.Errorf("%s: %w", l.ResourceSet, err)
	}
	return l.addFlux(lock, files)
}

// addFlux adds the files for Flux to the others.
func (l *layout) addFlux(lock *Lock, files map[string][]byte) error {
	manifests := make(map[string]string, len(l.out.Files))
	for file := range l.out.Files {
		manifests[path.Base(file)] = file
	}
	lock.Flux.Files = make(map[string]string, len(files))
	for _, file := range slices.Sorted(maps.Keys(files)) {
		name := path.Base(file)
		if other, taken := manifests[name]; taken && isManifestName(name) {
			return fmt.Errorf("%s: %s renders %s, which is the Kustomization that applies it: give it another name",
				l.ResourceSet, path.Dir(other), describeFile(name))
		}
		if err := l.Refused[name]; err != nil && isManifestName(name) {
			return err
		}
		blob := BlobHash(files[file])
		lock.Flux.Files[file] = blob
		l.out.Files[file] = File{Blob: blob, Content: files[file]}
	}
	return nil
}

// entering says that manifests go from the Kustomization of the target path to those
// of the ResourceSet, or that this is given up half-way. They are protected from being
// pruned then, so one that went now would stay in the cluster: its set is kept until
// the handover is over.
func (p *LayoutParams) entering() bool {
	if p.Flux == nil || p.Recorded != nil || p.Previous == nil {
		return false
	}
	old := p.Previous.Flux
	return old != nil && old.Protected != "" || p.Flux.Source != nil && !old.Managed() && hasManifests(p.Previous)
}

// keepLosers keeps every set that would lose a file; false when there is none.
func (p *LayoutParams) keepLosers(out *Output) bool {
	kept := maps.Clone(p.Keep)
	if kept == nil {
		kept = map[string]string{}
	}
	for _, file := range out.Delete {
		folder, _, ok := strings.Cut(file, "/")
		if _, known := kept[folder]; ok && folder != fluxDir && !known {
			kept[folder] = keptForHandover
		}
	}
	more := len(kept) > len(p.Keep)
	p.Keep = kept
	return more
}

const keptForHandover = "its files stay until Flux Kustomizations have taken over"

// adopt takes over what is recorded, in place of decisions.
func (l *layout) adopt(lock *Lock) error {
	if l.Recorded.Flux == nil {
		return nil
	}
	flux := *l.Recorded.Flux
	lock.Flux = &flux
	for i := range lock.Sets {
		if set := l.Recorded.Set(lock.Sets[i].Name); set != nil {
			lock.Sets[i].Part, lock.Sets[i].Steps = set.Part, set.Steps
		}
	}
	for name, file := range lock.Shared {
		recorded := l.Recorded.Shared[name]
		file.Part, file.Step = recorded.Part, recorded.Step
		lock.Shared[name] = file
	}
	return l.checkRecord(lock)
}

// A FluxRecordError is a record of Kustomizations that renderer would not make.
type FluxRecordError struct{ Msg string }

func (e *FluxRecordError) Error() string { return "the record of Flux Kustomizations " + e.Msg }

// checkRecord holds what is recorded against what always holds: there is a
// Kustomization for every manifest, each of them has one of the names that are made,
// and they act as the ResourceSet says.
func (l *layout) checkRecord(lock *Lock) error {
	flux := lock.Flux
	if !flux.Managed() {
		return nil
	}
	parts := map[partKey]bool{}
	for _, part := range flux.Parts {
		known := false
		for g := 0; g <= flux.Generation && !known; g++ {
			known = part.Name == fluxName(l.ResourceSet, part.key(), g)
		}
		if !known {
			return &FluxRecordError{fmt.Sprintf("names %s, which is not what part %d of step %q is called", part.Name, part.Number, part.Step)}
		}
		parts[part.key()] = true
	}
	for file, key := range assignment(lock) {
		if !parts[key] {
			return &FluxRecordError{"has none for " + file}
		}
		if step, ok := l.renderedStep(path.Base(file)); ok && step != key.step {
			return &FluxRecordError{fmt.Sprintf("has %s in step %q, but it belongs to step %q", file, key.step, step)}
		}
	}
	if l.Rendering != nil && len(l.Sets) > 0 && flux.ServiceAccount != l.ResourceSet.Spec.ServiceAccountName {
		return &FluxRecordError{fmt.Sprintf("says service account %q, but the ResourceSet %q", flux.ServiceAccount, l.ResourceSet.Spec.ServiceAccountName)}
	}
	return nil
}

// renderedStep is the step of an object that was rendered now, by its file name.
func (l *layout) renderedStep(name string) (string, bool) {
	if l.steps == nil {
		l.steps = make(map[string]string, len(l.placed))
		for i := range l.placed {
			l.steps[l.placed[i].file] = l.placed[i].object.Step
		}
	}
	step, ok := l.steps[name]
	return step, ok
}

// decide is what becomes of the Kustomizations; nil when none are left.
func (l *layout) decide(lock *Lock) (*LockedFlux, error) {
	p, old := l.Flux, l.Previous.Flux
	next := &LockedFlux{}
	if old != nil {
		next.Source, next.Interval, next.ServiceAccount, next.Generation = old.Source, old.Interval, old.ServiceAccount, old.Generation
		gone := l.leaving(lock)
		for _, part := range old.Retired {
			over := p.Over
			if len(part.Objects) > 0 {
				over = p.FadedOver
			}
			part.Objects = without(part.Objects, gone)
			if !over(part.Since) {
				next.Retired = append(next.Retired, part)
			}
		}
	}
	if p.Source == nil {
		return l.switchOff(lock, next)
	}
	next.Source, next.Interval, next.ServiceAccount, next.After = *p.Source, p.Interval, l.ResourceSet.Spec.ServiceAccountName, p.After
	l.recordSteps(lock)
	if !old.Managed() && hasManifests(l.Previous) {
		// They are applied by the Kustomization of the target path. It must not prune
		// what it no longer finds there.
		switch {
		case old == nil || old.Protected == "":
			next.Protected = p.Now
		case !p.Over(old.Protected):
			next.Protected = old.Protected
		}
		if next.Protected != "" {
			unnumber(lock)
			return next, nil
		}
	}
	return next, l.assign(lock, next)
}

// leaving are the manifests that go with this commit and that nobody else has, by file
// name: their objects are to be pruned.
func (l *layout) leaving(lock *Lock) map[string]bool {
	gone := map[string]bool{}
	if !l.Previous.Flux.Managed() {
		return gone // whoever has them now may not have applied them yet
	}
	for name := range byName(assignment(l.Previous)) {
		gone[name] = l.Flux.Elsewhere == nil || !l.Flux.Elsewhere(name)
	}
	for name := range byName(assignment(lock)) {
		delete(gone, name)
	}
	return gone
}

// without leaves out the stubs of objects whose manifests are gone: Flux waits for the
// Namespaces, cluster roles and types of objects in a list to be there, even for those
// that it is told to ignore, and fails when they are not.
func without(objects []string, gone map[string]bool) []string {
	var rest []string
	for _, text := range objects {
		s, _ := parseStub(text)
		group, _, grouped := strings.Cut(s.apiVersion, "/")
		if !grouped {
			group = ""
		}
		if !gone[FileName(ObjectID{Group: group, Kind: s.kind, Namespace: s.namespace, Name: s.name})] {
			rest = append(rest, text)
		}
	}
	return rest
}

// switchOff retires all parts: the Kustomization of the target path has the manifests
// again.
func (l *layout) switchOff(lock *Lock, next *LockedFlux) (*LockedFlux, error) {
	unnumber(lock)
	for i := range lock.Sets {
		lock.Sets[i].Steps = nil
	}
	for name, file := range lock.Shared {
		file.Step = ""
		lock.Shared[name] = file
	}
	stay := map[string]bool{}
	for file := range l.out.Files {
		stay[path.Base(file)] = true
	}
	if err := l.retire(next, func(FluxPart) bool { return true }, stay); err != nil {
		return nil, err
	}
	if len(next.Retired) == 0 {
		return nil, nil
	}
	return next, nil
}

func unnumber(lock *Lock) {
	for i := range lock.Sets {
		lock.Sets[i].Part = 0
	}
	for name, file := range lock.Shared {
		file.Part = 0
		lock.Shared[name] = file
	}
}

// hasManifests says that a lock lists anything that can be applied.
func hasManifests(lock *Lock) bool {
	return len(lock.Shared) > 0 || slices.ContainsFunc(lock.Sets, func(s LockedSet) bool { return len(s.Files) > 0 })
}

// retire moves parts of the previous record to the retired ones. Those of their
// objects that stay, by file name, are kept alive.
func (l *layout) retire(next *LockedFlux, goes func(FluxPart) bool, stay map[string]bool) error {
	old := l.Previous.Flux
	if old == nil {
		return nil
	}
	files := map[partKey][]string{}
	for file, key := range assignment(l.Previous) {
		name := path.Base(file)
		if stay[name] || l.Flux.Elsewhere != nil && l.Flux.Elsewhere(name) {
			files[key] = append(files[key], file)
		}
	}
	bumped := false
	for _, part := range old.Parts {
		if !goes(part) {
			continue
		}
		retired := RetiredPart{Name: part.Name, Since: l.Flux.Now}
		for _, file := range slices.Sorted(slices.Values(files[part.key()])) {
			objects, err := l.identities(file)
			if err != nil {
				return fmt.Errorf("%s: %s cannot be taken out of Kustomization %s: %w", l.ResourceSet, file, part.Name, err)
			}
			retired.Objects = append(retired.Objects, objects...)
		}
		slices.Sort(retired.Objects)
		retired.Objects = slices.Compact(retired.Objects)
		next.Retired = append(next.Retired, retired)
		if !bumped {
			bumped = true
			next.Generation++ // names are used once
		}
	}
	return nil
}

// identities are the objects in a committed manifest, as a retired part names them.
func (l *layout) identities(file string) ([]string, error) {
	name := path.Base(file)
	for i := range l.placed {
		if l.placed[i].file == name {
			return stubsOf(l.placed[i].object.Content), nil
		}
	}
	if l.Flux.Committed == nil {
		return nil, fmt.Errorf("it cannot be read")
	}
	data, err := l.Flux.Committed(file)
	if err != nil {
		return nil, err
	}
	docs, err := decodeDocuments(data)
	if err != nil {
		return nil, err
	}
	var stubs []string
	for _, doc := range docs {
		if content, ok := doc.(map[string]any); ok {
			stubs = append(stubs, stubsOf(content)...)
		}
	}
	return stubs, nil
}

// stubsOf are the identities of an object, or of the items of a list.
func stubsOf(content map[string]any) []string {
	kind, _ := content["kind"].(string)
	if items, ok := content["items"].([]any); ok && strings.HasSuffix(kind, "List") {
		var stubs []string
		for _, item := range items {
			if object, ok := item.(map[string]any); ok {
				stubs = append(stubs, stubsOf(object)...)
			}
		}
		return stubs
	}
	version, _ := content["apiVersion"].(string)
	metadata, _ := content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if namespace, _ := metadata["namespace"].(string); namespace != "" {
		name = namespace + "/" + name
	}
	return []string{version + " " + kind + " " + name}
}

// A stub is an object of which only the identity counts.
type stub struct{ apiVersion, kind, namespace, name string }

func parseStub(text string) (s stub, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return s, false
	}
	s = stub{apiVersion: parts[0], kind: parts[1], name: parts[2]}
	if namespace, name, namespaced := strings.Cut(s.name, "/"); namespaced {
		s.namespace, s.name = namespace, name
	}
	return s, s.name != ""
}
