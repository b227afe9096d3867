// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"resourceset.example/renderer/internal/forgetest"
)

func names(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%02d", prefix, i)
	}
	return list
}

// FR-90: a healthy, empty answer does not take twenty environments away.
func TestRule05_MassRemovalIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenants(names("t", 20)...)
	w.ok()
	w.tenants()
	report := w.unchanged(w.once)
	p := w.problem(report, "ResourceSet apps/app", "held back", "prune.maxRemovals (10)", "renderer approve apps/app", "1 so far")
	if !strings.Contains(p.Error(), "tenants-t00") {
		t.Errorf("the message does not name what would go: %v", p)
	}
	// Additions and updates go on.
	w.tenants("new", "t00=2.0")
	w.once()
	w.has(append(names("t", 20), "new")...)
	if text := w.repo.Read("main", "clusters/generated/apps/app/tenants-t00/apps_app-t00__ConfigMap.yaml"); !strings.Contains(text, "2.0") {
		t.Errorf("the update did not go on:\n%s", text)
	}
	// They come back: nothing is held any more.
	w.tenants(append(names("t", 20), "new")...)
	w.ok()
	if plans, err := OpenHeld(w.cfg.State.Directory).Plans(); err != nil || len(plans) != 0 {
		t.Errorf("held plans: %v, %v", plans, err)
	}
}

func TestRule05_WhatIsHeldAndWhatIsNot(t *testing.T) {
	for _, test := range []struct{ before, gone, want int }{
		{1, 1, 0}, // the only pull request closing is an ordinary day
		{2, 2, 2}, // all of several
		{2, 1, 0},
		{3, 2, 0},
		{5, 3, 3},   // three or more and over half
		{6, 3, 0},   // half is not over half
		{40, 10, 0}, // up to maxRemovals
		{40, 11, 11},
	} {
		reason := setsReason(test.gone, test.before, 10, 50)
		if held := reason != ""; held != (test.want > 0) {
			t.Errorf("%d of %d: held is %t (%s)", test.gone, test.before, held, reason)
		}
	}
}

// The same removal seen by enough fetches over enough time is meant. The count
// outlives the process.
func TestRule05_AgreeingFetchesRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	w.tenants()
	w.unchanged(w.once)
	w.restart()
	w.orchestrator.Break(forgetest.Status(http.StatusBadGateway, "down"))
	w.unchanged(w.once) // a failed fetch agrees with nothing, and disagrees with nothing
	w.orchestrator.Heal()
	report := w.unchanged(w.once)
	w.problem(report, "2 so far")
	w.restart()
	w.ok() // the third
	w.has()
	if text := w.log.String(); !strings.Contains(text, "released a removal") {
		t.Errorf("the log does not say why it was released:\n%s", text)
	}
}

// A fetch that disagrees starts the count again.
func TestRule05_DisagreeingFetchStartsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	for range 2 {
		w.tenants()
		w.unchanged(w.once)
		w.unchanged(w.once)
		w.tenants("red", "blue")
		w.unchanged(w.ok)
	}
}

func TestRule05_ApprovalReleasesExactlyThatPlanOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.Prune.Confirm.Fetches = 0 // only a person
	w.ok()
	held := func() HeldPlan {
		t.Helper()
		plans, err := OpenHeld(w.cfg.State.Directory).Plans()
		if err != nil || len(plans) != 1 {
			t.Fatalf("held plans: %v, %v", plans, err)
		}
		return plans[0]
	}
	w.tenants()
	w.unchanged(w.once)
	plan := held()
	if err := OpenHeld(w.cfg.State.Directory).Approve(plan.Digest, "olga", w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	// Another plan is not released by it.
	w.tenants("red", "blue", "green")
	w.ok()
	w.tenants()
	w.unchanged(w.once)
	// Nor is that very plan, once the source has recovered in between.
	w.tenants("red", "blue", "green")
	w.ok()
	w.tenants("green")
	w.ok() // two of three go: nobody is asked
	w.tenants("red", "blue")
	w.ok()
	w.tenants()
	w.problem(w.unchanged(w.once), "held back")
	if err := OpenHeld(w.cfg.State.Directory).Approve(held().Digest, "olga", w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	w.ok()
	w.has()
	w.tenants("red", "blue")
	w.ok()
	w.tenants()
	w.problem(w.unchanged(w.once), "held back")

	// By a reviewed commit.
	plan = held()
	w.tenants("red", "blue=2")
	w.ok()
	w.tenants()
	w.unchanged(w.once)
	w.define(map[string]string{ApprovalFile(held().Digest): string(ApprovalText("olga", w.clock.Now()))})
	w.ok()
	w.has()
}

func TestRule05_ManyResourceSetsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.Prune.MaxRemovals = 2
	files := map[string]string{}
	for i := range 3 {
		name := fmt.Sprintf("set%d", i)
		files[name+".yaml"] = inlineSet(name)
	}
	w.define(files)
	w.ok()
	before := w.tree()
	for name := range files {
		files[name] = ""
	}
	w.define(files)
	report := w.once()
	w.problem(report, "ResourceSet apps/set0", "3 ResourceSets would go at once")
	if w.tree() != before {
		t.Fatal("ResourceSets were removed")
	}
	w.once()
	w.ok()
	if text := strings.Join(w.generated(), "\n"); strings.Contains(text, "apps/set") {
		t.Errorf("generated:\n%s", text)
	}
}

func TestRule05_TotalOfOnePass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.Prune.MaxRemovalsTotal = 3
	w.define(map[string]string{
		"other.yaml": strings.NewReplacer("name: app\n", "name: other\n", "app-<<", "other-<<").Replace(appSet),
	})
	w.tenants(names("t", 10)...)
	w.ok()
	w.tenants(names("t", 8)...)
	report := w.unchanged(w.once)
	w.problem(report, "ResourceSet apps/app", "4 removals in one pass")
	w.problem(report, "ResourceSet apps/other", "4 removals in one pass")
}

// The same removal, once more after it was approved and carried out, can be approved
// again, and needs it.
func TestRule05_ApprovedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 2 {
		w.tenants("red", "blue", "green", "grey")
		w.ok()
		w.tenants("red")
		w.unchanged(w.once)
		held := OpenHeld(w.cfg.State.Directory)
		plans, err := held.Plans()
		if err != nil || len(plans) != 1 {
			t.Fatalf("held plans: %v, %v", plans, err)
		}
		if err := held.Approve(plans[0].Digest, "olga", w.clock.Now()); err != nil {
			t.Fatal(err)
		}
		w.ok()
		w.has("red")
	}
}
