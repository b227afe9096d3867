// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// assignment is the part of every manifest that a lock lists, by its path.
func assignment(lock *Lock) map[string]partKey {
	parts := map[string]partKey{}
	for i := range lock.Sets {
		set := &lock.Sets[i]
		for name := range set.Files {
			parts[set.Name+"/"+name] = partKey{set.Steps[name], max(set.Part, 1)}
		}
	}
	for name, file := range lock.Shared {
		parts[sharedDir+"/"+name] = partKey{file.Step, max(file.Part, 1)}
	}
	return parts
}

// byName is an assignment by file names: these stand for objects, and stay when a
// manifest moves from one folder to another.
func byName(parts map[string]partKey) map[string]partKey {
	named := make(map[string]partKey, len(parts))
	for file, key := range parts {
		named[path.Base(file)] = key
	}
	return named
}

// recordSteps notes the step of every manifest. What is kept from an earlier
// rendering keeps its step; where that is unknown it counts with the first.
func (l *layout) recordSteps(lock *Lock) {
	steps := l.ResourceSet.Spec.Steps
	step := func(name, recorded string) string {
		if s, ok := l.renderedStep(name); ok {
			return s
		}
		if recorded == "" && len(steps) > 0 {
			return steps[0].Name
		}
		return recorded
	}
	for i := range lock.Sets {
		set := &lock.Sets[i]
		before := set.Steps
		set.Steps = nil
		for name := range set.Files {
			if s := step(name, before[name]); s != "" {
				if set.Steps == nil {
					set.Steps = make(map[string]string, len(set.Files))
				}
				set.Steps[name] = s
			}
		}
	}
	for name, file := range lock.Shared {
		file.Step = step(name, l.Previous.Shared[name].Step)
		lock.Shared[name] = file
	}
}

// assign gives every manifest its part. An input set that had a number keeps it, and
// so does an object; a new set gets the first number whose parts have room for it.
func (l *layout) assign(lock *Lock, next *LockedFlux) error {
	old := map[string]partKey{}
	if l.Previous.Flux.Managed() {
		old = byName(assignment(l.Previous))
	}
	count := map[partKey]int{}
	n := &numbering{old: old, count: count}
	var newSets []*LockedSet
	for i := range lock.Sets {
		set := &lock.Sets[i]
		if before := l.previous[set.Name]; before != nil && l.Previous.Flux.Managed() {
			set.Part = max(before.Part, 1)
		} else if set.Part = n.known(set.Files); set.Part == 0 {
			newSets = append(newSets, set)
			continue
		}
		n.add(set.Files, set.Steps, set.Part)
	}
	var newShared []string
	for name, file := range lock.Shared {
		if file.Part = old[name].number; file.Part == 0 {
			newShared = append(newShared, name)
			continue
		}
		count[partKey{file.Step, file.Part}]++
		lock.Shared[name] = file
	}
	slices.Sort(newShared)
	for _, name := range newShared {
		file := lock.Shared[name]
		file.Part = n.room(map[string]int{file.Step: 1})
		count[partKey{file.Step, file.Part}]++
		lock.Shared[name] = file
	}
	for _, set := range newSets {
		sizes := map[string]int{}
		for name := range set.Files {
			sizes[set.Steps[name]]++
		}
		set.Part = n.room(sizes)
		n.add(set.Files, set.Steps, set.Part)
	}
	return l.keepParts(lock, next, old)
}

// keepParts keeps the Kustomizations that lose nothing to others, retires the rest,
// and makes new ones for what has none.
func (l *layout) keepParts(lock *Lock, next *LockedFlux, old map[string]partKey) error {
	now := byName(assignment(lock))
	loses := map[partKey]bool{}
	for name, key := range old {
		if to, stays := now[name]; stays && to != key || !stays && l.Flux.Elsewhere != nil && l.Flux.Elsewhere(name) {
			loses[key] = true
		}
	}
	needed := map[partKey]bool{}
	if len(l.ResourceSet.Spec.Steps) == 0 {
		needed[partKey{"", 1}] = true
	}
	for _, step := range l.ResourceSet.Spec.Steps {
		needed[partKey{step.Name, 1}] = true
	}
	stay := make(map[string]bool, len(now))
	for name, key := range now {
		needed[key], stay[name] = true, true
	}
	goes := func(part FluxPart) bool { return loses[part.key()] || !needed[part.key()] }
	if err := l.retire(next, goes, stay); err != nil {
		return err
	}
	if l.Previous.Flux.Managed() {
		for _, part := range l.Previous.Flux.Parts {
			if !goes(part) {
				next.Parts = append(next.Parts, part)
				delete(needed, part.key())
			}
		}
	}
	for key := range needed {
		next.Parts = append(next.Parts, FluxPart{Name: fluxName(l.ResourceSet, key, next.Generation), Step: key.step, Number: key.number})
	}
	l.sortParts(next.Parts)
	return nil
}

// sortParts puts the steps in their order. What is left of a step that is not defined
// any more comes first: nobody waits for it, and it for nobody.
func (l *layout) sortParts(parts []FluxPart) {
	at := func(step string) int {
		for i := range l.ResourceSet.Spec.Steps {
			if l.ResourceSet.Spec.Steps[i].Name == step {
				return i
			}
		}
		return -1
	}
	slices.SortFunc(parts, func(a, b FluxPart) int {
		return cmp.Or(at(a.Step)-at(b.Step), strings.Compare(a.Step, b.Step), a.Number-b.Number)
	})
}

// A numbering knows how full the parts are.
type numbering struct {
	old   map[string]partKey // by file name
	count map[partKey]int
}

// known is the number of a set under another name: that of its first object which had
// one; 0 if none had.
func (n *numbering) known(files map[string]string) int {
	first := ""
	for name := range files {
		if _, ok := n.old[name]; ok && (first == "" || name < first) {
			first = name
		}
	}
	return n.old[first].number
}

func (n *numbering) add(files, steps map[string]string, number int) {
	for name := range files {
		n.count[partKey{steps[name], number}]++
	}
}

// room is the first number whose parts have room for so many objects of each step. A
// set that is larger than a part gets one for itself.
func (n *numbering) room(sizes map[string]int) int {
	for number := 1; ; number++ {
		fits := true
		for step, size := range sizes {
			has := n.count[partKey{step, number}]
			fits = fits && (has == 0 || has+size <= MaxPartObjects)
		}
		if fits {
			return number
		}
	}
}
