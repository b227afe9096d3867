// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"resourceset.example/renderer/pkg/source/provider"
)

// pageSizes are what a server answers: so many items on each page, and what it counts.
type pageSizes struct {
	sizes  []int
	totals []int
	last   int // said on the first page
}

func (s pageSizes) get(_ context.Context, address string, _ *Page[string]) (*Page[string], error) {
	number, err := strconv.Atoi(address)
	if err != nil {
		return nil, err
	}
	p := &Page[string]{}
	for i := range s.sizes[number-1] {
		p.Items = append(p.Items, fmt.Sprintf("%d-%d", number, i))
	}
	p.Keys = p.Items
	if number < len(s.sizes) {
		p.Next = strconv.Itoa(number + 1)
	}
	if len(s.totals) > 0 {
		p.Total = s.totals[number-1]
	}
	if number == 1 {
		p.Last = s.last
	}
	return p, nil
}

// Rule 1: a list that ends before the server's own count is not believed; a count
// never ends one.
func TestRule01_ListsAreHeldToTheirCounts(t *testing.T) {
	for name, test := range map[string]struct {
		server pageSizes
		items  int
		words  string
	}{
		"complete":                    {pageSizes{[]int{100, 5}, []int{105, 105}, 2}, 105, ""},
		"no counts, empty last page":  {pageSizes{[]int{100, 0}, nil, 0}, 100, ""},
		"empty last page":             {pageSizes{[]int{100, 0}, []int{105, 105}, 0}, 0, "ends after 100 of 105"},
		"empty last page, no count":   {pageSizes{[]int{100, 0}, []int{105, 0}, 0}, 0, "ends after 100 of 105"},
		"short page":                  {pageSizes{[]int{240}, []int{250}, 0}, 0, "ends after 240 of 250"},
		"a page too few":              {pageSizes{[]int{100, 100}, nil, 3}, 0, "ends with page 2 of 3"},
		"a page more":                 {pageSizes{[]int{100, 100}, nil, 1}, 200, ""},
		"more than counted":           {pageSizes{[]int{100, 7}, []int{105, 105}, 0}, 107, ""},
		"one left out, and counted":   {pageSizes{[]int{49, 1, 0}, []int{50, 51, 51}, 0}, 50, ""},
		"left out of every page":      {pageSizes{[]int{48, 9, 0}, []int{58, 59, 60}, 0}, 57, ""},
		"left out of a page, and cut": {pageSizes{[]int{49, 0}, []int{50, 51}, 0}, 0, "ends after 49 of 50"},
	} {
		t.Run(name, func(t *testing.T) {
			items, err := New("things", "1", test.server.get).All(t.Context())
			var known *provider.Error
			switch {
			case test.words == "" && (err != nil || len(items) != test.items):
				t.Errorf("%d items, %v; want %d", len(items), err, test.items)
			case test.words != "" && (!errors.As(err, &known) || known.Reason != provider.Implausible || !strings.Contains(err.Error(), test.words)):
				t.Errorf("%d items, %v; want %q", len(items), err, test.words)
			}
		})
	}
}

// A count that is older than the page, as with "not modified", or wrong for a moment
// is asked for again without a validator.
func TestStaleCountsAreReadAgain(t *testing.T) {
	reads, total := 0, 3
	list := New("things", "1", func(_ context.Context, _ string, known *Page[string]) (*Page[string], error) {
		reads++
		if known != nil {
			return known, nil
		}
		p := &Page[string]{Items: []string{"a", "b"}, Keys: []string{"a", "b"}, Total: total}
		total = 2
		return p, nil
	})
	items, err := list.All(t.Context())
	if err != nil || len(items) != 2 || reads != 2 {
		t.Fatalf("%v, %v, %d reads", items, err, reads)
	}
	list.known["1"].Total = 3
	if items, err = list.All(t.Context()); err != nil || len(items) != 2 || reads != 4 {
		t.Errorf("%v, %v, %d reads", items, err, reads)
	}
}

func TestCounts(t *testing.T) {
	for text, want := range map[string]int{"105": 105, " 7 ": 7, "": 0, "-1": 0, "x": 0, "99999999999999999999": 0} {
		if got := Total(&http.Response{Header: http.Header{"X-Total": {text}}}, "X-Total"); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
	for header, want := range map[string]int{
		`<https://x/p?page=2>; rel="next", <https://x/p?page=9>; rel="last"`: 9,
		`<https://x/p?page=2>; rel="next"`:                                   0,
		`<https://x/p?after=abc>; rel="last"`:                                0,
		`<http://[::1>; rel="last"`:                                          0,
	} {
		if got := LastNumber(&http.Response{Header: http.Header{"Link": {header}}}); got != want {
			t.Errorf("%s: %d", header, got)
		}
	}
}

// FR-07: a list that does not end, or repeats itself, is an error that names the page,
// after a bounded number of requests.
func TestRule01_ListsWithoutEnd(t *testing.T) {
	for name, test := range map[string]struct {
		next     func(number int) int // of the page after one; 0 at the end
		item     func(number, reading int) int
		words    string
		requests int
	}{
		"leads to itself":     {func(n int) int { return n }, func(n, _ int) int { return n }, "list of things: it does not end: page 1 leads back to page 1", 1},
		"leads back":          {func(n int) int { return n%3 + 1 }, func(n, _ int) int { return n }, "page 3 leads back to page 1", 3},
		"repeats a page":      {func(n int) int { return n + 1 }, func(n, _ int) int { return min(n, 2) }, "page 3 repeats an item of page 2", 3 * MaxReads},
		"never ends":          {func(n int) int { return n + 1 }, func(n, _ int) int { return n }, "there is a page 1001", MaxPages},
		"always another page": {func(n int) int { return (n + 1) % 3 }, func(n, reading int) int { return n + 10*reading }, "page 1 is not what it was a moment before", 3 * MaxReads},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			_, err := New("things", "1", func(_ context.Context, address string, _ *Page[int]) (*Page[int], error) {
				number, err := strconv.Atoi(address)
				if err != nil {
					return nil, err
				}
				item := test.item(number, requests)
				requests++
				p := &Page[int]{Items: []int{item}, Keys: []string{strconv.Itoa(item)}}
				if next := test.next(number); next != 0 {
					p.Next = strconv.Itoa(next)
				}
				return p, nil
			}).All(t.Context())
			if provider.ReasonOf(err) != provider.Implausible || !strings.Contains(err.Error(), test.words) || requests != test.requests {
				t.Errorf("got %v after %d requests; want %q after %d", err, requests, test.words, test.requests)
			}
		})
	}
}
