// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"reflect"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// lockedSets are the records of all sets that have committed files afterwards.
func (l *layout) lockedSets() []LockedSet {
	sets := make([]LockedSet, 0, len(l.Sets)+len(l.gone))
	for i := range l.Sets {
		switch l.states[i] {
		case stateWritten:
			sets = append(sets, l.record(i))
		case stateKept:
			sets = append(sets, keptRecord(l.previous[l.Sets[i].Name]))
		}
	}
	for _, old := range l.gone {
		sets = append(sets, keptRecord(old))
	}
	return sets
}

func keptRecord(old *LockedSet) LockedSet {
	kept := *old
	kept.Kept = true
	return kept
}

// record is what inputs.lock holds of a set that is written.
func (l *layout) record(i int) LockedSet {
	set := &l.Sets[i]
	locked := LockedSet{Name: set.Name, ID: set.ID, Files: l.files[i]}
	if locked.Files == nil {
		locked.Files = map[string]string{}
	}
	if !isPermuted(set) {
		for _, part := range set.Parts {
			locked.Inline = part.Kind == api.KindResourceSet
			if !locked.Inline {
				locked.Provider = part.Provider
			}
			locked.Inputs = l.values(part, l.read(part.Inputs))
			locked.Sensitive = l.hide(part, locked.Inputs)
		}
		return locked
	}
	nested := make(api.Input, len(set.Parts))
	for _, part := range set.Parts {
		nested[part.Key] = part.Inputs
	}
	nested = l.read(nested)
	locked.Inputs = make(api.Input, len(set.Parts))
	for _, part := range set.Parts {
		read, _ := nested[part.Key].(map[string]any)
		values := l.values(part, read)
		for _, field := range l.hide(part, values) {
			locked.Sensitive = append(locked.Sensitive, part.Key+"/"+field)
		}
		locked.Inputs[part.Key] = values
	}
	slices.Sort(locked.Sensitive)
	return locked
}

// isPermuted says that the parts of a set are below keys.
func isPermuted(set *Set) bool { return len(set.Parts) > 0 && set.Parts[0].Key != "" }

func (l *layout) read(in api.Input) api.Input {
	if l.Read == nil {
		return in
	}
	return l.Read(in)
}

// values adds to the values that templates read those without which the set could
// not be told apart or called by the same name again.
func (l *layout) values(part Part, read api.Input) (values api.Input) {
	values = make(api.Input, len(read)+2)
	maps.Copy(values, read)
	fields := append([]string{"id"}, summedFields(part.Type)...)
	if strings.HasSuffix(part.Type, "Request") {
		fields = append(fields, "sha")
	}
	for _, field := range fields {
		if value, ok := part.Inputs[field]; ok {
			values[field] = value
		}
	}
	delete(values, "provider")
	return values
}

// hide puts digests in place of the sensitive fields and returns their names, sorted.
func (l *layout) hide(part Part, values api.Input) []string {
	if part.Kind == api.KindResourceSet {
		return nil
	}
	var hidden []string
	for _, field := range l.Sensitive[part.Provider] {
		value, ok := values[field]
		if !ok || slices.Contains(hidden, field) {
			continue
		}
		sum := sha256.Sum256(appendYAML([]byte(key(part.Provider, field)), value, 0))
		values[field] = "sha256:" + hex.EncodeToString(sum[:])
		hidden = append(hidden, field)
	}
	slices.Sort(hidden)
	return hidden
}

// keys are the provider names behind the keys that Permute made.
func (l *layout) keys() map[string]string {
	var keys map[string]string
	add := func(key, provider string) {
		if keys == nil {
			keys = map[string]string{}
		}
		keys[key] = provider
	}
	if len(l.kept) > 0 {
		for key, provider := range l.Previous.Keys {
			add(key, provider)
		}
	}
	for i := range l.Sets {
		for _, part := range l.Sets[i].Parts {
			if part.Key != "" && part.Kind != api.KindResourceSet {
				add(part.Key, part.Provider)
			}
		}
	}
	return keys
}

// A ChangeKind says what happens to a set.
type ChangeKind string

// What happens to a set.
const (
	Added   ChangeKind = "added"
	Updated ChangeKind = "updated"
	Removed ChangeKind = "removed"
	// Kept sets failed or are held back; their files stay as committed.
	Kept ChangeKind = "kept"
)

// A Change is what happens to one input set, or to the folder "shared".
type Change struct {
	Kind     ChangeKind
	Set      string // the folder; "shared" for the objects of no single set
	ID       string
	Provider string // empty for an inline set and a permutation
	// Old and New are the recorded inputs, without what no template reads and
	// without sensitive values. Nil where there are none.
	Old, New api.Input
	// Fields are the recorded fields that differ in an updated set, sorted. Without
	// any, the definition changed.
	Fields []string
	// Reason is why a set is kept.
	Reason string
}

// OldSHA is the commit of a change request or branch that was rendered before, or empty.
func (c *Change) OldSHA() string { return sha(c.Old) }

// NewSHA is the commit of a change request or branch that is rendered now, or empty.
func (c *Change) NewSHA() string { return sha(c.New) }

func sha(in api.Input) string {
	text, _ := in["sha"].(string)
	return text
}

// changes compares lock, as it would be, with the previous one.
func (l *layout) changes(lock *Lock) {
	reasons := map[string]string{}
	for i, err := range l.failed {
		reasons[l.Sets[i].Name] = err.Error()
	}
	maps.Copy(reasons, l.Keep)
	wanted := make(map[string]bool, len(lock.Sets))
	for i := range lock.Sets {
		set := &lock.Sets[i]
		wanted[set.Name] = true
		change := Change{Set: set.Name, ID: set.ID, Provider: set.Provider, New: set.Inputs}
		old := l.previous[set.Name]
		switch {
		case old == nil:
			change.Kind = Added
		case l.kept[set.Name]:
			change.Kind, change.Old, change.Reason = Kept, old.Inputs, reasons[set.Name]
		case maps.Equal(old.Files, set.Files):
			continue
		default:
			change.Kind, change.Old = Updated, old.Inputs
			change.Fields = differing(old.Inputs, set.Inputs)
		}
		l.out.Changes = append(l.out.Changes, change)
	}
	l.sharedChange(lock)
	for i := range l.Previous.Sets {
		old := &l.Previous.Sets[i]
		if !wanted[old.Name] {
			l.out.Changes = append(l.out.Changes,
				Change{Kind: Removed, Set: old.Name, ID: old.ID, Provider: old.Provider, Old: old.Inputs})
		}
	}
}

// sharedChange reports what happens to the shared files as one change.
func (l *layout) sharedChange(lock *Lock) {
	same := maps.EqualFunc(l.Previous.Shared, lock.Shared, func(a, b SharedFile) bool { return a.Blob == b.Blob })
	switch {
	case same:
	case len(l.Previous.Shared) == 0:
		l.out.Changes = append(l.out.Changes, Change{Kind: Added, Set: sharedDir})
	case len(lock.Shared) == 0:
		l.out.Changes = append(l.out.Changes, Change{Kind: Removed, Set: sharedDir})
	default:
		l.out.Changes = append(l.out.Changes, Change{Kind: Updated, Set: sharedDir})
	}
}

// differing are the keys that two maps do not share with equal values, sorted.
func differing(a, b api.Input) []string {
	var keys []string
	for key, value := range a {
		if other, ok := b[key]; !ok || !reflect.DeepEqual(value, other) {
			keys = append(keys, key)
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
