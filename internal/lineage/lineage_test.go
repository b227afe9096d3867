// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// graphOf reads "M: P C; C: B; …": commits by one-letter names, with their parents.
func graphOf(t *testing.T, text string, limit int) *Graph {
	t.Helper()
	parents := map[plumbing.Hash][]plumbing.Hash{}
	var head plumbing.Hash
	for line := range strings.SplitSeq(text, ";") {
		name, rest, _ := strings.Cut(line, ":")
		list := []plumbing.Hash{}
		for _, p := range strings.Fields(rest) {
			list = append(list, hashOf(p))
		}
		at := hashOf(strings.TrimSpace(name))
		if head.IsZero() {
			head = at
		}
		parents[at] = list
	}
	g, err := New(head, limit, func(h plumbing.Hash) ([]plumbing.Hash, bool, error) {
		list, known := parents[h]
		return list, known, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func hashOf(name string) plumbing.Hash {
	return plumbing.ComputeHash(plumbing.BlobObject, []byte(name))
}

func namesOf(list []plumbing.Hash) string {
	var b strings.Builder
	for _, h := range list {
		for c := 'A'; c <= 'Z'; c++ {
			if hashOf(string(c)) == h {
				b.WriteRune(c)
			}
		}
	}
	return b.String()
}

func TestSide(t *testing.T) {
	for _, c := range []struct {
		graph, tip, other, want string
		incomplete              bool
	}{
		{graph: "M: P C; P: B; C: B; B: A; A:", tip: "P", other: "C", want: "PB"},
		{graph: "M: P C; P: B; C: B; B: A; A:", tip: "C", other: "P", want: "CB"},
		{graph: "M: C B; C: B; B: A; A:", tip: "C", other: "B", want: "CB"},
		{graph: "M: C B; C: B; B: A; A:", tip: "B", other: "C", want: "B"},
		// The line took the other one in before: they part at Q, not at B.
		{graph: "M: P Q; P: F Q; F: B; Q: B; B: A; A:", tip: "P", other: "Q", want: "PFQ"},
		// Two roots share nothing.
		{graph: "M: P C; P:; C:", tip: "P", other: "C", want: "P"},
		// What is needed is not there.
		{graph: "M: P C; P: X; C: B; B:", tip: "P", other: "C", want: "PX", incomplete: true},
		{graph: "M: P C; P: B; C: B; B: X", tip: "P", other: "C", want: "PB"},
	} {
		side, complete := graphOf(t, c.graph, 0).Side(hashOf(c.tip), hashOf(c.other))
		if got := namesOf(side); got != c.want || complete == c.incomplete {
			t.Errorf("%s: side of %s against %s is %s (complete %t), want %s", c.graph, c.tip, c.other, got, complete, c.want)
		}
	}
}

func TestLimit(t *testing.T) {
	g := graphOf(t, "M: P C; P: B; C: B; B: A; A: Z; Z:", 4)
	if _, complete := g.Side(hashOf("P"), hashOf("C")); !complete {
		t.Error("four commits hold all that is needed")
	}
	if g = graphOf(t, "M: P C; P: Q; Q: B; C: B; B: A; A:", 3); g.Has(hashOf("A")) {
		t.Error("the limit does not hold")
	}
	if _, complete := g.Side(hashOf("P"), hashOf("C")); complete {
		t.Error("the end of what was read counts as the end of history")
	}
}

// On random graphs the answers are those of plain sets of ancestors.
func TestAgainstSets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 3 + random.IntN(23)
		var lines []string
		ancestors := make([]map[int]bool, n)
		for i := range n {
			ancestors[i] = map[int]bool{i: true}
			line := string(rune('A'+i)) + ":"
			for range min(i, 1+random.IntN(2)) {
				p := i - 1 - random.IntN(min(i, 4))
				line += " " + string(rune('A'+p))
				for a := range ancestors[p] {
					ancestors[i][a] = true
				}
			}
			if i == n-1 { // the head reaches all
				for p := range n - 1 {
					line += " " + string(rune('A'+p))
				}
			}
			lines = append(lines, line)
		}
		slices.Reverse(lines)
		g := graphOf(t, strings.Join(lines, ";"), 0)
		a, b := random.IntN(n-1), random.IntN(n-1)
		name := func(i int) string { return string(rune('A' + i)) }
		var want []string
		for x := range ancestors[a] {
			if !ancestors[b][x] {
				want = append(want, name(x))
				continue
			}
			newest := true
			for y := range n - 1 {
				newest = newest && !(y != x && ancestors[a][y] && ancestors[b][y] && ancestors[y][x])
			}
			if newest {
				want = append(want, name(x))
			}
		}
		slices.Sort(want)
		side, complete := g.Side(hashOf(name(a)), hashOf(name(b)))
		got := strings.Split(namesOf(side), "")
		slices.Sort(got)
		if !slices.Equal(got, want) || !complete {
			t.Fatalf("%s\nside of %s against %s is %v, want %v", strings.Join(lines, "\n"), name(a), name(b), got, want)
		}
		if got, want := g.Precedes(hashOf(name(a)), hashOf(name(b))), a != b && ancestors[b][a]; got != want {
			t.Fatal(fmt.Sprint("precedes is ", got))
		}
	}
}
