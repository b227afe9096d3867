// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	// maxRaceDelay bounds how long a writer that lost a race, or landed among others, waits.
	maxRaceDelay = 5 * time.Second
	// maxContention is the attempt from which a branch that others seem to hold, and that
	// does not move, counts as refused.
	maxContention = 25
	// confirmedFor is how long the head counts as known after the server has named it.
	confirmedFor = 2 * time.Second
)

// Result says what an Update did.
type Result struct {
	Old      plumbing.Hash   // the head that the commits stand on; zero for a new branch
	New      plumbing.Hash   // the head after it: Old when there was nothing to do
	Commits  []plumbing.Hash // ours, oldest first
	Attempts int             // pushes, of which the last one landed
	Objects  int             // sent in that push
	Bytes    int             // size of that push
}

// Build says which commits should stand on base.
type Build = func(ctx context.Context, base *Snapshot) ([]Commit, error)

// Update fetches the head, unless the server has just named it, and calls build to learn
// which commits should stand on it.
// They are pushed, all or none. When somebody else moves the branch meanwhile, all of it
// is done again on what is there then, so build may be called several times and must
// look at the base it is given. It must not use the Mirror.
//
// An error means that nothing landed, with one exception: when the connection is lost
// and the server cannot be asked afterwards, nobody knows. The next Update finds out.
func (m *Mirror) Update(ctx context.Context, build Build) (Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	start := time.Now()
	var result Result
	var fresh *Snapshot // the head as found after a lost race
	if err := wait(ctx, min(time.Until(m.giveWay), maxRaceDelay)); err != nil {
		return result, err
	}
	for attempt := 1; attempt <= m.cfg.MaxAttempts; attempt++ {
		p, err := m.prepare(ctx, fresh, build)
		if err != nil {
			return result, err
		}
		result.Old, result.New, result.Commits = p.base.Hash(), p.head, p.commits
		if len(p.commits) == 0 {
			return result, nil
		}
		var landed bool
		began := time.Now()
		if landed, fresh, err = m.try(ctx, p, attempt, &result); err != nil || landed {
			m.yield(attempt, time.Since(began))
			return result, err
		}
		m.confirmed = time.Time{}
		m.cfg.Logger.InfoContext(ctx, "another writer was faster, building again on its commit",
			"url", m.remote.display, "branch", m.cfg.Branch, "attempt", attempt)
	}
	return result, &RaceError{URL: m.remote.display, Branch: m.cfg.Branch, Attempts: m.cfg.MaxAttempts, Elapsed: time.Since(start)}
}

// prepare builds on the head, which is fetched unless it is given. A mirror that turns
// out to lack objects is made anew, once.
func (m *Mirror) prepare(ctx context.Context, base *Snapshot, build Build) (*proposal, error) {
	p, err := m.prepareOnce(ctx, base, build)
	if err == nil || !isMissingObject(err) || m.snapshot == nil {
		return p, err
	}
	m.cfg.Logger.WarnContext(ctx, "mirror lacks objects, making a new one", "directory", m.cfg.Directory, "error", err)
	if _, err := m.refetch(ctx); err != nil {
		return nil, err
	}
	return m.prepareOnce(ctx, nil, build)
}

func (m *Mirror) prepareOnce(ctx context.Context, base *Snapshot, build Build) (*proposal, error) {
	if base == nil && m.isConfirmed() {
		m.tidy(ctx)
		base = m.snapshot
	}
	if base == nil {
		var err error
		if base, err = m.fetch(ctx); err != nil {
			return nil, err
		}
	}
	specs, err := build(ctx, base)
	if err != nil {
		return nil, err
	}
	return m.propose(ctx, base, specs)
}

// isConfirmed reports whether the server has named the mirror's head a moment ago. To ask
// again costs a request and tells little more: the server compares the head with the one
// that a push builds on, and what has moved since is a lost race like any other.
func (m *Mirror) isConfirmed() bool {
	return !m.closed && m.snapshot != nil && !m.isDamaged() && time.Since(m.confirmed) < confirmedFor
}

// try pushes once. When another writer was faster, it returns the head to build on next,
// or nil if that is not known yet.
func (m *Mirror) try(ctx context.Context, p *proposal, attempt int, result *Result) (landed bool, next *Snapshot, err error) {
	pack, err := p.objects.pack()
	if err != nil {
		return false, nil, err
	}
	result.Attempts++
	result.Objects, result.Bytes = len(p.objects.list), len(pack)
	began := time.Now()
	v, pushErr := m.push(ctx, p, pack)
	if !v.accepted && pushErr == nil {
		if err := pause(ctx, attempt, time.Since(began)); err != nil {
			return false, nil, err
		}
	}
	if v.moved {
		return false, nil, nil
	}
	return m.settle(ctx, p, pack, v, pushErr, attempt)
}

// patience is how long a writer waits at most after each lost race, in attempts. The
// first race may have been chance, further ones mean that there are many writers; after
// that it is the less the more races were lost, so the one who waited longest is next.
func patience(attempt int) time.Duration {
	switch attempt {
	case 1:
		return 1
	case 2, 6:
		return 3
	case 3, 4, 5:
		return 4
	case 7:
		return 2
	}
	return 0
}

// pause keeps writers that lost to each other from meeting again at the same instant.
// An attempt took the given time so far.
func pause(ctx context.Context, attempt int, took time.Duration) error {
	limit := patience(attempt)*took + took/8
	return wait(ctx, rand.N(min(limit, maxRaceDelay)+1))
}

// yield lets the others have their turn before the next change, if this one met any:
// who has just landed knows the head, and would win again.
func (m *Mirror) yield(attempts int, took time.Duration) {
	m.giveWay = time.Now().Add(min(time.Duration(attempts-1)*took, maxRaceDelay))
}

func wait(ctx context.Context, delay time.Duration) error {
	if delay <= 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// settle finds out by asking the server what became of a push.
func (m *Mirror) settle(ctx context.Context, p *proposal, pack []byte, v verdict, pushErr error, attempt int) (landed bool, next *Snapshot, err error) {
	head, readErr := m.sync(ctx, func(head plumbing.Hash) bool {
		if head == p.head || v.accepted {
			m.keep(ctx, p, pack)
		}
		return head == p.head || head == p.base.Hash()
	})
	landed = head == p.head
	if readErr == nil && !landed && head != p.base.Hash() && !head.IsZero() {
		landed, readErr = isAncestor(m.store, p.head, head) // somebody may have pushed on top of ours already
	}
	switch {
	case readErr != nil && pushErr != nil:
		return false, nil, fmt.Errorf("%w; what became of the push is not known: %w", pushErr, readErr)
	case readErr != nil && v.accepted:
		return false, nil, fmt.Errorf("the server reported success, but reading the branch back: %w", readErr)
	case readErr != nil:
		return false, nil, readErr
	case landed:
		if m.snapshot.Hash() == head {
			m.confirmed = time.Now()
		}
		return true, nil, nil
	case head.IsZero() && !p.base.Hash().IsZero():
		return false, &Snapshot{}, nil
	case head != p.base.Hash():
		return false, m.snapshot, nil
	case v.isContention() && attempt < maxContention: // somebody is about to move it
		return false, nil, nil
	case pushErr != nil:
		return false, nil, pushErr
	case v.accepted:
		v.text = "the server reported success, but the branch has not moved"
	}
	return false, nil, &RefusedError{URL: m.remote.display, Branch: m.cfg.Branch, Text: v.text}
}

// keep puts what was pushed into the mirror, so that it need not be fetched. It landed
// on the server, so an error here only makes the next fetch longer.
func (m *Mirror) keep(ctx context.Context, p *proposal, pack []byte) {
	if p.base.commit == nil {
		return // a new branch is fetched once, into a mirror of its own
	}
	if err := m.keepPushed(p, pack); err != nil {
		m.cfg.Logger.WarnContext(ctx, "mirror could not take in what was pushed, it will be fetched",
			"url", m.remote.display, "error", err)
	}
}

func (m *Mirror) keepPushed(p *proposal, pack []byte) error {
	if err := m.store.addPack(bytes.NewReader(pack)); err != nil {
		return err
	}
	snapshot, err := openSnapshot(m.store, p.head)
	if err != nil {
		return err
	}
	if err := m.store.setHead(p.head); err != nil {
		return err
	}
	m.snapshot, m.confirmed = snapshot, time.Time{}
	return nil
}
