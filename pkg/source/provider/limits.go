// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"sync"
	"time"
)

// How long to wait when a server limits us without saying for how long: the first
// wait, doubled each time that it happens again, up to the longest one. A minute
// is what GitHub asks for at least.
const (
	firstPause   = time.Minute
	longestPause = 30 * time.Minute
)

// Limits remembers which servers told us to wait, by host and credential, so that
// all providers that share a credential wait together. The zero value is ready to
// use, and so is a nil pointer, which remembers nothing.
type Limits struct {
	mu     sync.Mutex
	pauses map[string]pause
}

type pause struct {
	until  time.Time
	reason Reason
	length time.Duration // of the last one that the server did not set itself
}

// Until is when the holder of a key may ask again, and why not now; the zero time if
// it may.
func (l *Limits) Until(key string, now time.Time) (time.Time, Reason) {
	if l == nil {
		return time.Time{}, ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.pauses[key]; p.until.After(now) {
		return p.until, p.reason
	}
	return time.Time{}, ""
}

// Pause records that the server asked the holder of a key to wait, for a reason, and
// returns until when. The zero time for until means that the server did not say.
func (l *Limits) Pause(key string, reason Reason, now, until time.Time) time.Time {
	if l == nil {
		if until.IsZero() {
			until = now.Add(firstPause)
		}
		return until
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pauses[key]
	if until.IsZero() {
		p.length = min(max(2*p.length, firstPause), longestPause)
		until = now.Add(p.length)
	}
	if until.After(p.until) {
		p.until, p.reason = until, reason
	}
	if l.pauses == nil {
		l.pauses = map[string]pause{}
	}
	l.pauses[key] = p
	return p.until
}

// Served records that the server served the holder of a key: the next pause
// starts at its shortest again.
func (l *Limits) Served(key string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, ok := l.pauses[key]; ok && !p.until.After(time.Now()) {
		delete(l.pauses, key)
	}
}
