// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"resourceset.example/renderer/internal/forgetest"
)

// status is what the running process says, which must hold no credential.
func (w *world) status() *Status {
	w.t.Helper()
	s := w.r.Status()
	text, err := json.Marshal(s)
	if err != nil {
		w.t.Fatal(err)
	}
	if strings.Contains(string(text), "s3cret-token-value") {
		w.t.Fatalf("a secret is in the status:\n%s", text)
	}
	return s
}

func TestStatusOfAPassInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.r = w.open(nil)
	if s := w.status(); s.Pass != nil || s.Ready || !s.Started.Equal(w.clock.Now()) {
		t.Errorf("before the first pass: %+v", s)
	}
	w.ok()
	s := w.status()
	if s.Pass == nil || s.Pass.Result != ResultOK || s.Pass.Trigger != TriggerOnce || s.Pass.Head != w.repo.Head("main") {
		t.Errorf("pass: %+v", s.Pass)
	}
	if !s.Ready || !s.RunningSince.IsZero() || !s.LastSuccess.Equal(w.clock.Now()) {
		t.Errorf("ready %t, running %s, success %s", s.Ready, s.RunningSince, s.LastSuccess)
	}
	if len(s.Recent) != 1 || s.Recent[0].Added != 2 || s.Recent[0].ResourceSet != "apps/app" || s.Recent[0].Hash != w.repo.Head("main") {
		t.Errorf("recent commits: %+v", s.Recent)
	}
	if len(s.ResourceSets) != 1 || s.ResourceSets[0].Inputs != 2 || s.ResourceSets[0].State != StateOK || !s.ResourceSets[0].Defined {
		t.Errorf("ResourceSets: %+v", s.ResourceSets)
	}
	p := s.Providers[0]
	if len(s.Providers) != 1 || p.Name != "apps/tenants" || p.Type != "ExternalService" || p.Inputs != 2 || p.Error != "" ||
		!p.Answered.Equal(w.clock.Now()) || !p.Next.After(w.clock.Now()) {
		t.Errorf("providers: %+v", s.Providers)
	}
}

// Held removals and what people took back are in the status, and in no commit.
func TestRule05_StatusShowsHeldRemovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenants(names("t", 20)...)
	w.ok()
	since := w.clock.Now().Add(time.Hour) // each pass moves the clock
	w.tenants()
	w.unchanged(w.once)
	w.unchanged(w.once)
	s := w.status()
	set := s.ResourceSets[0]
	if s.Pass.Result != ResultHeld || set.State != StateHeld || set.Inputs != 20 || set.Held == nil {
		t.Fatalf("%s, %+v", s.Pass.Result, set)
	}
	h := set.Held
	if len(h.Sets) != 20 || h.Sets[0] != "tenants-t00" || h.Fetches != 2 || !h.Since.Equal(since) || h.Whole || h.ConfirmFetches != 3 ||
		!h.ConfirmAt.Equal(since.Add(30*time.Minute)) {
		t.Errorf("held: %+v", h)
	}
	if s.LastSuccess.After(since) {
		t.Error("a pass in which something is held counts as a success")
	}
	// A provider that fails does not hide what is held.
	w.orchestrator.Break(forgetest.Status(http.StatusBadGateway, "down"))
	w.unchanged(w.once)
	if s := w.status(); s.ResourceSets[0].Held == nil || s.Pass.Result != ResultFailed || s.Providers[0].ErrorClass != "unavailable" ||
		s.Providers[0].Failures != 1 || s.Providers[0].Inputs != 0 || s.Providers[0].Error == "" {
		t.Errorf("%+v, %+v", s.ResourceSets[0], s.Providers[0])
	}
}

func TestRule07_StatusShowsWhatWasTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	w.repo.Commit("main", "Pin red by hand", map[string]string{
		redFile: strings.Replace(w.repo.Read("main", redFile), `"1.0"`, `"0.9-pinned"`, 1),
	})
	w.unchanged(w.once)
	set := w.status().ResourceSets[0]
	if set.State != StateHeld || len(set.TakenBack) != 1 || set.TakenBack[0].Set != "tenants-red" ||
		set.TakenBack[0].Commit != w.repo.Head("main") || !strings.Contains(set.TakenBack[0].Who, "Somebody Else") || set.Error != nil {
		t.Errorf("%+v", set)
	}
}

// What failed has its words, its place and its hint; who quotes a credential is cut.
func TestRule08_StatusHasNoSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	w.define(map[string]string{"app.yaml": strings.Replace(appSet, "inputs.version", "inputs.versoin", 1)})
	w.orchestrator.Break(forgetest.Status(http.StatusForbidden, "no: s3cret-token-value"))
	w.unchanged(w.once)
	s := w.status()
	set := s.ResourceSets[0]
	if set.State != StateFailed || set.Error == nil || !strings.Contains(set.Error.Message, "versoin") || set.Error.Hint == "" ||
		!strings.Contains(set.Error.Position, "app.yaml:") || set.Errors != 2 {
		t.Errorf("%+v, %+v", set, set.Error)
	}
	if s.Providers[0].ErrorClass != "auth" {
		t.Errorf("%+v", s.Providers[0])
	}
	// A template that quotes a credential, which an input has got hold of.
	w.orchestrator.Heal()
	w.tenants("red=s3cret-token-value", "blue")
	w.define(map[string]string{"app.yaml": strings.Replace(appSet, "inputs.version | quote", "fail inputs.version", 1)})
	w.once()
	if problems := w.status().Pass.Problems; len(problems) != 2 || !strings.Contains(problems[1].Message, "tenants-red") {
		t.Errorf("%+v", problems)
	}
	// One that is gone while the definitions are not complete is still there.
	w.define(map[string]string{"app.yaml": "kind: [", "tenants.yaml": ""})
	w.unchanged(w.once)
	if sets := w.status().ResourceSets; len(sets) != 1 || sets[0].Defined || sets[0].Inputs != 2 {
		t.Errorf("%+v", sets)
	}
}

// Looking never waits for a pass, and never races with one.
func TestStatusDuringAPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := json.Marshal(w.r.Status()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	release := make(chan struct{})
	w.orchestrator.Break(forgetest.Wait(release))
	done := make(chan *Report)
	go func() { done <- w.r.pass(t.Context(), request{trigger: TriggerOnce}) }()
	deadline := time.Now().Add(20 * time.Second)
	for w.r.Status().RunningSince.IsZero() && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if w.r.Status().RunningSince.IsZero() {
		t.Error("a running pass is not shown")
	}
	if s := w.r.Status(); s.Pass == nil || s.Pass.Result != ResultOK {
		t.Errorf("the last pass is not shown while one runs: %+v", s.Pass)
	}
	close(release)
	<-done
	close(stop)
	readers.Wait()
}
