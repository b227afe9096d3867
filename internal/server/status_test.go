// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"resourceset.example/renderer/internal/reconcile"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type fixedStatus struct{ status *reconcile.Status }

func (s fixedStatus) Status() *reconcile.Status { return s.status }

const evil = `<script>alert(1)</script>"'&`

// troubled is a status in which everything that can be is wrong.
func troubled() *reconcile.Status {
	return &reconcile.Status{
		Started: noon.Add(-72 * time.Hour), Ready: true, RunningSince: noon.Add(-2 * time.Second), LastSuccess: noon.Add(-3 * time.Hour),
		Pass: &reconcile.PassStatus{
			Result: reconcile.ResultFailed, Trigger: "webhook", Began: noon.Add(-6 * time.Second), Ended: noon.Add(-5 * time.Second),
			Revision: "main@sha1:0123456789abcdef", Head: "fedcba98765432100000", Commits: []reconcile.CommitReport{},
			Requests: []reconcile.RequestReport{{Action: "opened", Number: 7, URL: "javascript:alert(1)", Branch: "renderer/apps/app1"}},
			Problems: []reconcile.ProblemStatus{{Object: "ResourceSet apps/app1", Set: evil, Position: "apps/app1.yaml:12", Message: evil, Hint: evil}},
			Warnings: []reconcile.ProblemStatus{{Object: "ResourceSet apps/app1", Message: "101 matched, 100 exported"}},
		},
		Recent: []reconcile.RecentCommit{{Time: noon.Add(-time.Hour), Trigger: "source", CommitReport: reconcile.CommitReport{Hash: "abcdef0123456789", ResourceSet: "apps/app1", Added: 3}}},
		ResourceSets: []reconcile.ResourceSetStatus{
			{Name: "apps/aaa", State: reconcile.StateOK, Inputs: 4, Defined: true},
			{
				Name: "apps/app1", State: reconcile.StateFailed, Inputs: 12, Defined: true, Errors: 2,
				Error: &reconcile.ProblemStatus{Set: evil, Message: `inputs has no "tennant"`},
			},
			{
				Name: "apps/held", State: reconcile.StateHeld, Inputs: 2, Defined: true,
				Held: &reconcile.HeldStatus{
					Sets: []string{"tenant-red", "tenant-blue"}, Reason: "all 2 input sets would go", Since: noon.Add(-time.Hour),
					Fetches: 1, ConfirmFetches: 3, ConfirmAt: noon.Add(time.Hour),
				},
				TakenBack: []reconcile.TakenBackStatus{{Set: "tenant-green", Commit: "0011223344556677", Who: "Jane <jane@example.com>"}},
			},
		},
		Providers: []reconcile.ProviderStatus{
			{Name: "apps/fine", Type: "Static", Inputs: 1, Answered: noon.Add(-time.Minute), Next: noon.Add(9 * time.Minute)},
			{Name: "apps/tenants", Type: "ExternalService", Error: evil, ErrorClass: "auth", Hint: "renew the token", Failures: 3, Failed: 9},
		},
	}
}

func statusServer(s *reconcile.Status) *fixture {
	h := NewStatusHandler(fixedStatus{s}, "v1.2.3").(*statusHandler)
	h.now = func() time.Time { return noon }
	return &fixture{Server: &Server{cfg: Config{Status: h}}}
}

func TestStatusPage(t *testing.T) {
	got := statusServer(troubled()).call("GET", "/", "")
	page := got.Body.String()
	for _, want := range []string{
		"Something failed; what it concerns stays as committed", "main@sha1:0123456789abcdef", "<code>fedcba987654</code>", "5 s ago",
		"3 ResourceSets, 1 failed, 1 held", "2 providers, 1 failing", "All was in order 3 h ago.",
		"<code>tenant-red</code>, <code>tenant-blue</code> (2)", "Fetches that agree: 1 of 3", "2026-03-01 13:00:00 UTC",
		"<code>tenant-green</code> is as Jane &lt;jane@example.com&gt; left it in <code>001122334455</code>",
		"in 9 min", "renew the token", "3 failures in a row", "apps/app1.yaml:12", "101 matched, 100 exported", `href="#ZgotmplZ"`,
		`http-equiv="refresh"`, "v1.2.3", "&lt;script&gt;alert(1)",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, no := range []string{"<script", "javascript:", "http://", "https://", "style=", "ZgotmplZ;"} {
		if strings.Contains(page, no) {
			t.Errorf("the page has %q", no)
		}
	}
	if failed, fine := strings.Index(page, "<tr><td><code>apps/app1"), strings.Index(page, "<tr><td><code>apps/aaa"); failed > fine {
		t.Error("what failed does not come first")
	}
	if t.Failed() {
		t.Log(page)
	}
	if got.Header().Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(got.Header().Get("Content-Security-Policy"), "default-src 'none'; style-src 'sha256-") {
		t.Errorf("headers: %v", got.Header())
	}
	if got.Header().Get("X-Content-Type-Options") != "nosniff" || got.Header().Get("X-Frame-Options") != "DENY" {
		t.Errorf("headers: %v", got.Header())
	}
}

func TestStatusPageBeforeTheFirstPass(t *testing.T) {
	page := statusServer(&reconcile.Status{Started: noon, RunningSince: noon}).call("GET", "/", "").Body.String()
	if !strings.Contains(page, "The first pass is under way") || !strings.Contains(page, "None yet.") {
		t.Error(page)
	}
}

func TestStatusPageHasAnEnd(t *testing.T) {
	s := &reconcile.Status{Started: noon}
	for i := range maxRows + 7 {
		s.ResourceSets = append(s.ResourceSets, reconcile.ResourceSetStatus{Name: fmt.Sprintf("apps/app%d", i), State: reconcile.StateOK})
	}
	f := statusServer(s)
	page := f.call("GET", "/", "").Body.String()
	if n := strings.Count(page, "<tr><td><code>apps/app"); n != maxRows || !strings.Contains(page, "7 more are in the JSON") {
		t.Errorf("%d rows", n)
	}
	var all reconcile.Status
	if err := json.Unmarshal(f.call("GET", StatusPath, "").Body.Bytes(), &all); err != nil || len(all.ResourceSets) != maxRows+7 {
		t.Errorf("%d ResourceSets in the JSON, %v", len(all.ResourceSets), err)
	}
}

// The names are an interface: docs/status.md promises that they stay.
func TestStatusJSON(t *testing.T) {
	f := statusServer(troubled())
	got := f.call("GET", StatusPath, "")
	var s map[string]any
	if err := json.Unmarshal(got.Body.Bytes(), &s); err != nil || got.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%v: %v", err, got.Header())
	}
	at := func(path ...any) any {
		var v any = s
		for _, step := range path {
			switch step := step.(type) {
			case string:
				v = v.(map[string]any)[step]
			case int:
				v = v.([]any)[step]
			}
		}
		return v
	}
	for _, tt := range []struct {
		want any
		path []any
	}{
		{true, []any{"ready"}},
		{"2026-02-26T12:00:00Z", []any{"started"}},
		{"failed", []any{"pass", "result"}},
		{"webhook", []any{"pass", "trigger"}},
		{0.0, []any{"pass", "lostRaces"}},
		{"apps/app1.yaml:12", []any{"pass", "problems", 0, "position"}},
		{"abcdef0123456789", []any{"recentCommits", 0, "commit"}},
		{"apps/held", []any{"resourceSets", 2, "name"}},
		{"tenant-blue", []any{"resourceSets", 2, "heldRemoval", "sets", 1}},
		{1.0, []any{"resourceSets", 2, "heldRemoval", "fetches"}},
		{"0011223344556677", []any{"resourceSets", 2, "takenBack", 0, "commit"}},
		{"auth", []any{"providers", 1, "errorClass"}},
		{9.0, []any{"providers", 1, "failuresTotal"}},
		{nil, []any{"providers", 1, "answered"}},
	} {
		if got := at(tt.path...); got != tt.want {
			t.Errorf("%v is %v, want %v", tt.path, got, tt.want)
		}
	}
}

func TestStatusMethodsAndPaths(t *testing.T) {
	f := statusServer(troubled())
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"HEAD", "/", 200}, {"HEAD", StatusPath, 200}, {"POST", "/", 405}, {"DELETE", StatusPath, 405},
		{"GET", "/api/v1/", 404}, {"GET", "/api/v1/status/", 404}, {"GET", "/index.html", 404},
	} {
		got := f.call(tt.method, tt.path, "")
		if got.Code != tt.status || got.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s: %d %v", tt.method, tt.path, got.Code, got.Header())
		}
		if got.Code == 405 && got.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s %s: Allow %q", tt.method, tt.path, got.Header().Get("Allow"))
		}
	}
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry, fixedStatus{troubled()})
	if err != nil {
		t.Fatal(err)
	}
	m.Observe(&reconcile.Report{
		Trigger: "webhook", Began: noon, Ended: noon.Add(2 * time.Second), Lost: 2,
		Commits: []reconcile.CommitReport{{}, {}},
	})
	m.Observe(&reconcile.Report{Trigger: "schedule", Problems: []*reconcile.Problem{{Err: &reconcile.HeldError{}}}})
	m.Observe(&reconcile.Report{Trigger: "schedule", Problems: []*reconcile.Problem{{Err: fmt.Errorf("x: %w", &reconcile.TakenBackError{})}, {Err: prometheus.AlreadyRegisteredError{}}}})
	l := &loop{}
	s, err := New(Config{Refresher: l, Checker: l, Registry: registry, Log: newFixture(t, Receiver{Type: TypeGeneric}).cfg.Log})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`renderer_passes_total{result="ok"} 1`, `renderer_passes_total{result="held"} 1`, `renderer_passes_total{result="failed"} 1`,
		"renderer_pass_duration_seconds_sum 2", `renderer_commits_total{trigger="webhook"} 2`, "renderer_push_races_total 2",
		"renderer_held 1", "renderer_last_success_timestamp_seconds 1.7723556e+09",
		`renderer_provider_inputs{name="fine",namespace="apps"} 1`, `renderer_provider_failures_total{name="tenants",namespace="apps"} 9`,
		`renderer_provider_failing{name="tenants",namespace="apps"} 1`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, w.Body)
		}
	}
	if strings.Contains(w.Body.String(), `renderer_provider_inputs{name="tenants"`) || strings.Contains(w.Body.String(), `commits_total{trigger="schedule"}`) {
		t.Errorf("what was never known is counted:\n%s", w.Body)
	}
	if _, err := NewMetrics(registry, fixedStatus{troubled()}); err == nil {
		t.Error("two loops count in one registry")
	}
}
