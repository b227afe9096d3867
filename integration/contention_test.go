// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestContention lets four renderers, each with its own orchestrator and target path, and
// two people push to one branch. Every change lands, once, without anybody's help; the
// time from the orchestrator's change to the commit on the branch is printed.
func TestContention(t *testing.T) {
	const renderers, changes = 4, 5
	const limit = 3 * patience // a race is a lottery, and on a busy machine each draw takes seconds
	w := newWorld(t)
	var took []time.Duration
	var mu sync.Mutex
	var wg sync.WaitGroup
	var audits []*auditor
	var setups []*setup
	var runs []*service
	for n := range renderers {
		own := &world{t: t, dir: t.TempDir(), repo: w.repo, git: w.git, desk: newDesk(t)}
		r := own.renderer(fmt.Sprintf("renderer-%d", n))
		r.source, r.target = fmt.Sprintf("fleet/%d/definitions", n), fmt.Sprintf("fleet/%d/generated", n)
		r.define()
		audits, setups = append(audits, own.auditor(r.target)), append(setups, r)
	}
	for _, r := range setups {
		runs = append(runs, r.start())
	}
	for n, run := range runs {
		run.ready()
		eventually(t, "the first state", func() bool { return audits[n].shows() == 0 })
	}
	crowd := []*people{w.people("ann", time.Second), w.people("bob", time.Second)}
	for n, r := range setups {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 4))
			for range changes {
				revision := r.w.desk.churn(rng)
				began := time.Now()
				runs[n].hook()
				if !within(limit, func() bool { return audits[n].shows() == revision }) {
					t.Errorf("%s: state %d has not landed in %s\n%s", r.name, revision, limit, runs[n].logged())
					return
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for n, run := range runs {
		if code := run.stop(); code != 0 {
			t.Errorf("%s: exit code %d", setups[n].name, code)
		}
	}
	foreign := 0
	for _, p := range crowd {
		foreign += p.leave()
	}
	slices.Sort(took)
	if len(took) > 0 {
		t.Logf("%d changes by %d renderers beside %d pushes of 2 people: from change to landed p50 %s, p99 %s, longest %s; %d pushes were tried",
			len(took), renderers, foreign, round(took[len(took)/2]), round(took[len(took)*99/100]), round(took[len(took)-1]), w.git.pushes.Load())
	}
	for n, audit := range audits {
		audit.commits()
		audit.each(setups[n], changes)
	}
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func within(limit time.Duration, condition func() bool) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if condition() {
			return true
		}
	}
	return false
}

// each checks that every state of the orchestrator was committed exactly once for each
// of the two ResourceSets.
func (a *auditor) each(r *setup, changes int) {
	a.t.Helper()
	for _, set := range []string{"one", "two"} {
		out := a.w.repo.Git("log", "--format=%H", "main", "--", a.target+"/apps/"+set)
		if got := len(strings.Fields(out)); got != changes+1 {
			a.t.Errorf("%s: %d commits of ResourceSet apps/%s, want %d", r.name, got, set, changes+1)
		}
	}
}
