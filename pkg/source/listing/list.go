// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

const (
	// MaxPages is how many pages a list has at most.
	MaxPages = 1000
	// MaxReads is how often a list that moves while it is read is read at most.
	MaxReads = 4
)

// A Page is a part of a list.
type Page[T any] struct {
	Items []T
	// Keys tell the items apart, in the same order.
	Keys []string
	// Next is the address of the following page, as Get takes it; empty at the end.
	Next string
	// Total is how many items the server says the whole list has, perhaps less those
	// that it left out of this page; 0 is unknown.
	Total int
	// Last is the number of the list's last page, as the server says; 0 is unknown.
	Last int
	// ETag is the validator that the server gave, or empty.
	ETag string
}

// equal tells whether two pages say the same, so that a server without validators
// can tell in its own way that nothing has changed.
func (p *Page[T]) equal(known *Page[T]) bool {
	return p == known || known != nil && p.Next == known.Next && slices.Equal(p.Keys, known.Keys) && reflect.DeepEqual(p.Items, known.Items)
}

// Get reads the page at an address. Known is what was there when it was read last,
// or nil; a Get that finds it unchanged returns it itself.
type Get[T any] func(ctx context.Context, address string, known *Page[T]) (*Page[T], error)

// A List reads a paged list of things of type T, whole.
type List[T any] struct {
	what  string
	first string
	get   Get[T]

	turn  chan struct{}       // holds one token: the list is read by one at a time
	known map[string]*Page[T] // by address; what the server may say "not modified" about
	last  []T                 // what was read last, and
	pass  any                 // in which pass
}

// New returns the list that begins at an address. What names its items in
// messages: "pull requests".
func New[T any](what, first string, get Get[T]) *List[T] {
	return &List[T]{what: what, first: first, get: get, turn: make(chan struct{}, 1)}
}

// A movedError is a reading after which the list has to be read again.
type movedError struct {
	how   string // "page 2 …"
	short bool   // it ended before the server says that it does
}

func (e *movedError) Error() string { return e.how }

func moved(format string, args ...any) error { return &movedError{how: fmt.Sprintf(format, args...)} }

// All returns every item of the list, in the server's order: as read now, or by
// another provider in the same pass. The slice is the caller's; what its items
// point to is not.
func (l *List[T]) All(ctx context.Context) ([]T, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, transport.Describe(ctx.Err())
	}
	pass := provider.Pass(ctx)
	if pass != nil && pass == l.pass {
		return slices.Clone(l.last), nil
	}
	var moved *movedError
	for range MaxReads {
		items, err := l.read(ctx)
		if errors.As(err, &moved) {
			continue
		}
		if err == nil {
			l.last, l.pass = slices.Clone(items), pass
		}
		return items, err
	}
	msg := "the list of %s changed each of the %d times that it was read: %s"
	if moved.short {
		msg = "the list of %s contradicts itself, %d times in a row: %s"
	}
	return nil, &provider.Error{
		Reason: provider.Implausible,
		Msg:    fmt.Sprintf(msg, l.what, MaxReads, moved.how),
		Hint:   "the last good list stands; it is tried again",
	}
}

func (l *List[T]) read(ctx context.Context) ([]T, error) {
	pages := map[string]*Page[T]{}
	var order []string
	var items []T
	seen := map[string]int{} // page of each key
	fresh := false
	for address := l.first; address != ""; {
		number := len(order) + 1
		if pages[address] != nil {
			return nil, l.implausible(number, "it does not end: page %d leads back to page %d", number-1, slices.Index(order, address)+1)
		}
		if number > MaxPages {
			return nil, l.implausible(number, "it does not end: there is a page %d", number)
		}
		known := l.known[address]
		p, err := l.get(ctx, address, known)
		if err != nil {
			return nil, l.onPage(err, number)
		}
		if len(p.Items) == 0 && p.Next != "" {
			return nil, l.implausible(number, "page %d is empty, but not the last one", number)
		}
		for _, key := range p.Keys {
			if before := seen[key]; before != 0 {
				return nil, moved("page %d repeats an item of page %d", number, before)
			}
			seen[key] = number
		}
		fresh = fresh || !p.equal(known)
		pages[address] = p
		order = append(order, address)
		items = append(items, p.Items...)
		address = p.Next
	}
	if err := l.complete(pages, len(items)); err != nil {
		return nil, err
	}
	if fresh && len(order) > 1 {
		if err := l.verify(ctx, order[:len(order)-1], pages); err != nil {
			return nil, err
		}
	}
	l.known = pages
	return items, nil
}

// complete fails when less was read than the server has counted. More is no
// contradiction: a count may be old. That of a page which was "not modified" may be as
// well, for validators need not cover it; so the next reading takes nothing as known.
func (l *List[T]) complete(pages map[string]*Page[T], items int) error {
	counted, last := 0, 0
	for _, p := range pages {
		counted, last = max(counted, p.Total), max(last, p.Last)
	}
	total := counted
	for _, p := range pages {
		if p.Total > 0 {
			total -= counted - p.Total
		}
	}
	switch {
	case items < total:
		l.known = nil
		return &movedError{fmt.Sprintf("it ends after %d of %d, on page %d", items, total, len(pages)), true}
	case len(pages) < last:
		l.known = nil
		return &movedError{fmt.Sprintf("it ends with page %d of %d", len(pages), last), true}
	}
	return nil
}

// verify asks for pages once more, and fails with a movedError unless they still have
// the same items in the same order: then nothing went from one page to another
// while they were read.
func (l *List[T]) verify(ctx context.Context, order []string, pages map[string]*Page[T]) error {
	for i, address := range order {
		known := pages[address]
		again, err := l.get(ctx, address, known)
		if err != nil {
			return l.onPage(err, i+1)
		}
		if again != known && (again.Next != known.Next || !slices.Equal(again.Keys, known.Keys)) {
			return moved("page %d is not what it was a moment before", i+1)
		}
	}
	return nil
}

func (l *List[T]) implausible(number int, format string, args ...any) error {
	return &provider.Error{
		Reason: provider.Implausible,
		Msg:    fmt.Sprintf("list of %s: "+format, append([]any{l.what}, args...)...),
		Hint:   fmt.Sprintf("nothing of the %d pages before is used; the last good list stands", number-1),
	}
}

// onPage says which page an error is about.
func (l *List[T]) onPage(err error, number int) error {
	return transport.Fault(err).Within("list of %s, page %d", l.what, number)
}
