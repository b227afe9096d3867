// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/secrets"
	"resourceset.example/renderer/pkg/api"
)

func newTestEvents() *Events {
	redactor := &secrets.Redactor{}
	redactor.Add("apps/token", map[string][]byte{"token": []byte("s3cr3t-t0ken")})
	cfg := &config.Config{}
	cfg.Target.Branch = "main"
	return NewEvents(cfg, redactor)
}

// lines writes events one a line.
func lines(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s %s/%s %t %s %q\n", e.Kind, e.Namespace, e.Name, e.Error, e.Reason, e.Message)
	}
	return b.String()
}

// FR-91: a problem gives one event for its class, however often it is found and
// whatever request id it holds.
func TestEventsOncePerClass(t *testing.T) {
	e := newTestEvents()
	failing := func(text string) *Report {
		return &Report{Problems: []*Problem{{Object: "ResourceSetInputProvider apps/prs", Err: errors.New(text)}}}
	}
	for _, step := range []struct {
		report *Report
		want   string
	}{
		{&Report{}, ""},
		{failing("403 s3cr3t-t0ken request 1"), `ResourceSetInputProvider apps/prs true ReconciliationFailed "ResourceSetInputProvider apps/prs: 403 [redacted] request 1"` + "\n"},
		{failing("403 s3cr3t-t0ken request 27"), ""},
		{failing("no answer"), `ResourceSetInputProvider apps/prs true ReconciliationFailed "ResourceSetInputProvider apps/prs: no answer"` + "\n"},
		{&Report{}, `ResourceSetInputProvider apps/prs false ReconciliationSucceeded "in order again: ResourceSetInputProvider apps/prs"` + "\n"},
		{&Report{}, ""},
		{failing("no answer"), `ResourceSetInputProvider apps/prs true ReconciliationFailed "ResourceSetInputProvider apps/prs: no answer"` + "\n"},
	} {
		if diff := cmp.Diff(step.want, lines(e.Of(step.report))); diff != "" {
			t.Error(diff)
		}
	}
}

// Flux drops an event that differs from none within five minutes. So each event has a
// token of its own, except for what a process finds when it starts: that may have been
// told by the one before.
func TestEventTokens(t *testing.T) {
	failing := []*Problem{{Object: "ResourceSetInputProvider apps/prs", Err: errors.New("no answer")}}
	request := []RequestReport{{Action: "updated", Number: 7}}
	e := newTestEvents()
	var got []string
	for second, report := range []*Report{
		{Problems: failing, Requests: request}, {Requests: request}, {Problems: failing}, {}, {Problems: failing},
	} {
		report.Ended = time.Date(2026, 1, 2, 3, 4, second, 5, time.FixedZone("", 3600))
		for _, event := range e.Of(report) {
			got = append(got, event.Reason+" "+event.Token)
		}
	}
	want := []string{
		"PullRequest 2026-01-02T02:04:00.000000005Z", // done, not found
		"ReconciliationFailed ",
		"PullRequest 2026-01-02T02:04:01.000000005Z",
		"ReconciliationSucceeded 2026-01-02T02:04:01.000000005Z",
		"ReconciliationFailed 2026-01-02T02:04:02.000000005Z",
		"ReconciliationSucceeded 2026-01-02T02:04:03.000000005Z",
		"ReconciliationFailed 2026-01-02T02:04:04.000000005Z",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Flux's own controllers send these annotations of an object along with its events, so
// that an Alert can be told whose they are.
func TestEventAnnotations(t *testing.T) {
	defs := &api.Definitions{
		ResourceSets: []*api.ResourceSet{{Meta: api.Meta{Namespace: "apps", Name: "podinfo", Annotations: map[string]string{
			"event.toolkit.fluxcd.io/team": "web", "event.toolkit.fluxcd.io/key": "s3cr3t-t0ken", "renderer/directory": "x",
		}}}},
		Providers: []*api.ResourceSetInputProvider{{Meta: api.Meta{Namespace: "apps", Name: "podinfo"}}},
	}
	events := newTestEvents().Of(&Report{Annotations: eventAnnotations(defs), Problems: []*Problem{
		{Object: "ResourceSet apps/podinfo", Err: errors.New("no")},
		{Object: "ResourceSetInputProvider apps/podinfo", Err: errors.New("no")},
	}})
	want := map[string]string{"event.toolkit.fluxcd.io/team": "web", "event.toolkit.fluxcd.io/key": "[redacted]"}
	if diff := cmp.Diff(want, events[0].Annotations); diff != "" {
		t.Error(diff)
	}
	if events[1].Annotations != nil {
		t.Errorf("another object has %v", events[1].Annotations)
	}
}

func TestEventKinds(t *testing.T) {
	e := newTestEvents()
	report := &Report{
		Trigger: "webhook", Revision: "main@sha1:aa",
		Commits:  []CommitReport{{ResourceSet: "apps/podinfo", Hash: "bb", Message: "apps/podinfo: add 12\n\n12  added"}},
		Requests: []RequestReport{{Action: "opened", Number: 7, Branch: "renderer/x", URL: "https://git.example.com/7"}},
		Problems: []*Problem{
			{Object: "ResourceSet apps/podinfo", Err: &HeldError{}},
			{Object: "ResourceSet apps/podinfo", Set: "prs-9", Err: &TakenBackError{}},
			{Object: "target", Err: errors.New("push refused")},
			{Object: "Receiver apps/hook", Err: errors.New("no token")},
		},
		Warnings: []*Problem{
			{Object: "ResourceSetInputProvider apps/prs", Err: errors.New("101 matched")},
			{Object: "ResourceSetInputProvider apps/prs", Err: errors.New("a downgrade")},
		},
	}
	events := e.Of(report)
	var got []string
	for _, event := range events {
		got = append(got, fmt.Sprintf("%s %s/%s %t %s", event.Kind, event.Namespace, event.Name, event.Error, event.Reason))
	}
	want := []string{
		"ResourceSet apps/podinfo false ReconciliationSucceeded",
		"GitRepository flux-system/flux-system false PullRequest",
		"ResourceSet apps/podinfo true RemovalHeld",
		"ResourceSet apps/podinfo true ChangeHeld",
		"GitRepository flux-system/flux-system true ReconciliationFailed",
		"Receiver apps/hook true ReconciliationFailed",
		"ResourceSetInputProvider apps/prs false Warning",
		"ResourceSetInputProvider apps/prs false Warning",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	metadata := map[string]string{"trigger": "webhook", "sourceRevision": "main@sha1:aa", "revision": "main@sha1:bb"}
	if diff := cmp.Diff(metadata, events[0].Metadata); diff != "" {
		t.Error(diff)
	}
	// Warnings end without a word; what was held is said to be over, by set.
	want = []string{
		`Receiver apps/hook false ReconciliationSucceeded "in order again: Receiver apps/hook"`,
		`ResourceSet apps/podinfo false ReconciliationSucceeded "in order again: ResourceSet apps/podinfo"`,
		`ResourceSet apps/podinfo false ReconciliationSucceeded "in order again: ResourceSet apps/podinfo: prs-9"`,
		`GitRepository flux-system/flux-system false ReconciliationSucceeded "in order again: target"`,
	}
	if diff := cmp.Diff(strings.Join(want, "\n")+"\n", lines(e.Of(&Report{}))); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutTrailers(t *testing.T) {
	for message, want := range map[string]string{
		"a: add 12\n\n12  added\n\nResourceSet: a\nTrigger: once\n": "a: add 12\n\n12  added",
		"a: update\n\nResourceSet: a\n":                             "a: update",
		"a":                                                         "a",
		"":                                                          "",
	} {
		if got := withoutTrailers(message); got != want {
			t.Errorf("%q: got %q", message, got)
		}
	}
}
