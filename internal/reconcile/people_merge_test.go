// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"strings"
	"testing"

	"resourceset.example/renderer/internal/gittest"
)

// side is a clone with a commit of its own, beside which ours are made.
func (w *world) side() *gittest.Clone {
	w.t.Helper()
	clone := w.repo.Clone("main")
	clone.Write(map[string]string{"README.md": "somebody's own\n"})
	clone.Git("add", "README.md")
	clone.Git("commit", "--quiet", "--message", "Work on the side")
	return clone
}

// mergeMain merges what is on the server into the clone, and pushes the clone's branch
// as main: the merge's first parent is the clone's side.
func (w *world) mergeMain(clone *gittest.Clone, options ...string) string {
	w.t.Helper()
	clone.Git(append([]string{"pull", "--quiet", "--no-rebase", "--no-edit", "origin", "main"}, options...)...)
	clone.Git("push", "--quiet", "origin", "HEAD:main")
	return w.repo.Head("main")
}

// A merge that drops a commit of ours takes it back as a revert does. Along first
// parents nothing of it is to be seen.
func TestRule07_MergeThatDropsOurCommit(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	for _, cold := range []bool{false, true} {
		w := newWorld(t)
		w.ok()
		clone := w.side()
		w.tenants("red=2.0", "blue", "new") // an update and an addition
		w.ok()
		w.unchanged(w.ok)
		commit := w.mergeMain(clone, "--strategy", "ours")
		for range 2 {
			if cold {
				w.forget()
			}
			report := w.unchanged(w.once)
			w.problem(report, "tenants-red", commit[:12], "Somebody Else", "renderer release apps/app tenants-red")
			w.problem(report, "tenants-new", commit[:12])
		}
		w.contains(redFile, "1.0")
		w.has("red", "blue")
		w.tenants("red=3.0", "blue=2.0", "new=2.0")
		w.ok()
		w.contains(redFile, "3.0")
		w.has("red", "blue", "new")
		w.unchanged(w.ok)
	}
}

// Somebody merges main into a branch that knows nothing of our last commit, and pushes
// that as main: nothing is dropped, so nothing is held, whatever comes later.
func TestRule07_SideBranchAsFirstParent(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	for _, cold := range []bool{false, true} {
		w := newWorld(t)
		w.ok()
		clone := w.side()
		w.tenants("red=2.0", "blue")
		w.ok()
		w.mergeMain(clone)
		if cold {
			w.forget()
		} else {
			w.unchanged(w.ok)
		}
		w.tenants("red", "blue") // what the side branch had all the time
		w.ok()
		w.contains(redFile, "1.0")
	}
}

// A branch that was made before a revert, and is merged after it, does not end the
// hold: the folder is as the revert left it, whichever parent one follows.
func TestRule07_MergeAfterARevert(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	for _, cold := range []bool{false, true} {
		w := newWorld(t)
		w.ok()
		clone := w.side()
		w.tenants("red=2.0", "blue")
		w.ok()
		commit := w.revert()
		w.problem(w.unchanged(w.once), "tenants-red", commit[:12])
		w.mergeMain(clone)
		if cold {
			w.forget()
		}
		w.problem(w.unchanged(w.once), "tenants-red", commit[:12])
		// A release ends it, although the branch that was merged knows nothing of it.
		w.restart()
		r := w.open(nil)
		if _, err := r.Release(t.Context(), "apps/app", nil, "olga"); err != nil {
			t.Fatal(err)
		}
		r.Close()
		w.ok()
		w.contains(redFile, "2.0")
	}
}

// A release is older than what somebody does after it.
func TestRule07_EditAfterARelease(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	w := newWorld(t)
	w.ok()
	edit := func(to string) string {
		return w.repo.Commit("main", "Pin red", map[string]string{redFile: strings.Replace(w.repo.Read("main", redFile), `"1.0"`, to, 1)})
	}
	edit(`"0.9"`)
	w.restart()
	r := w.open(nil)
	if _, err := r.Release(t.Context(), "apps/app", nil, "olga"); err != nil {
		t.Fatal(err)
	}
	r.Close()
	w.repo.Commit("main", "Pin red again", map[string]string{redFile: strings.Replace(w.repo.Read("main", redFile), `"0.9"`, `"0.8"`, 1)})
	w.problem(w.unchanged(w.once), "tenants-red is held as Somebody Else")
	w.contains(redFile, `"0.8"`)
}
