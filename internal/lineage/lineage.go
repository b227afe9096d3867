// SPDX-License-Identifier: Apache-2.0

// Package lineage tells which commits are older than others, and what two lines of
// history did since they parted.
//
// Who wins in a merge cannot be told from its first parent: that is the branch on
// which somebody happened to type `git merge`. It cannot be told from times either,
// as clocks differ. What counts is the graph. A state that one side of a merge has
// and the other side never had since both parted ([Graph.Side]) was made on the one
// side alone; a merge without it has dropped it.
//
// A [Graph] may end early, as the history of a shallow clone does. Its answers say
// whether they rest on all that they needed.
package lineage

import (
	"container/heap"

	"github.com/go-git/go-git/v5/plumbing"
)

// A Graph is the history below one commit.
type Graph struct {
	parents    map[plumbing.Hash][]plumbing.Hash
	cut        map[plumbing.Hash]bool // commits whose parents are not all known
	generation map[plumbing.Hash]int  // greater than that of every parent
}

// Parents are those of a commit, and whether they are known at all.
type Parents func(plumbing.Hash) (list []plumbing.Hash, known bool, err error)

// New reads the history below head, nearest commits first: the parents of at most limit
// commits, or of all if limit is zero.
func New(head plumbing.Hash, limit int, parents Parents) (*Graph, error) {
	g := &Graph{parents: map[plumbing.Hash][]plumbing.Hash{}, cut: map[plumbing.Hash]bool{}, generation: map[plumbing.Hash]int{}}
	seen := map[plumbing.Hash]bool{head: true}
	for queue := []plumbing.Hash{head}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		list, known, err := parents(at)
		if err != nil {
			return nil, err
		}
		if !known || limit > 0 && len(g.parents) >= limit {
			list, g.cut[at] = nil, true
		}
		g.parents[at] = list
		for _, parent := range list {
			if !seen[parent] {
				seen[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	g.number(head)
	return g, nil
}

// number gives every commit its generation.
func (g *Graph) number(head plumbing.Hash) {
	for stack := []plumbing.Hash{head}; len(stack) > 0; {
		top, deepest, ready := stack[len(stack)-1], 0, true
		for _, parent := range g.parents[top] {
			if g.generation[parent] == 0 {
				stack, ready = append(stack, parent), false
			}
			deepest = max(deepest, g.generation[parent])
		}
		if ready {
			g.generation[top] = deepest + 1
			stack = stack[:len(stack)-1]
		}
	}
}

// Has reports whether a commit is in the graph.
func (g *Graph) Has(commit plumbing.Hash) bool { return g.generation[commit] > 0 }

// Generation orders commits: it is greater than that of every ancestor. It is zero for
// a commit that is not in the graph.
func (g *Graph) Generation(commit plumbing.Hash) int { return g.generation[commit] }

// Precedes reports whether commit a is in the history of b, and not b itself.
func (g *Graph) Precedes(a, b plumbing.Hash) bool {
	if a == b || !g.Has(a) {
		return false
	}
	seen := map[plumbing.Hash]bool{b: true}
	for queue := []plumbing.Hash{b}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == a {
			return true
		}
		if g.generation[queue[0]] <= g.generation[a] {
			continue // a is not below it
		}
		for _, parent := range g.parents[queue[0]] {
			if !seen[parent] {
				seen[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	return false
}

// Of which tip a commit has been reached, while two lines are compared.
const (
	fromTip = 1 << iota
	fromOther
	belowBase // it is in the history of a commit at which the lines part
	fromBoth  = fromTip | fromOther
)

// Side are the commits of tip's line since it parted from other's: those that are not
// in other's history, newest first, and then the newest that both share. It is not
// complete when history that would be needed is not in the graph. The cost grows with
// what happened since, not with the age of the repository.
func (g *Graph) Side(tip, other plumbing.Hash) (side []plumbing.Hash, complete bool) {
	if !g.Has(tip) || !g.Has(other) {
		return []plumbing.Hash{tip}, false
	}
	complete = true
	reached := map[plumbing.Hash]int{}
	queue := &byGeneration{of: g.generation}
	open := 0 // in the queue, and not known to be below a base
	reach := func(at plumbing.Hash, from int) {
		before, queued := reached[at]
		reached[at] = before | from
		switch {
		case !queued && from&belowBase == 0:
			open++
		case queued && before&belowBase == 0 && from&belowBase != 0:
			open--
		}
		if !queued {
			heap.Push(queue, at)
		}
	}
	reach(tip, fromTip)
	reach(other, fromOther)
	var bases []plumbing.Hash
	for open > 0 {
		at := heap.Pop(queue).(plumbing.Hash) // all its descendants are done: what reaches it is settled
		from := reached[at]
		switch {
		case from&belowBase != 0:
		case from&fromBoth == fromBoth:
			open--
			bases = append(bases, at)
			from |= belowBase
		default:
			open--
			if from == fromTip {
				side = append(side, at)
			}
			complete = complete && !g.cut[at]
		}
		for _, parent := range g.parents[at] {
			reach(parent, from)
		}
	}
	return append(side, bases...), complete
}

// byGeneration is a heap of commits, descendants before ancestors.
type byGeneration struct {
	commits []plumbing.Hash
	of      map[plumbing.Hash]int
}

func (q *byGeneration) Len() int           { return len(q.commits) }
func (q *byGeneration) Less(i, j int) bool { return q.of[q.commits[i]] > q.of[q.commits[j]] }
func (q *byGeneration) Swap(i, j int)      { q.commits[i], q.commits[j] = q.commits[j], q.commits[i] }
func (q *byGeneration) Push(c any)         { q.commits = append(q.commits, c.(plumbing.Hash)) }
func (q *byGeneration) Pop() any {
	last := len(q.commits) - 1
	c := q.commits[last]
	q.commits = q.commits[:last]
	return c
}
