// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"sync"
)

// A queue holds events for one address, up to maxQueue of them.
type queue struct {
	mu      sync.Mutex
	waiting [][]byte
	dropped int // since the queue was empty
	closed  bool
	wake    chan struct{} // holds one token when there is something to look at
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// put adds an event, in the place of the oldest one if there is no room, and
// returns how many that happened to since the queue was empty.
func (q *queue) put(body []byte) (dropped int) {
	q.mu.Lock()
	if len(q.waiting) >= maxQueue {
		q.waiting = q.waiting[1:]
		q.dropped++
		dropped = q.dropped
	}
	q.waiting = append(q.waiting, body)
	q.mu.Unlock()
	q.ring()
	return dropped
}

// take waits for an event. There is none when the queue is closed and empty, or the
// context has ended.
func (q *queue) take(ctx context.Context) ([]byte, bool) {
	for {
		if ctx.Err() != nil {
			return nil, false
		}
		q.mu.Lock()
		if len(q.waiting) > 0 {
			body := q.waiting[0]
			q.waiting = q.waiting[1:]
			q.mu.Unlock()
			return body, true
		}
		q.dropped = 0
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return nil, false
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil, false
		}
	}
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.ring()
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

func (q *queue) ring() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
