// SPDX-License-Identifier: Apache-2.0

// Package debounce turns bursts into single calls. One push to a forge causes
// several webhooks, and one webhook may concern hundreds of objects; what follows
// from them is done once, after a quiet time.
package debounce

import (
	"context"
	"sync"
	"time"
)

// A Debouncer collects items and hands them over together, each once, when none
// has come for the quiet time, but at the latest when the first of them has
// waited for the cap. Items that come while a call is under way are collected
// for exactly one more.
type Debouncer[T comparable] struct {
	quiet, limit time.Duration
	deliver      func([]T)

	mu    sync.Mutex
	items []T
	known map[T]struct{}
	rung  chan struct{} // holds one token while there are items that Run has not seen
}

// New makes a Debouncer that calls deliver, never twice at the same time, while
// Run is running. A limit below quiet is quiet.
func New[T comparable](quiet, limit time.Duration, deliver func([]T)) *Debouncer[T] {
	return &Debouncer[T]{
		quiet: quiet, limit: max(quiet, limit), deliver: deliver,
		known: map[T]struct{}{}, rung: make(chan struct{}, 1),
	}
}

// Add hands over items and returns at once. It may be called at any time, also
// before Run and from many goroutines.
func (d *Debouncer[T]) Add(items ...T) {
	if len(items) == 0 {
		return
	}
	d.mu.Lock()
	for _, item := range items {
		if _, ok := d.known[item]; !ok {
			d.known[item] = struct{}{}
			d.items = append(d.items, item)
		}
	}
	d.mu.Unlock()
	select {
	case d.rung <- struct{}{}:
	default: // somebody has rung already
	}
}

// Run delivers until the context ends. What has been added by then is delivered
// before it returns, without waiting for quiet.
func (d *Debouncer[T]) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
		case <-d.rung:
			d.settle(ctx)
		}
		d.flush()
		if ctx.Err() != nil {
			return
		}
	}
}

// settle waits for quiet, for the limit or for the end of the context.
func (d *Debouncer[T]) settle(ctx context.Context) {
	quiet, limit := time.NewTimer(d.quiet), time.NewTimer(d.limit)
	defer quiet.Stop()
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-limit.C:
			return
		case <-quiet.C:
			return
		case <-d.rung:
			quiet.Reset(d.quiet)
		}
	}
}

func (d *Debouncer[T]) flush() {
	d.mu.Lock()
	items := d.items
	d.items, d.known = nil, map[T]struct{}{}
	d.mu.Unlock()
	if len(items) > 0 {
		d.deliver(items)
	}
}
