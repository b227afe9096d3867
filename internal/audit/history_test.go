// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// history is the timeline in short: "event input commit's-first-words detail".
func (w *world) history(filter Filter) ([]Event, []string) {
	w.t.Helper()
	events, err := w.open().History(context.Background(), target, filter)
	if err != nil {
		w.t.Fatal(err)
	}
	var lines []string
	for _, e := range events {
		line := string(e.Kind) + " " + e.Input
		for _, f := range e.Fields {
			line += " " + f.Name + ":" + text(f.Old) + ">" + text(f.New)
		}
		if !e.Renderer {
			line += " by " + e.Author.Name + " " + strings.Join(e.Inputs, ",")
		}
		lines = append(lines, line)
	}
	return events, lines
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func TestHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rendered()
	w.tenants("red=v2", "blue", "green")
	second := w.rendered()
	w.tenants("red=v2", "green")
	third := w.rendered()
	clone := w.repo.Clone("main")
	clone.Git("revert", "--no-edit", third)
	clone.Git("push", "-q", "origin", "HEAD:main")
	edit := w.person("Fix it quickly", map[string]string{redFile: strings.ReplaceAll(w.read(redFile), "v2", "v6")})
	w.person("Something else", map[string]string{"README.md": "hello\n"})

	events, lines := w.history(Filter{})
	want := []string{
		"edited  by Somebody Else tenants-red",
		"reverted  by Somebody Else tenants-blue", // with the lists and the record of the folder
		"removed tenants-blue tenant:blue> version:v1>",
		"updated tenants-red version:v1>v2",
		"added tenants-green tenant:>green version:>v1",
		"added tenants-red tenant:>red version:>v1",
		"added tenants-blue tenant:>blue version:>v1",
		"added shared",
		"added ", // the ResourceSet as a whole
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Fatalf("timeline (-want +got):\n%s", diff)
	}
	updated := events[3]
	if updated.Commit != second || updated.Trigger != "once" || !strings.HasPrefix(updated.Revision, "main@sha1:") ||
		updated.ResourceSet != "apps/app" || updated.Signature.State != Unsigned || updated.Provider != "tenants" {
		t.Errorf("updated: %+v", updated)
	}
	if diff := cmp.Diff([]FileChange{{Path: redFile, Change: "M"}}, updated.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if events[1].Reverts != third || events[0].Commit != edit {
		t.Errorf("foreign: %+v", events[:2])
	}

	for name, c := range map[string]struct {
		filter Filter
		want   []string
	}{
		"an input":               {Filter{Input: "tenants-blue"}, []string{want[1], want[2], want[6]}},
		"the end of a folder":    {Filter{Input: "red"}, []string{want[0], want[3], want[5]}},
		"an object":              {Filter{Object: &ObjectRef{"ConfigMap", "apps", "app-red"}}, []string{want[0], want[3], want[5]}},
		"a kind that is not":     {Filter{Object: &ObjectRef{"Secret", "apps", "app-red"}}, nil},
		"its ResourceSet":        {Filter{ResourceSet: "apps/app"}, want},
		"another ResourceSet":    {Filter{ResourceSet: "apps/other"}, nil},
		"its ResourceSet, input": {Filter{ResourceSet: "apps/app", Input: "tenants-red"}, []string{want[0], want[3], want[5]}},
		"since":                  {Filter{Since: events[3].Time, Input: "green"}, []string{want[4]}},
		"until":                  {Filter{Until: events[3].Time.Add(-time.Second)}, want[5:]},
	} {
		if _, got := w.history(c.filter); !cmp.Equal(c.want, got) {
			t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(c.want, got))
		}
	}
}

// Sensitive fields are shown as the digests that they are recorded as, and marked.
func TestHistoryMarksSensitiveFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(map[string]string{"tenants.yaml": w.provider("tenants", "  annotations: {renderer/sensitive: version}\n")})
	w.tenants("red=very-secret-value")
	w.rendered()
	events, _ := w.history(Filter{Input: "red"})
	for _, f := range events[0].Fields {
		if f.Sensitive != (f.Name == "version") || strings.Contains(text(f.New), "very-secret") {
			t.Errorf("field %+v", f)
		}
	}
	if len(events[0].Fields) != 2 {
		t.Errorf("fields: %+v", events[0].Fields)
	}
}

// The locks are complete where the message's lists are cut.
func TestHistoryGoesBeyondTrailers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(map[string]string{"tenants.yaml": w.provider("tenants", "") + "  filter: {limit: 200}\n"})
	var inputs []map[string]any
	for i := range 150 {
		inputs = append(inputs, map[string]any{"tenant": "t" + strings.Repeat("x", i%10) + string(rune('a'+i/10)), "version": "v1"})
	}
	w.orchestrator.Set(inputs...)
	hash := w.rendered()
	if !strings.Contains(w.message(hash), "Input-Added: +50 more") {
		t.Fatalf("the message is not cut:\n%s", w.message(hash))
	}
	if _, lines := w.history(Filter{}); len(lines) != 152 {
		t.Errorf("%d events, want 150 sets, the shared objects and the ResourceSet", len(lines))
	}
	w.proved(1)
}

func TestHistoryOfManyCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	importHistory(t, w.repo, 500)
	r, err := Open(w.repo.Dir, "imported")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	events, err := r.History(context.Background(), benchTarget, Filter{})
	// Of 500 commits 400 are ours, each with one set; the ten first ones add a ResourceSet.
	updated := 0
	for _, e := range events {
		if e.Kind == Updated {
			updated++
		}
	}
	if err != nil || updated != 392 {
		t.Errorf("%d updates, want 392; %v", updated, err)
	}
	w.repo.Git("gc", "-q") // deltas
	packed, err := Open(w.repo.Dir, "imported")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	again, err := packed.History(context.Background(), benchTarget, Filter{})
	if diff := cmp.Diff(events, again); diff != "" || err != nil {
		t.Errorf("after packing (-before +after): %v\n%s", err, diff)
	}
}

// What renderer does about a hand edit is part of the trail: undoing it (drift:
// restore), and the release of what was held.
func TestTrailOfDrift(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	message := w.message(w.rendered())
	original := w.read(redFile)
	edit := w.person("Fix it quickly", map[string]string{redFile: strings.ReplaceAll(original, "v1", "v6")})
	var lines []string
	for line := range strings.SplitSeq(message, "\n") {
		if line != "Input-Added: tenants-blue" && !strings.HasPrefix(line, "Trigger: ") {
			lines = append(lines, strings.Replace(line, "Input-Added", "Input-Updated", 1))
		}
	}
	restored := w.person(strings.TrimSpace(strings.Join(lines, "\n"))+"\nUndoes: "+edit+"\nTrigger: drift\n", map[string]string{redFile: original})
	w.repo.Git("update-ref", "refs/heads/main", w.repo.Git("commit-tree", "main^{tree}", "-p", "main",
		"-m", "apps/app: release tenants-red\n\nResourceSet: apps/app\nReleased: tenants-red\nReleased-By: olga\nTrigger: manual"))

	events, got := w.history(Filter{Input: "tenants-red"})
	want := []string{"released ", "restored ", "edited  by Somebody Else tenants-red", "added tenants-red tenant:>red version:>v1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
	if events[0].ReleasedBy != "olga" || events[1].Reverts != edit || events[1].Trigger != "drift" {
		t.Errorf("events: %+v", events[:2])
	}
	w.status(w.verify(Verification{}), restored, Proved)
}
