// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/expand"
)

// A doubt is why a ResourceSet's folder cannot be told from its record.
type doubt struct {
	status Status
	in     string // file below the folder; empty for the folder as a whole
	err    error
}

func (d *doubt) Error() string { return d.err.Error() }
func (d *doubt) Unwrap() error { return d.err }

func (d *doubt) file(folder string) string {
	if d.in == "" {
		return ""
	}
	return path.Join(folder, d.in)
}

func unknownf(format string, args ...any) error {
	return &doubt{status: NotReproducible, err: fmt.Errorf(format, args...)}
}

func alteredLockf(format string, args ...any) error {
	return &doubt{status: Altered, in: lockName, err: fmt.Errorf(format, args...)}
}

// errKept marks the sets that are not rendered because their record says so.
var errKept = errors.New("kept from an earlier rendering")

// renderAgain renders a ResourceSet from its definition and the recorded input
// sets, onto what its folder held before. The error is a *doubt when that cannot
// be done.
func (v *verifier) renderAgain(ctx context.Context, defs *definitions, name string, old, lock *expand.Lock, sharedHeld bool) (*expand.Output, error) {
	if defs.err != nil {
		return nil, &doubt{status: NotReproducible, err: defs.err}
	}
	rs := defs.find(name)
	if rs == nil && len(defs.Faults) == 0 && lock.Flux != nil && old != nil {
		return v.fadeAgain(old, lock)
	}
	if rs == nil || expand.Dir(rs) != name {
		if len(defs.Faults) > 0 {
			return nil, unknownf("ResourceSet %s is not among the definitions that can be read: %w", name, defs.Faults[0])
		}
		return nil, unknownf("ResourceSet %s is not defined below %s at the source revision", name, path.Join("/", v.SourcePath))
	}
	program, err := v.program(rs)
	if err != nil {
		return nil, unknownf("the templates of ResourceSet %s cannot be read by this version: %w", name, err)
	}
	used, err := expand.SelectProviders(rs, defs.Providers)
	if err != nil {
		return nil, &doubt{status: NotReproducible, err: err}
	}
	sets, err := recordedSets(rs, program, used, lock)
	if err != nil {
		return nil, err
	}
	if err := v.absent(ctx, rs, program, defs, lock); err != nil {
		return nil, err
	}
	rendering := renderSets(ctx, program, defs, sets, lock)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	params := expand.LayoutParams{
		ResourceSet: rs, Sets: sets, Rendering: rendering, Previous: old,
		Read: program.Fields().Project, Sensitive: sensitive(used), AllowPlainSecrets: true,
		Flux: &expand.FluxParams{TargetPath: v.Target}, Recorded: lock,
	}
	out, err := expand.Layout(params)
	if err == nil && sharedHeld && !sameShared(out.Lock, lock) {
		// The shared objects were held as they were: all that the record lists are the parent's.
		params.Keep = map[string]string{sharedFolder: "held"}
		if held, e := expand.Layout(params); e == nil && sameShared(held.Lock, lock) {
			out = held
		}
	}
	if record := (*expand.FluxRecordError)(nil); errors.As(err, &record) {
		return nil, alteredLockf("%w", err)
	}
	if err != nil {
		return nil, unknownf("%s cannot be rendered again: %w", rs, err)
	}
	for _, failed := range out.Failed {
		if failed.Set < 0 || !errors.Is(failed.Err, errKept) {
			return nil, unknownf("%s cannot be rendered again from what is recorded: %w", rs, failed.Err)
		}
	}
	restoreKeys(out, lock)
	return out, nil
}

// fadeAgain lays out again what is left of a ResourceSet that is gone: the lists of
// its Flux Kustomizations, by which these prune.
func (v *verifier) fadeAgain(old, lock *expand.Lock) (*expand.Output, error) {
	namespace, name, _ := strings.Cut(lock.ResourceSet, "/")
	keep := map[string]string{}
	for i := range lock.Sets {
		keep[lock.Sets[i].Name] = "kept"
	}
	if len(lock.Shared) > 0 {
		keep[sharedFolder] = "kept"
	}
	out, err := expand.Layout(expand.LayoutParams{
		ResourceSet: &api.ResourceSet{Meta: api.Meta{Namespace: namespace, Name: name}},
		Previous:    old, Rendering: &expand.Rendering{}, Keep: keep,
		Flux: &expand.FluxParams{TargetPath: v.Target}, Recorded: lock,
	})
	if err != nil {
		return nil, alteredLockf("%w", err)
	}
	return out, nil
}

// program is a ResourceSet compiled, once.
func (v *verifier) program(rs *api.ResourceSet) (*expand.Program, error) {
	if known := v.programs[rs]; known != nil {
		return known, nil
	}
	program, err := expand.Compile(rs)
	if err == nil {
		v.programs[rs] = program
	}
	return program, err
}

// recordedSets are the input sets of a lock, in its order, as they are rendered.
// Kept ones are there by name only. The inline sets come from the definition, the
// others from the record; the names must follow from the values.
func recordedSets(rs *api.ResourceSet, program *expand.Program, used []*api.ResourceSetInputProvider, lock *expand.Lock) ([]expand.Set, error) {
	written := &expand.Lock{Keys: lock.Keys}
	for _, set := range lock.Sets {
		if !set.Kept {
			written.Sets = append(written.Sets, set)
		}
	}
	var exports []expand.Export
	for _, obj := range used {
		inputs, err := written.Export(obj.Name)
		if err != nil {
			return nil, unknownf("%w (%s of provider %s)", err, api.AnnotationSensitive, obj.Name)
		}
		exports = append(exports, expand.Export{Kind: api.KindInputProvider, Namespace: obj.Namespace, Name: obj.Name, Type: obj.Spec.Type, Inputs: inputs})
	}
	made, err := program.Sets(exports)
	if err != nil {
		return nil, unknownf("%s: the recorded input sets cannot be combined again: %w", rs, err)
	}
	byName := make(map[string]*expand.Set, len(made))
	for i := range made {
		byName[made[i].Name] = &made[i]
	}
	sets := make([]expand.Set, len(lock.Sets))
	for i := range lock.Sets {
		record := &lock.Sets[i]
		if record.Kept {
			sets[i] = expand.Set{Name: record.Name, ID: record.ID, Origin: "input set " + record.Name}
			continue
		}
		set := byName[record.Name]
		if set == nil {
			return nil, alteredLockf("lists set %s, which does not follow from the definitions and the recorded inputs", record.Name)
		}
		if set.ID != record.ID {
			if rs.Spec.InputStrategy != api.StrategyPermute || len(made) == len(lock.Sets) {
				return nil, alteredLockf("says that set %s has id %s, but that is %s", record.Name, record.ID, set.ID)
			}
			// The id of a permutation counts positions in the providers' lists, and those
			// that failed then are not recorded.
			set.ID, set.Inputs["id"] = record.ID, record.ID
		}
		sets[i] = *set
	}
	return sets, inOrder(rs, made, written)
}

// inOrder checks that the recorded sets are in the order of rendering.
func inOrder(rs *api.ResourceSet, made []expand.Set, written *expand.Lock) error {
	if rs.Spec.InputStrategy == api.StrategyPermute && len(made) != len(written.Sets) {
		return nil // the order of the providers' lists is not known
	}
	at := 0
	for i := range made {
		if at < len(written.Sets) && made[i].Name == written.Sets[at].Name {
			at++
		}
	}
	if at < len(written.Sets) {
		return alteredLockf("set %s is not in its place", written.Sets[at].Name)
	}
	return nil
}

// options are those that the loop renders with.
func (d *definitions) options() expand.Options {
	return expand.Options{Structure: expand.StructureEnforce, ConfigMaps: d.configMaps}
}

// renderSets renders the sets that are not kept.
func renderSets(ctx context.Context, program *expand.Program, defs *definitions, sets []expand.Set, lock *expand.Lock) *expand.Rendering {
	var live []expand.Set
	var index []int // of live in sets
	var kept []expand.SetError
	for i := range sets {
		if lock.Sets[i].Kept {
			kept = append(kept, expand.SetError{Set: i, Err: errKept})
			continue
		}
		live, index = append(live, sets[i]), append(index, i)
	}
	if len(live) == 0 && len(kept) > 0 {
		return &expand.Rendering{Failed: kept}
	}
	rendering := program.Render(ctx, live, defs.options())
	for i := range rendering.Objects {
		object := &rendering.Objects[i]
		object.Sets = slices.Clone(object.Sets)
		for j, set := range object.Sets {
			object.Sets[j] = index[set]
		}
	}
	for i := range rendering.Failed {
		if set := rendering.Failed[i].Set; set >= 0 {
			rendering.Failed[i].Set = index[set]
		}
	}
	rendering.Failed = append(rendering.Failed, kept...)
	return rendering
}

// absent finds inline input sets that have no files although they render. Nobody
// can tell afterwards whether such a set was refused then or taken out since. Of
// providers' sets there is nothing to be known: what is not recorded did not exist.
func (v *verifier) absent(ctx context.Context, rs *api.ResourceSet, program *expand.Program, defs *definitions, lock *expand.Lock) error {
	if rs.Spec.InputStrategy == api.StrategyPermute || len(rs.Spec.Inputs) == 0 {
		return nil
	}
	sets, err := program.Sets(nil)
	if err != nil {
		return nil // said elsewhere
	}
	sets = slices.DeleteFunc(sets, func(s expand.Set) bool { return lock.Set(s.Name) != nil })
	if len(sets) == 0 {
		return nil
	}
	out, err := expand.Layout(expand.LayoutParams{
		ResourceSet: rs, Sets: sets, AllowPlainSecrets: v.AllowPlainSecrets,
		Rendering: program.Render(ctx, sets, defs.options()),
	})
	if err != nil {
		return nil // it fails as a whole
	}
	failed := map[int]bool{}
	for _, f := range out.Failed {
		failed[f.Set] = true
	}
	for i := range sets {
		if !failed[i] {
			return unknownf("%s: %s is defined and renders, but has no files: it was refused then, or taken out since", rs, sets[i].Origin)
		}
	}
	return nil
}

// sensitive are, by provider name, the fields that are recorded as digests.
func sensitive(used []*api.ResourceSetInputProvider) map[string][]string {
	fields := map[string][]string{}
	for _, obj := range used {
		for field := range strings.SplitSeq(obj.Annotations[api.AnnotationSensitive], ",") {
			if field = strings.TrimSpace(field); field != "" {
				fields[obj.Name] = append(fields[obj.Name], field)
			}
		}
	}
	return fields
}

// restoreKeys takes over the recorded names of providers when no set was written:
// then nothing that is recorded shows them.
func restoreKeys(out *expand.Output, lock *expand.Lock) {
	if out.Write[lockName] == nil || len(lock.Keys) == 0 {
		return
	}
	for i := range lock.Sets {
		if !lock.Sets[i].Kept {
			return
		}
	}
	copied := *out.Lock
	copied.Keys = lock.Keys
	out.Write[lockName] = copied.Encode()
}

// sameShared compares the shared files of two locks.
func sameShared(a, b *expand.Lock) bool {
	return maps.EqualFunc(a.Shared, b.Shared, func(x, y expand.SharedFile) bool { return x.Blob == y.Blob })
}

// sameRecord compares what is recorded of a set, but for whether it is kept.
func sameRecord(a, b *expand.LockedSet) bool {
	one, two := *a, *b
	one.Kept, two.Kept = false, false
	one.Part, one.Steps, two.Part, two.Steps = 0, nil, 0, nil // where Flux applies it may change all the same
	return string((&expand.Lock{Sets: []expand.LockedSet{one}}).Encode()) == string((&expand.Lock{Sets: []expand.LockedSet{two}}).Encode())
}
