// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"slices"
)

// Empty says whether there is no object at all that is a definition.
func (d *Definitions) Empty() bool {
	return len(d.ResourceSets)+len(d.Providers)+len(d.Receivers) == 0
}

// Sort orders objects by namespace and name, and faults and warnings by file and
// line. What is equal keeps its order.
func (d *Definitions) Sort() {
	slices.SortStableFunc(d.ResourceSets, func(a, b *ResourceSet) int { return compareMeta(&a.Meta, &b.Meta) })
	slices.SortStableFunc(d.Providers, func(a, b *ResourceSetInputProvider) int { return compareMeta(&a.Meta, &b.Meta) })
	slices.SortStableFunc(d.Receivers, func(a, b *Receiver) int { return compareMeta(&a.Meta, &b.Meta) })
	slices.SortStableFunc(d.ConfigMaps, func(a, b *ConfigMap) int { return compareMeta(&a.Meta, &b.Meta) })
	slices.SortStableFunc(d.Faults, compareFaults)
	slices.SortStableFunc(d.Warnings, compareFaults)
}

func compareMeta(a, b *Meta) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func compareFaults(a, b *Fault) int {
	return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line))
}

// CheckDuplicates reports objects that are declared twice: of the same kind,
// namespace and name. The first one found stays, so that the others of its kind
// are not disturbed; which one is meant only the user knows, hence a fault.
func (d *Definitions) CheckDuplicates() {
	d.ResourceSets = unique(d, d.ResourceSets, func(r *ResourceSet) *Meta { return &r.Meta })
	d.Providers = unique(d, d.Providers, func(p *ResourceSetInputProvider) *Meta { return &p.Meta })
	d.Receivers = unique(d, d.Receivers, func(r *Receiver) *Meta { return &r.Meta })
}

func unique[T interface{ String() string }](d *Definitions, objects []T, meta func(T) *Meta) []T {
	type id struct{ namespace, name string }
	first := make(map[id]Position, len(objects))
	kept := objects[:0:0]
	for _, o := range objects {
		m := meta(o)
		if at, twice := first[id{m.Namespace, m.Name}]; twice {
			if at == m.Pos {
				continue // one file that was read twice, by its name and in its folder
			}
			d.Faults = append(d.Faults, &Fault{
				Pos: m.Pos, Object: o.String(), Msg: "declared twice, first at " + at.String(),
				Hint: "remove one of them, or give it another name",
			})
			continue
		}
		first[id{m.Namespace, m.Name}] = m.Pos
		kept = append(kept, o)
	}
	return kept
}
