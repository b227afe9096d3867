// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"testing"

	"resourceset.example/renderer/internal/config"
)

// A file of somebody else where a new manifest would be is not written over.
func TestRule07_FileInTheWay(t *testing.T) {
	t.Parallel()
	const theirs = "clusters/generated/apps/app/tenants-green/apps_app-green__ConfigMap.yaml"
	for _, drift := range []string{config.DriftHold, config.DriftRestore} {
		w := newWorld(t)
		w.cfg.Drift = drift
		w.ok()
		commit := w.repo.Commit("main", "Mine", map[string]string{theirs: "mine: yes\n"})
		w.unchanged(w.ok)
		w.tenants("red=2.0", "blue", "green")
		w.problem(w.once(), "tenants-green", theirs, "renderer release apps/app tenants-green")
		w.contains(redFile, "2.0") // the others go on
		w.contains(theirs, "mine: yes")
		w.forget()
		w.problem(w.unchanged(w.once), "tenants-green", theirs, commit[:12], "Somebody Else")
		w.release("tenants-green")
		w.ok()
		w.contains(theirs, `version: "1.0"`)
		w.unchanged(w.ok)
	}
}

// Without a record nothing tells whose the files are: who deletes inputs.lock has it, and
// what follows from it, written anew, as the documentation says.
func TestRule07_DeletedRecordIsWrittenAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	w.repo.Commit("main", "Have it written anew", map[string]string{"clusters/generated/apps/app/inputs.lock": ""})
	w.tenants("red=2.0", "blue")
	w.ok()
	w.contains(redFile, "2.0")
	w.contains(appList, "tenants-red")
}
