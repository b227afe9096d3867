// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"resourceset.example/renderer/pkg/api"
)

// Options say how strictly Render judges what comes out, and what it may take from elsewhere.
type Options struct {
	Structure StructureGuard
	// ConfigMaps are those of the definitions, by "namespace/name", for objects that
	// take data from them.
	ConfigMaps map[string]*api.ConfigMap
}

// StructureGuard says what happens when an input value changes the structure of
// the output, as a text with a line break does that is not quoted.
type StructureGuard int

// How the structure of the output is guarded.
const (
	StructureOff     StructureGuard = iota // not looked at
	StructureWarn                          // reported as a warning
	StructureEnforce                       // the set fails
)

// Render executes the templates for every set. Without sets it renders once, with
// empty inputs, unless the ResourceSet gets its inputs from somewhere. A set that
// fails is among Failed, and the others are rendered all the same.
func (p *Program) Render(ctx context.Context, sets []Set, opts Options) *Rendering {
	if len(sets) == 0 && p.hasInputs() {
		return &Rendering{}
	}
	jobs := sets
	if len(sets) == 0 {
		jobs = []Set{{Inputs: api.Input{}}}
	}
	results := p.renderAll(ctx, jobs, opts)
	if err := ctx.Err(); err != nil {
		return &Rendering{Failed: []SetError{{Set: -1, Err: err}}}
	}
	return p.assemble(jobs, results, len(sets) > 0, opts)
}

// hasInputs says that the ResourceSet is rendered once per input set, if there are any.
func (p *Program) hasInputs() bool {
	return len(p.rs.Spec.Inputs) > 0 || len(p.rs.Spec.InputsFrom) > 0
}

// A setResult is what one set rendered to: the objects of each part, or an error.
type setResult struct {
	objects  [][]Object
	warnings []doubt
	err      error
}

// renderAll renders the sets on all processors. The results are in their order.
func (p *Program) renderAll(ctx context.Context, sets []Set, opts Options) []setResult {
	results := make([]setResult, len(sets))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(sets)) {
		wg.Go(func() {
			w := p.newWorker(ctx, p.parts...)
			w.opts = opts
			for {
				i := int(next.Add(1)) - 1
				if i >= len(sets) || ctx.Err() != nil {
					return
				}
				results[i] = w.renderSet(&sets[i])
			}
		})
	}
	wg.Wait()
	return results
}

// assemble puts the objects into the operator's order: part by part, in each part
// set by set. The first object of an identity wins.
func (p *Program) assemble(sets []Set, results []setResult, withSets bool, opts Options) *Rendering {
	r := &Rendering{}
	failed := make(map[int]error)
	for i := range results {
		if results[i].err != nil {
			failed[i] = results[i].err
		}
	}
	r.Warnings = p.doubts(sets, results)
	merge := p.merge(sets, results, failed, withSets)
	for len(merge.blamed) > 0 {
		maps.Copy(failed, merge.blamed)
		merge = p.merge(sets, results, failed, withSets)
	}
	r.Objects = merge.objects
	r.Looked = resolveReferences(p.rs, r.Objects, opts.ConfigMaps)
	r.Warnings = append(r.Warnings, merge.warnings...)
	if merge.err != nil {
		r.Objects = nil
		r.Failed = append(r.Failed, SetError{Set: -1, Err: merge.err})
	}
	for i, err := range failed {
		r.Failed = append(r.Failed, SetError{Set: i, Err: err})
	}
	if !withSets {
		for i := range r.Failed {
			r.Failed[i].Set = -1
		}
	}
	slices.SortFunc(r.Failed, func(a, b SetError) int { return cmp.Compare(a.Set, b.Set) })
	return r
}

// merge collects the objects of the sets that did not fail.
func (p *Program) merge(sets []Set, results []setResult, failed map[int]error, withSets bool) *merge {
	total := 0
	for i := range results {
		for _, objects := range results[i].objects {
			total += len(objects)
		}
	}
	m := newMerge(p, sets, withSets, total)
	for n, part := range p.parts {
		for i := range results {
			if failed[i] != nil {
				continue
			}
			for _, object := range results[i].objects[n] {
				m.add(part, i, object)
			}
		}
	}
	return m
}

// doubts makes one warning of those that are about the same place of a template.
// The first set that has it is named.
func (p *Program) doubts(sets []Set, results []setResult) []*api.Fault {
	type place struct {
		part int
		path string
	}
	first := make(map[place]*api.Fault)
	more := make(map[place]int)
	var order []place
	for i := range results {
		for _, d := range results[i].warnings {
			at := place{d.part, d.path}
			if first[at] != nil {
				more[at]++
				continue
			}
			order = append(order, at)
			part := p.parts[d.part]
			first[at] = p.warning(part, sets[i].Origin, d.msg, d.hint)
			first[at].Pos = p.fieldPos(part, d.path)
		}
	}
	var warnings []*api.Fault
	for _, at := range order {
		if n := more[at]; n > 0 {
			first[at].Msg += fmt.Sprintf(" (and %d more input sets)", n)
		}
		warnings = append(warnings, first[at])
	}
	return warnings
}

// warning is a fault that names the template and the input set.
func (p *Program) warning(part *part, origin, msg, hint string) *api.Fault {
	e := p.errorIn(part, 0, msg, hint)
	e.Origin = origin
	pos := e.Pos
	e.Pos, e.Object = api.Position{}, ""
	return &api.Fault{Pos: pos, Object: p.rs.String(), Msg: e.Error(), Hint: hint}
}

// A merge collects objects, one of each identity.
type merge struct {
	p        *Program
	sets     []Set
	withSets bool
	index    map[ObjectID]int // into objects
	parts    []*part          // that objects came from
	objects  []Object
	differ   map[int]bool // objects that sets make differently
	warnings []*api.Fault
	blamed   map[int]error // by index into sets: those that must be left out
	err      error         // the ResourceSet's own fault
}

func newMerge(p *Program, sets []Set, withSets bool, total int) *merge {
	return &merge{p: p, sets: sets, withSets: withSets, index: make(map[ObjectID]int, total), differ: map[int]bool{}, blamed: map[int]error{},
		objects: make([]Object, 0, total), parts: make([]*part, 0, total)}
}

func (m *merge) add(part *part, set int, object Object) {
	at, seen := m.index[object.ID]
	if !seen {
		if m.withSets {
			object.Sets = []int{set}
		}
		m.index[object.ID] = len(m.objects)
		m.objects = append(m.objects, object)
		m.parts = append(m.parts, part)
		return
	}
	first := m.parts[at]
	kept := &m.objects[at]
	if first.order != part.order {
		m.twoSteps(first, part, kept, set, &object)
		return
	}
	if m.withSets {
		place, found := slices.BinarySearch(kept.Sets, set)
		if !found {
			m.compare(part, at, set, object)
			kept.Sets = slices.Insert(kept.Sets, place, set)
			return
		}
	}
	origin := ""
	if m.withSets {
		origin = m.sets[set].Origin
	}
	m.warnings = append(m.warnings, m.p.warning(part, origin, fmt.Sprintf("%s is there already and is left out", object.ID),
		"only the first object of a group, kind, namespace and name is kept"))
}

// twoSteps is about an object that steps have in common. Where the template names it in
// both, that is the template's fault; else an input named it so, and that set's.
func (m *merge) twoSteps(first, second *part, kept *Object, set int, object *Object) {
	fault := func(origin string) *TemplateError {
		err := m.p.errorIn(second, 0, fmt.Sprintf("%s is in two steps, %q and %q", object.ID, first.step, second.step),
			"an object belongs to one step; remove it from one of them")
		err.Origin = origin
		return err
	}
	blamed := []int{set}
	switch {
	case !m.withSets || object.Static && kept.Static:
		if m.err == nil {
			m.err = fault("")
		}
		return
	case object.Static:
		blamed = kept.Sets
	}
	for _, set := range blamed {
		if m.blamed[set] == nil {
			m.blamed[set] = fault(m.sets[set].Origin)
		}
	}
}

// compare reports an object that two sets make differently, once: one of them does not
// get what it wants. That is how the operator has it, and how two tags with one id
// become one application.
func (m *merge) compare(part *part, at, set int, object Object) {
	kept := &m.objects[at]
	if m.differ[at] || reflect.DeepEqual(kept.Content, object.Content) {
		return
	}
	m.differ[at] = true
	m.warnings = append(m.warnings, m.p.warning(part, "", fmt.Sprintf("%s is made by %s and by %s with different content; that of the first is kept",
		object.ID, m.sets[kept.Sets[0]].Origin, m.sets[set].Origin),
		"put something into its name that tells the input sets apart, or leave what differs out of it"))
}

// failure makes a *TemplateError of what went wrong with a part for one set.
func (p *Program) failure(part *part, set *Set, err error) *TemplateError {
	var e *TemplateError
	var d *defect
	switch {
	case errors.As(err, &e):
	case errors.As(err, &d):
		e = p.errorIn(part, 0, d.msg, d.hint)
		e.Pos = p.fieldPos(part, d.field)
	default:
		e = p.executionError(part, set, err)
	}
	e.Origin = set.Origin
	return e
}
