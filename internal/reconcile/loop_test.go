// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
)

// run starts the service's loop, and returns a channel of its reports.
func (w *world) run() (reports <-chan *Report) {
	w.t.Helper()
	out := make(chan *Report, 100)
	ctx, cancel := context.WithCancel(context.Background())
	w.r = w.open(func(_ context.Context, report *Report) { out <- report })
	done := make(chan error, 1)
	go func() { done <- w.r.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				w.t.Errorf("Run: %v", err)
			}
		case <-time.After(20 * time.Second):
			w.t.Error("the loop does not end with its context")
		}
	})
	return out
}

func (w *world) next(reports <-chan *Report) *Report {
	w.t.Helper()
	select {
	case report := <-reports:
		return report
	case <-time.After(30 * time.Second):
		w.t.Fatal("no pass")
		return nil
	}
}

// A provider that does not answer must not keep a webhook for another one waiting;
// its answer counts when it comes.
func TestSlowProviderHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow, err := forgetest.NewOrchestrator(forgetest.OrchestratorOptions{Token: "s3cret-token-value"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slow.Close)
	slow.Set(map[string]any{"tenant": "late", "version": "1"})
	w.define(map[string]string{
		"slow.yaml": strings.Replace(w.provider("slow"), w.orchestrator.URL, slow.URL, 1),
		"late.yaml": strings.NewReplacer("name: app\n", "name: late\n", "- name: tenants", "- name: slow", "app-<<", "late-<<").Replace(appSet),
	})
	w.ok()
	w.restart()

	reports := w.run()
	w.next(reports)
	release := make(chan struct{})
	slow.Break(forgetest.Wait(release))
	target := func(name string) []Target {
		return []Target{{Kind: api.KindInputProvider, Namespace: "apps", Name: name}}
	}
	slow.Set(map[string]any{"tenant": "late", "version": "2"})
	w.r.Refresh(target("slow"))
	w.tenants("red", "blue", "green")
	w.next(reports) // the pass that asked the slow one, and went on
	w.r.Refresh(target("tenants"))
	for w.next(reports); !strings.Contains(strings.Join(w.generated(), "\n"), "tenants-green"); w.next(reports) {
	}
	if files := fmt.Sprint(w.generated()); !strings.Contains(files, "slow-late") {
		t.Errorf("the slow provider's output is gone: %s", files)
	}
	close(release)
	for {
		report := w.next(reports)
		if len(report.Commits) == 1 && report.Commits[0].ResourceSet == "apps/late" {
			break
		}
	}
	if message := w.repo.Git("log", "-1", "--format=%B", "main"); !strings.Contains(message, "Trigger: webhook") {
		t.Errorf("the late answer was to a webhook:\n%s", message)
	}
}
