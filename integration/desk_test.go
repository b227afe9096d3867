// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"resourceset.example/renderer/internal/forgetest"
)

// A desk is an orchestrator that numbers its states and remembers all of them. The
// number is in every input set, so that a tree tells which state it shows.
type desk struct {
	*forgetest.Orchestrator

	mu      sync.Mutex
	history []map[string]string // version by tenant, at each revision
	frozen  bool                // every input set says that it is of state 0
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	o, err := forgetest.NewOrchestrator(forgetest.OrchestratorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	d := &desk{Orchestrator: o}
	d.change(func(tenants map[string]string) {
		tenants["always"] = "1.0.0" // a state without any tenant of the one before would be held back
		tenants["acme"] = "1.0.0"
	})
	return d
}

// change makes a new state out of the last one and returns its number.
func (d *desk) change(edit func(tenants map[string]string)) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	tenants := map[string]string{}
	if n := len(d.history); n > 0 {
		tenants = maps.Clone(d.history[n-1])
	}
	edit(tenants)
	revision := len(d.history)
	d.history = append(d.history, tenants)
	if d.frozen {
		revision = 0 // so that only what changes changes
	}
	inputs := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(tenants)) {
		inputs = append(inputs, map[string]any{"tenant": name, "version": tenants[name], "revision": revision})
	}
	d.Set(inputs...)
	return len(d.history) - 1
}

// freeze keeps the number out of the input sets from now on, so that a change of one
// of them changes no other.
func (d *desk) freeze() {
	d.mu.Lock()
	d.frozen = true
	d.mu.Unlock()
	d.change(func(map[string]string) {})
}

// one sets the version of one tenant.
func (d *desk) one(tenant, version string) {
	d.change(func(tenants map[string]string) { tenants[tenant] = version })
}

// churn adds, upgrades or removes one tenant.
func (d *desk) churn(rng *rand.Rand) int {
	name := fmt.Sprintf("tenant-%d", rng.IntN(8))
	version := fmt.Sprintf("1.%d.%d", rng.IntN(10), rng.IntN(10))
	return d.change(func(tenants map[string]string) {
		if _, there := tenants[name]; there && rng.IntN(2) == 0 {
			delete(tenants, name)
			return
		}
		tenants[name] = version
	})
}

// at is the state of that number.
func (d *desk) at(revision int) map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if revision < 0 || revision >= len(d.history) {
		return nil
	}
	return d.history[revision]
}

func (d *desk) latest() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.history) - 1
}
