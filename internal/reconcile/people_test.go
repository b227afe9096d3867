// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"resourceset.example/renderer/internal/config"
)

const redFile = "clusters/generated/apps/app/tenants-red/apps_app-red__ConfigMap.yaml"

// forget loses the state folder, as a new machine does.
func (w *world) forget() {
	w.restart()
	if err := os.RemoveAll(w.cfg.State.Directory); err != nil {
		w.t.Fatal(err)
	}
}

// revert reverts the head as a person does.
func (w *world) revert() string {
	w.t.Helper()
	clone := w.repo.Clone("main")
	clone.Git("revert", "--no-edit", "HEAD")
	clone.Git("push", "--quiet", "origin", "HEAD:main")
	return w.repo.Head("main")
}

func (w *world) contains(path, text string) {
	w.t.Helper()
	if got := w.repo.Read("main", path); !strings.Contains(got, text) {
		w.t.Fatalf("%s does not contain %q:\n%s", path, text, got)
	}
}

// A hand edit stays, is reported with who and which commit, and others go on.
func TestRule07_HandEditIsHeld(t *testing.T) {
	t.Parallel()
	for _, cold := range []bool{false, true} {
		w := newWorld(t)
		w.ok()
		edited := strings.Replace(w.repo.Read("main", redFile), `"1.0"`, `"0.9-pinned"`, 1)
		w.repo.Commit("main", "Pin red by hand", map[string]string{redFile: edited})
		commit := w.repo.Head("main")
		if cold {
			w.forget()
		}
		for range 2 {
			report := w.unchanged(w.once)
			w.problem(report, "ResourceSet apps/app", "tenants-red", "Somebody Else", commit[:12], "renderer release apps/app tenants-red")
		}
		// The other sets go on; a new one comes, one changes, one goes.
		w.tenants("red", "blue=2.0", "green")
		w.once()
		w.tenants("red", "green")
		report := w.once()
		w.problem(report, "tenants-red", commit[:12])
		w.has("red", "green")
		w.contains(redFile, "0.9-pinned")
		// It ends when red is to be something else.
		w.tenants("red=3.0", "green")
		w.ok()
		w.contains(redFile, "3.0")
		w.unchanged(w.ok)
	}
}

// A revert of an update, an addition and a removal each hold that set.
func TestRule07_RevertIsHeld(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	for _, cold := range []bool{false, true} {
		w := newWorld(t)
		w.tenants("red", "blue", "green")
		w.ok()

		w.tenants("red=2.0", "blue", "green") // an update is taken back
		w.ok()
		commit := w.revert()
		if cold {
			w.forget()
		}
		w.problem(w.unchanged(w.once), "tenants-red", commit[:12], "Somebody Else")
		w.contains(redFile, "1.0")
		w.tenants("red=2.1", "blue", "green")
		w.ok()
		w.contains(redFile, "2.1")

		w.tenants("red=2.1", "blue", "green", "new") // an addition is taken back
		w.ok()
		commit = w.revert()
		if cold {
			w.forget()
		}
		w.problem(w.unchanged(w.once), "tenants-new", commit[:12])
		w.tenants("red=2.2", "blue", "green", "new") // others go on, twice
		w.problem(w.once(), "tenants-new", commit[:12])
		w.tenants("red=2.3", "blue", "green", "new")
		w.problem(w.once(), "tenants-new", commit[:12])
		w.has("red", "blue", "green")
		w.contains(redFile, "2.3")
		w.tenants("red=2.3", "blue", "green", "new=2") // it is to be something else
		w.ok()
		w.has("red", "blue", "green", "new")

		w.tenants("red=2.3", "green", "new=2") // a removal is taken back
		w.ok()
		commit = w.revert()
		if cold {
			w.forget()
		}
		w.problem(w.unchanged(w.once), "tenants-blue", commit[:12])
		w.has("red", "blue", "green", "new")
	}
}

// The real sequence: a bad template is merged, forty sets are rendered, somebody on
// call reverts our commit, nothing re-applies it, the fixed template is merged, and
// all sets move on.
func TestRule07_BadTemplateRevertedThenFixed(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	w := newWorld(t)
	w.tenants(names("t", 40)...)
	w.ok()
	template := func(extra string) string {
		return strings.Replace(appSet, "      data:\n", "      data:\n        "+extra+"\n", 1)
	}
	w.define(map[string]string{"app.yaml": template(`bad: "yes"`)})
	w.ok()
	commit := w.revert()
	for range 3 {
		report := w.unchanged(w.once)
		if len(report.Problems) != 40 {
			t.Fatalf("%d problems, want 40: %v", len(report.Problems), report.Err())
		}
		w.problem(report, "tenants-t07", commit[:12])
	}
	w.forget()
	w.problem(w.unchanged(w.once), "tenants-t39", commit[:12])
	w.define(map[string]string{"app.yaml": template(`fixed: "yes"`)})
	report := w.ok()
	if len(report.Commits) != 1 || report.Commits[0].Updated != 40 {
		t.Errorf("commits: %+v", report.Commits)
	}
	w.contains("clusters/generated/apps/app/tenants-t00/apps_app-t00__ConfigMap.yaml", "fixed:")
	w.unchanged(w.ok)
}

// A whole ResourceSet that a person took away, or brought back, stays that way.
func TestRule07_WholeResourceSet(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	w := newWorld(t)
	w.ok()
	w.define(map[string]string{"one.yaml": inlineSet("one")})
	w.ok()
	commit := w.revert() // our addition of apps/one
	for _, cold := range []bool{false, true} {
		if cold {
			w.forget()
		}
		w.problem(w.unchanged(w.once), "apps/one", commit[:12])
	}
	w.define(map[string]string{"one.yaml": strings.Replace(inlineSet("one"), "{part: one}", "{part: other}", 1)})
	w.once()
	if files := strings.Join(w.generated(), "\n"); !strings.Contains(files, "apps/one/one-other") || strings.Contains(files, "one-two") {
		t.Errorf("the new set comes, the others stay away:\n%s", files)
	}
	w.define(map[string]string{"one.yaml": ""})
	w.once()
	commit = w.revert() // our removal of what is left of it
	w.problem(w.unchanged(w.once), "apps/one", commit[:12])
}

// release ends a hold of apps/app, while no process runs: one at a time uses the state folder.
func (w *world) release(sets ...string) {
	w.t.Helper()
	w.restart()
	r := w.open(nil)
	defer r.Close()
	if _, err := r.Release(context.Background(), "apps/app", sets, "olga"); err != nil {
		w.t.Fatal(err)
	}
}

// Whoever edits a set after it was released, before a pass has written it, is heard: it
// is held, however it came to be held before.
func TestRule07_EditAfterRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	w := newWorld(t)
	w.ok()
	w.tenants("red=2.0", "blue")
	w.ok()
	w.revert()
	w.unchanged(w.once)
	w.release("tenants-red")
	w.repo.Commit("main", "Pin red by hand", map[string]string{
		redFile: strings.Replace(w.repo.Read("main", redFile), `"1.0"`, `"0.9-pinned"`, 1),
	})
	pinned := w.repo.Head("main")
	for _, cold := range []bool{false, true} {
		if cold {
			w.forget()
		}
		w.problem(w.unchanged(w.once), "tenants-red is held", pinned[:12]) // the newer of the two
		w.contains(redFile, "0.9-pinned")
	}
	w.release("tenants-red")
	w.repo.Commit("main", "A note beside it", map[string]string{"clusters/generated/apps/app/tenants-red/notes.txt": "x"})
	w.ok()
	w.contains(redFile, "2.0")
	w.unchanged(w.ok)
}

// An operator ends a hold, for one set or for all.
func TestRule07_Release(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	w := newWorld(t)
	w.ok()
	w.tenants("red=2.0", "blue=2.0")
	w.ok()
	w.revert()
	w.unchanged(w.once)
	w.restart()
	release := func(sets ...string) {
		t.Helper()
		r := w.open(nil)
		defer r.Close()
		if _, err := r.Release(context.Background(), "apps/app", sets, "olga"); err != nil {
			t.Fatal(err)
		}
		w.unchanged(func() *Report {
			if _, err := r.Release(context.Background(), "apps/other", sets, "olga"); err == nil || !strings.Contains(err.Error(), "apps/other") {
				t.Errorf("released a ResourceSet that there is not: %v", err)
			}
			return nil
		})
	}
	release("tenants-red") // while no process runs: one at a time uses the state folder
	w.problem(w.once(), "tenants-blue")
	w.contains(redFile, "2.0")
	w.unchanged(w.once)
	w.restart()
	release()
	w.ok()
	w.restart()
	w.unchanged(func() *Report {
		for _, sets := range [][]string{nil, {"tenants-red"}, {"no-such"}} {
			r := w.open(nil)
			var none *notHeldError
			if _, err := r.Release(context.Background(), "apps/app", sets, "olga"); !errors.As(err, &none) {
				t.Errorf("released %q, and nothing was held: %v", sets, err)
			}
			r.Close()
		}
		return nil
	})
	w.contains("clusters/generated/apps/app/tenants-blue/apps_app-blue__ConfigMap.yaml", "2.0")
	if out := w.repo.Git("log", "--format=%B"); !strings.Contains(out, "Released: tenants-red") || !strings.Contains(out, "Released-By: olga") {
		t.Errorf("the trail does not say who released it:\n%s", out)
	}
}

// drift: restore undoes hand edits, in a commit that says which one.
func TestRule07_DriftRestore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.Drift = config.DriftRestore
	w.ok()
	edited := strings.Replace(w.repo.Read("main", redFile), `"1.0"`, `"0.9-pinned"`, 1)
	w.repo.Commit("main", "Pin red by hand", map[string]string{redFile: edited})
	hand := w.repo.Head("main")
	w.ok()
	w.contains(redFile, `"1.0"`)
	message := w.repo.Git("log", "-1", "--format=%B")
	if !strings.Contains(message, "Trigger: drift") || !strings.Contains(message, "Undoes: "+hand) {
		t.Errorf("message:\n%s", message)
	}
	w.unchanged(w.ok)
	w.tenants("red=2.0", "blue")
	w.ok()
	w.revert()
	w.ok()
	w.contains(redFile, "2.0")
	w.unchanged(w.ok)
}

// A set with a hand edit in one manifest, of which another one is to change, moves on
// as a whole: nothing of the edit stays behind, unseen.
func TestRule07_HoldEndsForAllFilesOfASet(t *testing.T) {
	t.Parallel()
	second := strings.Replace(appSet[strings.Index(appSet, "    - apiVersion: v1"):], "app-<<", "more-<<", 1)
	w := newWorld(t)
	w.define(map[string]string{"app.yaml": appSet + second})
	w.ok()
	edited := strings.Replace(w.repo.Read("main", redFile), `"1.0"`, `"0.9-pinned"`, 1)
	commit := w.repo.Commit("main", "Pin red by hand", map[string]string{redFile: edited})
	w.problem(w.unchanged(w.once), "tenants-red", commit[:12])
	w.define(map[string]string{"app.yaml": appSet + strings.Replace(second, "      data:\n", "      data:\n        more: x\n", 1)})
	w.ok()
	w.contains(redFile, `"1.0"`)
	w.unchanged(w.ok)
}

// What a person decides in a merge, against a commit of ours that they merge, is held
// and reported like any other hand edit.
func TestRule07_MergeKeepsTheirs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	clone := w.repo.Clone("main")
	clone.Write(map[string]string{redFile: strings.Replace(w.repo.Read("main", redFile), `"1.0"`, `"0.9-pinned"`, 1)})
	clone.Git("commit", "--quiet", "--all", "--message", "Pin red by hand")
	w.tenants("red=2.0", "blue")
	w.ok()
	clone.Git("pull", "--quiet", "--no-rebase", "--strategy-option", "ours", "--no-edit", "origin", "main")
	clone.Git("push", "--quiet", "origin", "HEAD:main")
	for _, cold := range []bool{false, true} {
		if cold {
			w.forget()
		}
		w.problem(w.unchanged(w.once), "tenants-red", "held")
		w.contains(redFile, "0.9-pinned")
	}
}

// Foreign commits elsewhere, however many, are nobody's intervention.
func TestRule07_ForeignCommitsElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	for i := range 3 {
		w.repo.Commit("main", fmt.Sprintf("elsewhere %d", i), map[string]string{"README.md": fmt.Sprint(i), "clusters/generated/apps/app/notes.txt": fmt.Sprint(i)})
	}
	w.forget()
	w.tenants("red=2.0", "blue", "green")
	w.ok()
	w.contains(redFile, "2.0")
	w.has("red", "blue", "green")
}
