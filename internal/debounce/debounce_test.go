// SPDX-License-Identifier: Apache-2.0

package debounce

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

const (
	quiet = 200 * time.Millisecond
	limit = 2 * time.Second
)

// A record is one delivery.
type record struct {
	at    time.Duration
	items []string
}

// start runs a Debouncer on the fake clock of a synctest bubble.
func start(t *testing.T, busy time.Duration) (add func(...string), deliveries func() []record) {
	t.Helper()
	began := time.Now()
	var got []record
	d := New(quiet, limit, func(items []string) {
		got = append(got, record{time.Since(began), items})
		time.Sleep(busy) // fake time: a run that takes a while
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	return d.Add, func() []record {
		time.Sleep(time.Minute)
		cancel()
		<-done
		return got
	}
}

// FR-72: 50 hooks in 3 s are few runs, and the last hook is in one of them.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		add, deliveries := start(t, 0)
		for range 50 {
			add("provider")
			time.Sleep(60 * time.Millisecond)
		}
		got := deliveries()
		if len(got) != 2 || got[0].at != limit {
			t.Errorf("want one run at the cap and one at the end, got %v", got)
		}
	})
}

// FR-72: a steady stream is not put off for ever.
func TestSteadyStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		add, deliveries := start(t, 0)
		for range 600 {
			add("provider")
			time.Sleep(100 * time.Millisecond)
		}
		if got := deliveries(); len(got) < 25 || len(got) > 31 {
			t.Errorf("a hook each 100 ms for 60 s made %d runs, want about one each %s", len(got), limit)
		}
	})
}

func TestOneHookWaitsForQuietOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		add, deliveries := start(t, 0)
		add("b", "a", "b")
		got := deliveries()
		if len(got) != 1 || got[0].at != quiet || !slices.Equal(got[0].items, []string{"b", "a"}) {
			t.Errorf("got %v", got)
		}
	})
}

// FR-72: a hook during a run causes exactly one more run.
func TestDuringARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		add, deliveries := start(t, 5*time.Second)
		add("a")
		time.Sleep(time.Second) // the run is under way
		for range 10 {
			add("a", "b")
			time.Sleep(300 * time.Millisecond)
		}
		got := deliveries()
		if len(got) != 2 || len(got[1].items) != 2 {
			t.Errorf("got %v, want one run and one more for both", got)
		}
	})
}

func TestNothingIsLostAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		d := New(time.Hour, time.Hour, func(items []string) { got = append(got, items...) })
		d.Add("before Run")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); d.Run(ctx) }()
		synctest.Wait()
		d.Add("waiting")
		cancel()
		<-done
		if !slices.Equal(got, []string{"before Run", "waiting"}) {
			t.Errorf("got %q", got)
		}
	})
}
