// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Triggers of a pass, as the trailer "Trigger" names them.
const (
	TriggerStartup  = "startup"
	TriggerSchedule = "schedule"
	TriggerWebhook  = "webhook"
	TriggerSource   = "source"
	TriggerManual   = "manual"
	TriggerOnce     = "once"
	TriggerDrift    = "drift"
)

// stalledAfter is how long the loop may take for one pass before it counts as
// stuck. Every request in a pass has a deadline of its own that is far shorter.
const stalledAfter = 15 * time.Minute

// A Target names what a webhook asks to have refreshed. Kind is
// api.KindResourceSet, api.KindInputProvider, or another kind, which stands for
// the definitions themselves (a GitRepository, for instance).
type Target struct {
	Kind, Namespace, Name string
}

// inbox collects what happens between two passes. Asking twice for one thing
// before a pass begins is asking once.
type inbox struct {
	mu      sync.Mutex
	targets []Target
	wake    chan struct{} // holds one token while there is something to do
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

func (b *inbox) put(targets []Target) {
	b.mu.Lock()
	for _, t := range targets {
		if !slices.Contains(b.targets, t) {
			b.targets = append(b.targets, t)
		}
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default: // somebody has rung already
	}
}

func (b *inbox) take() []Target {
	b.mu.Lock()
	defer b.mu.Unlock()
	targets := b.targets
	b.targets = nil
	return targets
}

// Refresh asks for a pass that fetches what the targets name. It never blocks;
// the caller has waited for a quiet moment already.
func (r *Reconciler) Refresh(targets []Target) { r.inbox.put(targets) }

// Run does a pass now, and one whenever something is due or asked for, until the
// context ends. It returns nil then: failures of passes are logged and retried.
func (r *Reconciler) Run(ctx context.Context) error {
	defer r.fetches.Wait() // they end with the context
	r.patience = startupPatience
	trigger := TriggerStartup
	var targets []Target
	for {
		report := r.soundPass(ctx, request{trigger: trigger, targets: targets})
		if ctx.Err() != nil {
			return nil
		}
		r.patience = patience
		if r.afterPass != nil {
			r.afterPass(ctx, report)
		}
		r.publish(report) // last: who sees that a pass is done finds its receivers served
		timer := time.NewTimer(r.untilDue())
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
			trigger, targets = TriggerSchedule, nil
		case <-r.inbox.wake:
			timer.Stop()
			trigger, targets = TriggerWebhook, r.inbox.take()
		case a := <-r.answers: // one that no pass has waited for
			timer.Stop()
			r.take(a)
			trigger, targets = TriggerSchedule, nil // unless the answer has a cause of its own
		}
	}
}

// Once does one full pass: everything is fetched, whether it is due or not.
func (r *Reconciler) Once(ctx context.Context) *Report {
	report := r.soundPass(ctx, request{trigger: TriggerOnce})
	r.note(report) // the caller says what was wrong
	return report
}

// untilDue is how long the loop may sleep: until the source, a provider or a
// delayed push is due, whichever is first.
func (r *Reconciler) untilDue() time.Duration {
	now := r.now()
	next := r.sourceDue
	for _, p := range r.providers {
		if p.fetching {
			continue // its answer wakes the loop
		}
		if due := r.decide(p).Next; !due.IsZero() && due.Before(next) {
			next = due
		}
	}
	if !r.pushDue.IsZero() && r.pushDue.Before(next) {
		next = r.pushDue
	}
	if due := r.delivery.nextDue(now); !due.IsZero() && due.Before(next) {
		next = due
	}
	// A floor keeps a clock that was set back, or a due time in the past, from spinning.
	return max(next.Sub(now), 50*time.Millisecond)
}

// publish makes the outcome of a pass visible: to the health checks, and in the
// log. A problem is logged when it appears or changes, not every time it is found
// again.
func (r *Reconciler) publish(report *Report) {
	r.note(report)
	seen := map[string]string{}
	for _, p := range report.Problems {
		key := p.Object + "\x00" + p.Set
		seen[key] = classOf(p)
		if r.logged[key] != seen[key] {
			r.log.Error("held back", problemAttrs(p)...)
		}
	}
	for _, w := range report.Warnings {
		key := "warning\x00" + w.Error()
		seen[key] = "warning"
		if r.logged[key] == "" {
			r.log.Warn(w.Err.Error(), problemAttrs(w)[2:]...)
		}
	}
	for key := range r.logged {
		if _, still := seen[key]; !still && !strings.HasPrefix(key, "warning\x00") {
			object, _, _ := strings.Cut(key, "\x00")
			r.log.Info("recovered", "object", object)
		}
	}
	r.logged = seen
}

// note remembers the outcome of a pass for those who ask.
func (r *Reconciler) note(report *Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.passed = report, r.now()
	r.ready = r.ready || report.Revision != ""
}

// Ready reports whether a full pass has been done since the start.
func (r *Reconciler) Ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ready {
		return fmt.Errorf("the first pass is not done")
	}
	return nil
}

// Healthy reports whether the loop is alive: a pass that takes longer than every
// deadline in it together is stuck.
func (r *Reconciler) Healthy() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.began.IsZero() && r.now().Sub(r.began) > stalledAfter {
		return fmt.Errorf("the pass that began at %s has not ended", r.began.UTC().Format(time.RFC3339))
	}
	return nil
}

// problemAttrs are a problem's facts in Flux's field names.
func problemAttrs(p *Problem) []any {
	attrs := []any{"error", p.Err.Error(), "object", p.Object}
	if p.Set != "" {
		attrs = append(attrs, "set", p.Set)
	}
	if pos := p.Pos.String(); pos != "" {
		attrs = append(attrs, "position", pos)
	}
	if hint := p.Suggestion(); hint != "" {
		attrs = append(attrs, "hint", hint)
	}
	return attrs
}

// classOf is what is the same each time that a problem is found again: its text
// without digits, which are request numbers and times as often as not.
func classOf(p *Problem) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsDigit(c) {
			return -1
		}
		return c
	}, p.Err.Error())
}
