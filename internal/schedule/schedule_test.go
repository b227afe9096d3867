// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/internal/cron"
	"resourceset.example/renderer/pkg/api"
)

const never = ""

func clock(t *testing.T, text string) time.Time {
	t.Helper()
	if text == never {
		return time.Time{}
	}
	if len(text) == len("10-06 08:00") {
		text = "2025-" + strings.Replace(text, " ", "T", 1) + ":00Z"
	}
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

// newPlan is the plan of a provider with that reconcileEvery ("" is none).
func newPlan(t *testing.T, every string, windows ...api.Schedule) *Plan {
	t.Helper()
	p := &api.ResourceSetInputProvider{}
	p.Spec.Schedule = windows
	p.Annotations = map[string]string{}
	if every != "" {
		p.Annotations[api.AnnotationReconcileEvery] = every
	}
	plan, err := New(p, cron.Pace{Every: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// A question of a moment, and what is to be answered. 2025-10-06 is a Monday.
type question struct {
	name         string
	now, tried   string
	exported     bool
	due, allowed bool
	next, missed string
}

func (q question) check(t *testing.T, p *Plan) {
	t.Run(q.name, func(t *testing.T) {
		got := p.At(clock(t, q.now), History{Tried: clock(t, q.tried), Exported: q.exported})
		if got.Due != q.due || got.Allowed != q.allowed {
			t.Errorf("due %t, allowed %t; want %t, %t", got.Due, got.Allowed, q.due, q.allowed)
		}
		if !got.Next.Equal(clock(t, q.next)) {
			t.Errorf("next %s, want %s", got.Next.UTC(), q.next)
		}
		if !got.Missed.Equal(clock(t, q.missed)) {
			t.Errorf("missed %s, want %q", got.Missed.UTC(), q.missed)
		}
	})
}

func TestPace(t *testing.T) {
	for _, q := range []question{
		{name: "new", now: "10-06 08:00", due: true, allowed: true, next: "10-06 08:00"},
		{name: "just fetched", now: "10-06 08:00", tried: "10-06 08:00", allowed: true, next: "10-06 08:05"},
		{name: "due", now: "10-06 08:05", tried: "10-06 08:00", due: true, allowed: true, next: "10-06 08:05"},
		{name: "late", now: "10-09 08:05", tried: "10-06 08:00", due: true, allowed: true, next: "10-06 08:05"},
		{name: "clock put back", now: "10-06 08:00", tried: "12-24 08:00", allowed: true, next: "10-06 08:05"},
	} {
		q.check(t, newPlan(t, "5m"))
	}
	question{name: "default", now: "10-06 08:05", tried: "10-06 08:00", allowed: true, next: "10-06 08:10"}.check(t, newPlan(t, ""))
}

// FR-61: a start inside the window catches up once; a window that passed is missed.
func TestWindowCatchUp(t *testing.T) {
	p := newPlan(t, "24h", api.Schedule{Cron: "0 8 * * *", Window: 2 * time.Hour})
	for _, q := range []question{
		{name: "inside", now: "10-07 09:35", tried: "10-06 08:00", due: true, allowed: true, next: "10-07 09:35"},
		{name: "caught up", now: "10-07 09:36", tried: "10-07 09:35", allowed: true, next: "10-08 08:00"},
		{name: "beyond", now: "10-07 10:30", tried: "10-06 08:00", next: "10-08 08:00", missed: "10-07 08:00"},
		{name: "several missed are one", now: "10-09 09:35", tried: "10-06 08:00", due: true, allowed: true, next: "10-09 09:35", missed: "10-07 08:00"},
		{name: "on time", now: "10-07 08:00", tried: "10-06 08:00", due: true, allowed: true, next: "10-07 08:00"},
		{name: "at the end", now: "10-07 10:00", tried: "10-07 08:00", next: "10-08 08:00"},
	} {
		q.check(t, p)
	}
}

// FR-62: outside its window a provider is not called, whoever asks.
func TestWindowClosed(t *testing.T) {
	p := newPlan(t, "10m", api.Schedule{Cron: "0 9 * * 1-4", Window: 2 * time.Hour})
	for _, q := range []question{
		{name: "fresh process on Friday", now: "10-10 09:30", next: "10-13 09:00"},
		{name: "with exports", now: "10-10 09:30", exported: true, next: "10-13 09:00"},
		{name: "fresh process inside", now: "10-06 09:30", due: true, allowed: true, next: "10-06 09:30"},
		{name: "pace inside", now: "10-06 09:30", tried: "10-06 09:21", allowed: true, next: "10-06 09:31"},
		{name: "due inside", now: "10-06 09:31", tried: "10-06 09:21", due: true, allowed: true, next: "10-06 09:31"},
		{name: "last of the day", now: "10-06 10:55", tried: "10-06 10:51", allowed: true, next: "10-07 09:00"},
		{name: "one minute early", now: "10-06 08:59", tried: "10-02 10:55", next: "10-06 09:00"},
	} {
		q.check(t, p)
	}
}

func TestMoment(t *testing.T) {
	p := newPlan(t, "10m", api.Schedule{Cron: "0 12 * * 1-5", TimeZone: "UTC"})
	for _, q := range []question{
		{name: "new: at once", now: "10-06 09:00", due: true, allowed: true, next: "10-06 09:00"},
		{name: "restart: waits", now: "10-06 09:00", exported: true, allowed: true, next: "10-06 12:00"},
		{name: "the moment", now: "10-06 12:00", tried: "10-03 12:00", due: true, allowed: true, next: "10-06 12:00"},
		{name: "a little late", now: "10-06 12:04", tried: "10-03 12:00", due: true, allowed: true, next: "10-06 12:04"},
		{name: "restart in the moment", now: "10-06 12:04", exported: true, due: true, allowed: true, next: "10-06 12:04"},
		{name: "missed", now: "10-06 12:05", tried: "10-03 12:00", allowed: true, next: "10-07 12:00", missed: "10-06 12:00"},
		{name: "no pace beside it", now: "10-06 12:30", tried: "10-06 12:00", allowed: true, next: "10-07 12:00"},
	} {
		q.check(t, p)
	}
}

func TestSeveralWindows(t *testing.T) {
	p := newPlan(t, "1h",
		api.Schedule{Cron: "0 10 * * 1-4", TimeZone: "America/New_York", Window: 6 * time.Hour},
		api.Schedule{Cron: "0 10 * * 5", TimeZone: "Europe/London", Window: 3 * time.Hour},
	)
	for _, q := range []question{
		{name: "New York is open", now: "10-06 19:59", tried: "10-06 19:30", allowed: true, next: "10-07 14:00"},
		{name: "New York is closed", now: "10-06 20:00", tried: "10-06 19:30", next: "10-07 14:00"},
		{name: "London is next", now: "10-09 21:00", tried: "10-09 19:30", next: "10-10 09:00"},
		{name: "London is open", now: "10-10 09:00", tried: "10-09 19:30", due: true, allowed: true, next: "10-10 09:00"},
	} {
		q.check(t, p)
	}
}

// FR-60 in a plan: the window of a time that does not exist opens after the gap.
func TestWindowAcrossGap(t *testing.T) {
	p := newPlan(t, "24h", api.Schedule{Cron: "0 2 * * *", TimeZone: "America/Los_Angeles", Window: time.Hour})
	for _, q := range []question{
		{name: "before", now: "2025-03-09T01:59:00-08:00", tried: "2025-03-08T02:00:00-08:00", next: "2025-03-09T03:00:00-07:00"},
		{name: "after", now: "2025-03-09T03:00:00-07:00", tried: "2025-03-08T02:00:00-08:00", due: true, allowed: true, next: "2025-03-09T03:00:00-07:00"},
		{name: "closed", now: "2025-03-09T04:00:00-07:00", tried: "2025-03-09T03:00:00-07:00", next: "2025-03-10T02:00:00-07:00"},
	} {
		q.check(t, p)
	}
}

// FR-91: tries follow back-off, and those who ask get one a minute at most.
func TestFailure(t *testing.T) {
	p := newPlan(t, "5m")
	now := clock(t, "10-06 08:00")
	tries, asked := 0, 0
	h := History{}
	for end := now.Add(10 * time.Minute); now.Before(end); now = now.Add(time.Second) {
		if p.At(now, h).Due {
			h.Tried, tries = now, tries+1
			h.Failures++
		}
	}
	if tries < 5 || tries > 7 {
		t.Errorf("%d tries in 10 minutes", tries)
	}
	h.Failures = 100
	for end := now.Add(10 * time.Minute); now.Before(end); now = now.Add(time.Second) {
		if p.At(now, h).Allowed { // a webhook each second
			h.Tried, asked = now, asked+1
		}
	}
	if asked < 9 || asked > 11 {
		t.Errorf("%d fetches in 10 minutes of webhooks", asked)
	}
	for i, want := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		if got := Backoff(i + 1); got != want {
			t.Errorf("Backoff(%d) = %s, want %s", i+1, got, want)
		}
	}
}

func TestFailureStaysInWindow(t *testing.T) {
	p := newPlan(t, "10m", api.Schedule{Cron: "0 9 * * *", Window: time.Hour})
	h := History{Tried: clock(t, "10-06 09:50"), Failures: 1}
	if d := p.At(clock(t, "10-06 09:51"), h); !d.Due {
		t.Error("no retry inside the window")
	}
	if d := p.At(clock(t, "10-06 10:00"), h); d.Due || d.Allowed || !d.Next.Equal(clock(t, "10-07 09:00")) {
		t.Errorf("after the window: %+v", d)
	}
}

// FR-12: a server that names a time is not asked before it, for whatever reason.
func TestNotBefore(t *testing.T) {
	p := newPlan(t, "5m")
	h := History{Tried: clock(t, "10-06 08:00"), Failures: 1, NotBefore: clock(t, "10-06 09:00")}
	if d := p.At(clock(t, "10-06 08:59"), h); d.Due || d.Allowed || !d.Next.Equal(h.NotBefore) {
		t.Errorf("before: %+v", d)
	}
	if d := p.At(clock(t, "10-06 09:00"), h); !d.Due || !d.Allowed {
		t.Errorf("then: %+v", d)
	}
}

func TestDisabled(t *testing.T) {
	p := &api.ResourceSetInputProvider{}
	p.Annotations = map[string]string{api.AnnotationReconcile: "disabled"}
	plan, err := New(p, cron.Pace{Every: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if d := plan.At(clock(t, "10-06 08:00"), History{}); d != (Decision{}) {
		t.Errorf("disabled: %+v", d)
	}
}

func TestNewFaults(t *testing.T) {
	p := &api.ResourceSetInputProvider{}
	p.Annotations = map[string]string{api.AnnotationReconcileEvery: "0s"}
	p.Spec.Schedule = []api.Schedule{{Cron: "0 8 * * *"}, {Cron: "x"}, {Cron: "0 8 * * *", TimeZone: "Nowhere"}, {Cron: "0 8 * * *", Window: -1}}
	plan, err := New(p, cron.Pace{Every: time.Minute})
	if plan != nil || err == nil {
		t.Fatalf("plan %v, err %v", plan, err)
	}
	for _, want := range []string{"schedule[1]: cron", "schedule[2]: time zone", "schedule[3]: window", "reconcileEvery: 0s"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not among\n%v", want, err)
		}
	}
	if _, err := New(&api.ResourceSetInputProvider{}, cron.Pace{}); err == nil {
		t.Error("a plan without any pace")
	}
}
