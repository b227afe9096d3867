// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"testing"

	"resourceset.example/renderer/pkg/expand"
)

// Only what undoes an edit is told as one that was undone.
func TestAroundKind(t *testing.T) {
	plain, managed := &expand.Lock{}, &expand.Lock{Flux: &expand.LockedFlux{Generation: 1}}
	const list, part, manifest = kustomizationName, fluxFolder + "/app/kustomization.yaml", "tenants-red/apps_app__ConfigMap.yaml"
	for name, c := range map[string]struct {
		undoes        string
		changed       []string
		before, after *expand.Lock
		want          EventKind
	}{
		"a manifest":             {"", []string{manifest}, plain, plain, Restored},
		"a manifest and a list":  {"", []string{list, manifest}, managed, managed, Restored},
		"a list, with its edit":  {"abc", []string{list}, plain, plain, Restored},
		"for Flux, with an edit": {"abc", []string{part, lockName}, plain, managed, Restored},
		"handed over":            {"", []string{part, list, lockName}, plain, managed, Flux},
		"taken back":             {"", []string{part, list, lockName}, managed, plain, Flux},
		"a file for Flux":        {"", []string{part}, managed, managed, Restored},
		"the record":             {"", []string{lockName}, plain, plain, Updated},
		"a list":                 {"", []string{list}, plain, plain, Listed},
	} {
		if got := aroundKind(c.undoes, c.changed, c.before, c.after); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
