// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// A rendering is a commit of ours to one ResourceSet, and the definitions that it was
// rendered from.
type rendering struct{ commit, source plumbing.Hash }

// order notes for each commit of ours what was rendered before it.
func (v *verifier) order(all []touch) {
	v.earlier = make(map[plumbing.Hash]map[string]rendering, len(all))
	last := map[string]rendering{}
	for i := range slices.Backward(all) {
		said := claimOf(all[i].message)
		if said == nil || said.source().IsZero() {
			continue
		}
		before := map[string]rendering{}
		for _, set := range said.sets {
			if r, ok := last[set.resourceSet]; ok {
				before[set.resourceSet] = r
			}
			last[set.resourceSet] = rendering{all[i].hash, said.source()}
		}
		v.earlier[all[i].hash] = before
	}
}

// notBack checks that a ResourceSet is not rendered from older definitions than the
// time before: that would follow from them, but nobody wanted them any more.
func (e *examination) notBack(resourceSet string) error {
	before, ok := e.earlier[e.hash][resourceSet]
	if !ok {
		return nil
	}
	back, err := e.Source.precedes(e.said.source(), before.source)
	if back {
		e.altered("", fmt.Sprintf("ResourceSet %s is rendered from older definitions than it was in commit %.10s: %.10s, after %.10s",
			resourceSet, before.commit, e.said.source(), before.source))
	}
	return err
}

// precedes reports whether commit a is in the history of b, and not b itself.
func (r *Repository) precedes(a, b plumbing.Hash) (bool, error) {
	depth, err := r.depths()
	if err != nil || a == b {
		return false, err
	}
	seen := map[plumbing.Hash]bool{b: true}
	for queue := []plumbing.Hash{b}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == a {
			return true, nil
		}
		c := r.commits[queue[0]]
		if c == nil || depth[c.hash] <= depth[a] {
			continue // a is not below it
		}
		for _, parent := range c.parents {
			if !seen[parent] {
				seen[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	return false, nil
}

// depths are how far each commit of the branch is from the first one. Times of
// committing do not tell: clocks differ.
func (r *Repository) depths() (map[plumbing.Hash]int, error) {
	if r.depth != nil {
		return r.depth, nil
	}
	all, err := r.walk()
	if err != nil {
		return nil, err
	}
	r.depth = make(map[plumbing.Hash]int, len(all))
	for _, c := range all {
		for stack := []*commit{c}; len(stack) > 0; {
			top, deepest, ready := stack[len(stack)-1], 0, true
			for _, hash := range top.parents {
				if parent := r.commits[hash]; parent != nil && r.depth[hash] == 0 {
					stack, ready = append(stack, parent), false
				}
				deepest = max(deepest, r.depth[hash])
			}
			if ready {
				r.depth[top.hash] = deepest + 1
				stack = stack[:len(stack)-1]
			}
		}
	}
	return r.depth, nil
}
