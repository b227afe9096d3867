// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"resourceset.example/renderer/internal/forgetest"
)

// A hold keeps one request back, and says when it has it.
type hold struct {
	held, release chan struct{}
	once          sync.Once
}

func newHold(t testing.TB) *hold {
	h := &hold{held: make(chan struct{}), release: make(chan struct{})}
	t.Cleanup(h.open)
	return h
}

func (h *hold) open() { h.once.Do(func() { close(h.release) }) }

func (h *hold) here(r *http.Request) {
	close(h.held)
	select {
	case <-h.release:
	case <-r.Context().Done():
	}
}

func (h *hold) wait(t testing.TB) {
	t.Helper()
	eventually(t, "the first renderer waits", func() bool {
		select {
		case <-h.held:
			return true
		default:
			return false
		}
	})
}

// TestRule10_OlderListing_FR41: two renderers on one target path, of which one has an
// older listing than the other. It never removes what the other has just added, nor
// takes a value back, and the two settle.
func TestRule10_OlderListing_FR41(t *testing.T) {
	t.Run("slow orchestrator", func(t *testing.T) {
		olderListing(t, func(w *world, h *hold) {
			w.desk.Break(forgetest.Times(1, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
				answer := httptest.NewRecorder() // as of now, delivered later
				next.ServeHTTP(answer, r)
				h.here(r)
				rw.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
				_, _ = rw.Write(answer.Body.Bytes())
			}))
		})
	})
	t.Run("slow push", func(t *testing.T) {
		olderListing(t, func(w *world, h *hold) {
			var pushes atomic.Int64
			w.git.breaks(func(rw http.ResponseWriter, r *http.Request, server http.Handler) {
				if isPush(r) && pushes.Add(1) == 1 {
					h.here(r)
				}
				server.ServeHTTP(rw, r)
			})
		})
	})
}

func olderListing(t *testing.T, pause func(*world, *hold)) {
	w := newWorld(t)
	slow, fast := w.renderer("slow"), w.renderer("fast")
	slow.every, fast.every = "1h", "1h"
	slow.define()
	run := slow.start()
	run.ready()
	audit := w.auditor(generated)
	eventually(t, "the first state", func() bool { return audit.shows() == 0 })

	// The slow one lists this state and has something to push for it.
	w.desk.change(func(tenants map[string]string) { tenants["acme"] = "2.0.0" })
	h := newHold(t)
	pause(w, h)
	run.hook()
	h.wait(t)

	t.Log("the fast one sees a tenant more, and an upgrade more, and is done first")
	newest := w.desk.change(func(tenants map[string]string) { tenants["acme"], tenants["globex"] = "3.0.0", "1.0.0" })
	fast.once(0)
	if shown := audit.shows(); shown != newest {
		t.Fatalf("the branch shows state %d, want %d", shown, newest)
	}
	fastHead := w.repo.Head("main")
	h.open()

	// The slow one has ended its pass when it answers a second hook with a new state.
	end := w.desk.change(func(tenants map[string]string) { tenants["initech"] = "1.0.0" })
	run.hook()
	eventuallyIn(t, run, "the last state", func() bool { return audit.shows() == end })
	if code := run.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for range 2 {
		slow.quiet()
		fast.quiet()
	}
	audit.commits()
	audit.pushes()
	if n := len(strings.Fields(w.repo.Git("rev-list", fastHead+"..main"))); n > 4 {
		t.Errorf("%d commits until they agreed, want at most 4:\n%s", n, w.repo.Git("log", "--stat", fastHead+"..main"))
	}
	removed := w.repo.Git("log", "--diff-filter=D", "--format=%h %s", "--name-only", "main")
	if removed != "" {
		t.Errorf("files were removed, of tenants that never went:\n%s", removed)
	}
}
