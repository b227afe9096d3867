// SPDX-License-Identifier: Apache-2.0

// Package schedule decides when a provider is fetched. It has no clock and keeps
// no state: a [Plan] is made of a provider's definition, and [Plan.At] answers
// for a moment and a [History] what is to be done then and when to ask again.
//
// Three things can set the pace, the first that is there:
//
//   - spec.schedule, a list of windows. A window opens at the times of a cron
//     expression in a time zone and stays open for its length. While one is open,
//     the provider is fetched when it opens and then at the pace of
//     reconcileEvery; while none is, it is not fetched at all, whoever asks. A
//     process that starts inside a window catches up with one fetch; a window
//     that passed without any is reported as missed. A window of no length is a
//     moment: one fetch then (up to [Moment] late), and otherwise only when
//     somebody asks, or when the provider is new.
//   - the annotation reconcileEvery, a duration.
//   - inputs.schedule of the configuration, "@every 10m" or a cron expression.
//
// A fetch that fails is tried again sooner, at growing distances ([Backoff]).
// What somebody asks for (a webhook, a new commit of definitions) is done at
// once, but a failing provider is asked at most once in [FailingPause].
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"resourceset.example/renderer/internal/cron"
	"resourceset.example/renderer/pkg/api"
)

const (
	// Moment is how late a fetch may begin that is scheduled for a moment, so that
	// a busy or restarted process does not lose it.
	Moment = 5 * time.Minute
	// FailingPause is the shortest time between two fetches of a provider that
	// fails, however many ask for it.
	FailingPause = time.Minute

	firstRetry = 15 * time.Second
	lastRetry  = 10 * time.Minute
)

// A window is one entry of spec.schedule.
type window struct {
	*cron.Times
	length time.Duration
}

// A Plan says when one provider is fetched.
type Plan struct {
	disabled bool
	windows  []window
	pace     cron.Pace // reconcileEvery, else inputs.schedule
}

// New makes the plan of a provider. All that is wrong with it is one error.
func New(p *api.ResourceSetInputProvider, fallback cron.Pace) (*Plan, error) {
	plan := &Plan{disabled: strings.EqualFold(p.Annotations[api.AnnotationReconcile], "disabled"), pace: fallback}
	var errs []error
	for i, entry := range p.Spec.Schedule {
		s, err := cron.Parse(entry.Cron, entry.TimeZone)
		if err == nil && entry.Window < 0 {
			err = fmt.Errorf("window %s is negative", entry.Window)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.schedule[%d]: %w", i, err))
			continue
		}
		plan.windows = append(plan.windows, window{Times: s, length: entry.Window})
	}
	if text, ok := p.Annotations[api.AnnotationReconcileEvery]; ok {
		every, err := cron.ParseEvery(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("annotation %s: %w", api.AnnotationReconcileEvery, err))
		}
		plan.pace = cron.Pace{Every: every}
	}
	if plan.pace == (cron.Pace{}) && len(errs) == 0 {
		errs = append(errs, errors.New("there is no pace: neither reconcileEvery nor inputs.schedule"))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return plan, nil
}

// A History is what is known of a provider's fetches. The zero value is a
// provider that is new.
type History struct {
	Tried     time.Time // when the last fetch began; zero when not known
	Failures  int       // failed fetches in a row, the last one included
	NotBefore time.Time // a server's wish not to be asked before
	Exported  bool      // a listing is at hand: in memory or in inputs.lock
}

// A Decision is what a Plan says of a moment.
type Decision struct {
	Due     bool      // fetch now
	Allowed bool      // fetch now if somebody asks for it
	Next    time.Time // ask again then at the latest; zero is never
	Missed  time.Time // a slot that passed without a fetch, and will get none; zero if there is none
}

// At decides for a moment. It is monotonic in time: what is due stays due until
// it is done, or its window closes.
func (p *Plan) At(now time.Time, h History) Decision {
	if p.disabled {
		return Decision{}
	}
	if h.Tried.After(now) {
		h.Tried = now // the clock was put back
	}
	d := p.byPace(now, h)
	if len(p.windows) > 0 {
		d = p.byWindows(now, h)
	}
	if h.Failures > 0 {
		d = p.afterFailure(d, now, h)
	}
	if h.NotBefore.After(now) {
		d = Decision{Missed: d.Missed, Next: h.NotBefore}
	}
	return d
}

// byPace decides where no window restricts.
func (p *Plan) byPace(now time.Time, h History) Decision {
	d := Decision{Allowed: true}
	if d.Next = now; !h.Tried.IsZero() {
		d.Next = p.pace.Next(h.Tried)
	}
	d.Due = !d.Next.IsZero() && !d.Next.After(now)
	return d
}

func (p *Plan) byWindows(now time.Time, h History) Decision {
	var d Decision
	for _, w := range p.windows {
		one := p.byWindow(w, now, h)
		d.Due = d.Due || one.Due
		d.Allowed = d.Allowed || one.Allowed
		d.Next = earliest(d.Next, one.Next)
		d.Missed = latest(d.Missed, one.Missed)
	}
	if d.Due {
		d.Next = now
	}
	return d
}

func (p *Plan) byWindow(w window, now time.Time, h History) Decision {
	length := w.length
	if length == 0 {
		length = Moment
	}
	d := Decision{Next: w.Next(now)}
	open := !w.opened(now, length).IsZero()
	d.Allowed = open || w.length == 0
	d.Due = !w.opened(now, min(length, since(h.Tried, now, length))).IsZero()
	switch {
	case w.length == 0:
		d.Due = d.Due || h.Tried.IsZero() && !h.Exported
	case open && !h.Tried.IsZero():
		again := p.pace.Next(h.Tried)
		d.Due = d.Due || !again.After(now)
		if again.After(now) && !w.opened(again, length).IsZero() {
			d.Next = earliest(d.Next, again)
		}
	}
	if !h.Tried.IsZero() {
		if slot := w.Next(h.Tried); !slot.IsZero() && !slot.After(now.Add(-length)) {
			d.Missed = slot
		}
	}
	return d
}

// opened is a slot in (now-length, now], or the zero time.
func (w window) opened(now time.Time, length time.Duration) time.Time {
	if slot := w.Next(now.Add(-length)); !slot.After(now) {
		return slot
	}
	return time.Time{}
}

// since is the time since a fetch, or length when there was none.
func since(tried, now time.Time, length time.Duration) time.Duration {
	if tried.IsZero() {
		return length
	}
	return now.Sub(tried)
}

// afterFailure retries as long as a fetch is allowed, and slows down those who ask.
func (p *Plan) afterFailure(d Decision, now time.Time, h History) Decision {
	retry := h.Tried.Add(Backoff(h.Failures))
	allowed := d.Allowed
	d.Due = allowed && !retry.After(now)
	d.Allowed = allowed && !h.Tried.Add(FailingPause).After(now)
	switch {
	case d.Due:
		d.Next = now
	case allowed:
		d.Next = retry
	}
	return d
}

// Backoff is the time from the n-th failed fetch in a row to the next one.
func Backoff(failures int) time.Duration {
	pause := firstRetry
	for ; failures > 1 && pause < lastRetry; failures-- {
		pause *= 2
	}
	return min(pause, lastRetry)
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
