// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/internal/lineage"
)

// A rendering is a commit of ours to one ResourceSet, and the definitions that it was
// rendered from.
type rendering struct{ commit, source plumbing.Hash }

// A line is what was rendered last of every ResourceSet, at one commit.
type line map[string]rendering

// order notes for each commit of ours what was rendered before it: on the line that it
// stands on. Parallel branches say nothing about each other, whatever their times are,
// until they are merged; then it is the line whose folder the merge has.
func (v *verifier) order() error {
	all, err := v.walk()
	if err != nil {
		return err
	}
	graph, err := v.lines()
	if err != nil {
		return err
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *commit) int {
		return cmp.Compare(graph.Generation(a.hash), graph.Generation(b.hash))
	})
	children := map[plumbing.Hash]int{}
	for _, c := range all {
		for _, parent := range c.parents {
			children[parent]++
		}
	}
	v.earlier = map[plumbing.Hash]line{}
	lines := map[plumbing.Hash]line{}
	for _, c := range all {
		now := line{}
		for i, parent := range c.parents {
			old := lines[parent]
			if children[parent]--; children[parent] == 0 {
				delete(lines, parent)
			} else if i == 0 {
				old = maps.Clone(old)
			}
			if i == 0 {
				now = old
			} else if err := v.join(c, now, old, graph); err != nil {
				return err
			}
		}
		lines[c.hash] = now
		if said := claimOf(c.message); said != nil && len(c.parents) < 2 && !said.source().IsZero() {
			v.rendered(c, said, now)
		}
	}
	return nil
}

// rendered takes a commit of ours over into its line.
func (v *verifier) rendered(c *commit, said *claim, now line) {
	before := line{}
	for _, set := range said.sets {
		if r, ok := now[set.resourceSet]; ok {
			before[set.resourceSet] = r
		}
		now[set.resourceSet] = rendering{c.hash, said.source()}
	}
	v.earlier[c.hash] = before
}

// join takes over from another parent of a merge what the merge has from there.
func (v *verifier) join(merge *commit, now, other line, graph *lineage.Graph) error {
	for name, theirs := range other {
		ours, known := now[name]
		if ours == theirs {
			continue
		}
		if known && graph.Precedes(theirs.commit, ours.commit) {
			continue
		}
		at, err := v.commit(theirs.commit)
		if err != nil {
			return err
		}
		same, err := v.sameAt(path.Join(v.Target, name), merge, at)
		if err != nil {
			return err
		}
		if same || known && graph.Precedes(ours.commit, theirs.commit) && !v.droppedBy(merge, name) {
			now[name] = theirs
		}
	}
	return nil
}

// droppedBy reports whether a merge took the folder of a ResourceSet back.
func (v *verifier) droppedBy(merge *commit, name string) bool {
	drops, err := v.drops(merge, v.Target)
	return err == nil && slices.ContainsFunc(drops, func(d drop) bool { return d.path == name })
}

// sameAt reports whether two commits have the same at a path.
func (r *Repository) sameAt(name string, a, b *commit) (bool, error) {
	one, err := r.at(a.tree, name)
	if err != nil {
		return false, err
	}
	other, err := r.at(b.tree, name)
	return one == other, err
}

// notBack checks that a ResourceSet is not rendered from older definitions than the
// time before: that would follow from them, but nobody wanted them any more.
func (e *examination) notBack(resourceSet string) error {
	before, ok := e.earlier[e.hash][resourceSet]
	if !ok {
		return nil
	}
	graph, err := e.Source.lines()
	if err != nil {
		return err
	}
	if graph.Precedes(e.said.source(), before.source) {
		e.altered("", fmt.Sprintf("ResourceSet %s is rendered from older definitions than it was in commit %.10s: %.10s, after %.10s",
			resourceSet, before.commit, e.said.source(), before.source))
	}
	return nil
}

// lines is the graph of the branch's history.
func (r *Repository) lines() (*lineage.Graph, error) {
	if r.graph != nil {
		return r.graph, nil
	}
	if _, err := r.walk(); err != nil {
		return nil, err
	}
	graph, err := lineage.New(r.head, 0, func(hash plumbing.Hash) ([]plumbing.Hash, bool, error) {
		c := r.commits[hash] // walk has been there
		return c.parents, !c.cut, nil
	})
	r.graph = graph
	return graph, err
}
