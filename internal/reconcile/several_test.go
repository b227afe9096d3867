// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/pkg/expand"
)

// peer is a second renderer on the same target: another process, with its own state.
func (w *world) peer() *world {
	w.t.Helper()
	other := *w
	cfg := *w.cfg
	cfg.State.Directory = w.t.TempDir()
	other.cfg, other.r, other.log = &cfg, nil, &strings.Builder{}
	w.t.Cleanup(other.restart)
	return &other
}

// whileListing runs f once, after the orchestrator has answered a listing and before
// the one who asked goes on.
func (w *world) whileListing(f func()) {
	var once sync.Once
	w.orchestrator.Break(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(rw, r)
		once.Do(func() {
			w.orchestrator.Heal()
			f()
		})
	})
}

// FR-41: a renderer that listed before another one pushed does not remove what that
// one has just added, and does not push an old value back.
func TestRule10_OlderListingRemovesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	b := w.peer()
	b.ok()

	// A lists without blue. Before it goes on, blue is back, green is new and red has
	// another version, and B has pushed all that.
	w.tenants("red=1.1")
	w.whileListing(func() {
		w.tenants("red=2.0", "blue", "green")
		b.ok()
	})
	w.ok()
	w.has("red", "blue", "green")
	w.contains(redFile, `"2.0"`)
	if out := w.repo.Git("log", "-p", "--format=%s"); strings.Contains(out, `"1.1"`) {
		t.Errorf("an old value was pushed:\n%s", out)
	}
	w.unchanged(w.ok)
	w.unchanged(b.ok)
}

// The same when the provider cannot be listed again: the older listing is not used in
// the place of a newer one, and the pass says so.
func TestRule10_OlderListingThatCannotBeRenewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	b := w.peer()
	w.tenants("red=2.0", "blue", "green")
	b.ok()
	w.orchestrator.Break(forgetest.Status(http.StatusBadGateway, "down"))
	report := w.unchanged(func() *Report { return w.pass(request{trigger: TriggerSource, targets: nil}) })
	w.problem(report, "ResourceSet apps/app", "another renderer has written here", "502")
	w.has("red", "blue", "green")
	w.orchestrator.Heal()
	w.unchanged(w.ok)
}

// An answer that is still awaited when another writer commits is as old as the one
// before: it does not count as listing again.
func TestRule10_AnswerThatWasAwaited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	b := w.peer()
	b.ok()
	w.tenants("red=1.1")
	held, release := make(chan struct{}), make(chan struct{})
	w.orchestrator.Break(forgetest.Times(1, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		answer := httptest.NewRecorder() // as of now, delivered later
		next.ServeHTTP(answer, r)
		close(held)
		<-release
		rw.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		_, _ = rw.Write(answer.Body.Bytes())
	}))
	w.r.patience = time.Millisecond
	w.pass(request{trigger: TriggerWebhook, targets: []Target{{Kind: "ResourceSetInputProvider", Namespace: "apps", Name: "tenants"}}})
	<-held
	w.tenants("red=2.0", "blue", "green")
	b.ok()
	// A new template makes the next pass want to write while the answer is under way.
	w.define(map[string]string{"app.yaml": withNote(appSet)})
	w.r.sourceDue = time.Time{}
	time.AfterFunc(50*time.Millisecond, func() { close(release) }) // in the midst of the pass, where it waits
	w.pass(request{trigger: TriggerSource})
	w.has("red", "blue", "green")
	w.contains(redFile, `"2.0"`)
	if out := w.repo.Git("log", "-p", "--format=%s"); strings.Contains(out, `"1.1"`) {
		t.Errorf("an old value was pushed:\n%s", out)
	}
}

// The same when the older listing is from an earlier pass altogether.
func TestRule10_ListingOfAnEarlierPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	b := w.peer()
	w.tenants("red", "blue", "green")
	b.ok()
	// A's listing is not due: it plans from what it knows, on B's commit.
	asked := len(w.orchestrator.Requests())
	report := w.unchanged(func() *Report { return w.pass(request{trigger: TriggerSource, targets: nil}) })
	if !report.OK() {
		t.Fatal(report.Err())
	}
	w.has("red", "blue", "green")
	if len(w.orchestrator.Requests()) == asked {
		t.Error("the provider was not asked again")
	}
}

// A renderer whose definitions are older than those that another one has written
// from takes neither a new ResourceSet away nor a new template back.
func TestRule10_OlderDefinitions(t *testing.T) {
	t.Parallel()
	for _, apart := range []bool{false, true} {
		w := newWorld(t)
		target := w.repo
		if apart { // definitions and manifests in two repositories
			target = gittest.NewRepo(t)
			target.Commit("main", "Begin", map[string]string{"README.md": "manifests\n"})
			w.cfg.Target.URL = target.URL()
		}
		w.ok()
		b := w.peer()
		b.ok()
		w.define(map[string]string{"one.yaml": inlineSet("one"), "app.yaml": withNote(appSet)})
		b.ok()
		w.tenants("red=3.0", "blue")
		w.unread()
		w.repo = target
		if files := strings.Join(w.generated(), "\n"); !strings.Contains(files, "apps/one/") {
			t.Errorf("apps/one was removed by older definitions:\n%s", w.repo.Git("log", "--format=%s"))
		}
		w.contains(redFile, "3.0")
		w.contains(redFile, "note: ")
	}
}

// unread is a pass for a provider's webhook, while the definitions are not due.
func (w *world) unread() {
	w.t.Helper()
	w.r.sourceDue = w.clock.Now().Add(24 * time.Hour)
	w.pass(request{trigger: TriggerWebhook, targets: []Target{{Kind: "ResourceSetInputProvider", Namespace: "apps", Name: "tenants"}}})
}

// withNote is a ResourceSet whose ConfigMaps have one more value.
func withNote(set string) string {
	return strings.Replace(set, "      data:\n", "      data:\n        note: new\n", 1)
}

// Two renderers that make different bytes of the same inputs change hands at most once.
func TestRule10_DifferentVersionsDoNotFight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.version = "1.9.0"
	w.ok()
	b := w.peer()
	b.version = "1.10.0"
	// B stands for another version: its output has a mark in it that A's lacks.
	b.cfg.Target.Commit.Author.Name = "other version"
	b.encode = func(object expand.Object) ([]byte, error) {
		data, err := expand.Encode(object.Content)
		return append(data, "# version two\n"...), err
	}
	b.ok()
	before := w.repo.Git("rev-list", "--count", "main")
	for range 20 {
		w.once()
		b.once()
	}
	if after := w.repo.Git("rev-list", "--count", "main"); after != before {
		t.Errorf("they fought:\n%s", w.repo.Git("log", "--format=%an %s"))
	}
	if !strings.Contains(w.log.String(), "a newer version of renderer makes other files") {
		t.Error("nobody is told")
	}
	// New inputs end it.
	w.tenants("red=3.0", "blue")
	w.once()
	w.contains(redFile, "3.0")
}

// Older output pushed back with our trailers, from the same inputs, is no other version's:
// it is held and reported, until something else is wanted or somebody releases it.
func TestRule07_ForgedRollbackIsHeld(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	for _, version := range []string{"", "\nRenderer-Version: 1.0.0", "\nRenderer-Version: x"} {
		w := newWorld(t)
		w.version = "1.0.0"
		w.ok()
		old := w.repo.Head("main")
		w.define(map[string]string{"app.yaml": withNote(appSet)})
		w.ok()
		message := strings.Replace(w.repo.Git("log", "-1", "--format=%B", old), "\nRenderer-Version: 1.0.0", version, 1)
		files := map[string]string{}
		for _, file := range w.repo.Files(old) {
			if strings.HasPrefix(file, "clusters/generated/apps/") {
				files[file] = w.repo.Git("show", old+":"+file) + "\n"
			}
		}
		forged := w.repo.Commit("main", message, files)
		for range 2 {
			report := w.unchanged(w.once)
			w.problem(report, "tenants-red", forged[:12], "renderer release")
			if report.Result() != ResultHeld {
				t.Errorf("the result is %s", report.Result())
			}
		}
		if _, err := w.r.Release(t.Context(), "apps/app", nil, "olga"); err != nil {
			t.Fatal(err)
		}
		w.ok()
		w.contains(redFile, "note: new")
		w.unchanged(w.ok)
	}
}

// FR-40: a push webhook for a commit of our own starts nothing.
func TestOwnPushIsNoReasonToRender(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	w := newWorld(t)
	w.ok()
	w.orchestrator.Break(forgetest.Status(http.StatusTeapot, "must not be asked"))
	report := w.unchanged(func() *Report {
		return w.pass(request{trigger: TriggerWebhook, targets: []Target{{Kind: "GitRepository", Namespace: "flux-system", Name: "flux-system"}}})
	})
	if len(report.Commits) != 0 {
		t.Errorf("commits: %+v", report.Commits)
	}
}
