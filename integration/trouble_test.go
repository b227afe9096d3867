// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"

	"resourceset.example/renderer/internal/gittest"
)

// TestConnectionLost cuts the connection in the middle of a push. What became of it is
// found out by fetching: what landed is not pushed again, what did not land is reported,
// and pushed by the next pass.
func TestConnectionLost(t *testing.T) {
	cut := func() { panic(http.ErrAbortHandler) }
	cases := map[string]struct {
		push   trouble
		landed bool
	}{
		"before the server has all of it": {landed: false, push: func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
			_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
			cut()
		}},
		"before the answer": {landed: true, push: func(_ http.ResponseWriter, r *http.Request, server http.Handler) {
			server.ServeHTTP(httptest.NewRecorder(), r)
			cut()
		}},
		"in the middle of the answer": {landed: true, push: func(w http.ResponseWriter, r *http.Request, server http.Handler) {
			answer := httptest.NewRecorder()
			server.ServeHTTP(answer, r)
			w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
			w.Header().Set("Content-Length", fmt.Sprint(answer.Body.Len()))
			_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
			_ = http.NewResponseController(w).Flush()
			cut()
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.renderer("renderer")
			r.define()
			r.once(0)
			audit := w.auditor(generated)
			w.desk.churn(rand.New(rand.NewPCG(1, 9)))
			w.git.pushes.Store(0)
			var cuts atomic.Int64
			w.git.breaks(func(rw http.ResponseWriter, req *http.Request, server http.Handler) {
				if isPush(req) && cuts.Add(1) == 1 {
					c.push(rw, req, server)
					return
				}
				server.ServeHTTP(rw, req)
			})
			got := r.try()
			want := 1
			if c.landed {
				want = 0
			}
			if got.code != want {
				t.Errorf("exit code %d, want %d\n%s", got.code, want, got.said)
			}
			if n := w.git.pushes.Load(); n != 1 {
				t.Errorf("pushed %d times, want once", n)
			}
			if landed := audit.shows() == w.desk.latest(); landed != c.landed {
				t.Errorf("landed: %t, want %t", landed, c.landed)
			}
			r.once(0)
			r.quiet()
			audit.commits()
			audit.pushes()
			audit.each(r, 1)
		})
	}
}

// TestConnectionLostService: the same while a service runs, and nobody calls it: a
// connection that is cut again and again delays a change, and does not double it.
func TestConnectionLostService(t *testing.T) {
	w := newWorld(t)
	r := w.renderer("renderer")
	r.define()
	audit := w.auditor(generated)
	rng := rand.New(rand.NewPCG(7, 7))
	var n atomic.Int64
	w.git.breaks(func(rw http.ResponseWriter, req *http.Request, server http.Handler) {
		if isPush(req) && n.Add(1)%2 == 1 {
			server.ServeHTTP(httptest.NewRecorder(), req)
			panic(http.ErrAbortHandler)
		}
		server.ServeHTTP(rw, req)
	})
	run := r.start()
	run.ready()
	const changes = 5
	for range changes {
		eventuallyIn(t, run, "the state before", func() bool { return audit.shows() == w.desk.latest() })
		w.desk.churn(rng)
		run.hook()
	}
	eventuallyIn(t, run, "the last state", func() bool { return audit.shows() == w.desk.latest() })
	run.stop()
	w.git.breaks(nil)
	r.quiet()
	audit.commits()
	audit.pushes()
	audit.each(r, changes)
}

// TestServerAnswers: a server that refuses for a while. Nothing changes meanwhile, the
// reason and what to do are said, and the work is done when the server is well again.
func TestServerAnswers(t *testing.T) {
	w := newWorld(t)
	r := w.renderer("renderer")
	r.define()
	r.once(0)
	audit := w.auditor(generated)
	rng := rand.New(rand.NewPCG(2, 2))
	says := map[int]string{
		http.StatusInternalServerError: "status 500",
		http.StatusServiceUnavailable:  "status 503",
		http.StatusUnauthorized:        "renderer: hint: check that the",
		http.StatusForbidden:           "renderer: hint: check that the",
		http.StatusNotFound:            "renderer: hint: check the URL",
	}
	for status, say := range says {
		for _, only := range []string{"everything", "pushes"} {
			t.Run(fmt.Sprintf("%d for %s", status, only), func(t *testing.T) {
				w.desk.churn(rng)
				head := w.repo.Head("main")
				w.git.breaks(func(rw http.ResponseWriter, req *http.Request, server http.Handler) {
					if only == "everything" || isPush(req) {
						http.Error(rw, "not now", status)
						return
					}
					server.ServeHTTP(rw, req)
				})
				got := r.try()
				w.git.breaks(nil)
				if got.code != 1 {
					t.Errorf("exit code %d, want 1", got.code)
				}
				mustContain(t, "what is said", got.said, "renderer: error: ", w.git.URL, say)
				if w.repo.Head("main") != head {
					t.Error("the branch moved")
				}
				r.once(0)
				if audit.shows() != w.desk.latest() {
					t.Errorf("the branch shows state %d, want %d", audit.shows(), w.desk.latest())
				}
			})
		}
	}
	audit.commits()
	audit.pushes()
}

// TestSlowServer: every request takes its time. The work is done all the same.
func TestSlowServer(t *testing.T) {
	w := newWorld(t)
	r := w.renderer("renderer")
	r.define()
	w.git.breaks(func(rw http.ResponseWriter, req *http.Request, server http.Handler) {
		select {
		case <-time.After(300 * time.Millisecond):
		case <-req.Context().Done():
		}
		server.ServeHTTP(rw, req)
	})
	r.once(0)
	r.quiet()
}

// TestHostKeyChanged: an SSH server that shows another key than the known one is refused.
func TestHostKeyChanged(t *testing.T) {
	w := newWorld(t)
	server := gittest.SSHServer(t)
	r := w.renderer("renderer")
	r.url, r.auth = server.URL+w.repo.Dir, "flux-system/git"
	r.define()
	secret := func(knownHosts []byte) {
		w.write(filepath.Join("secrets/flux-system/git/identity"), string(server.Identity))
		w.write(filepath.Join("secrets/flux-system/git/known_hosts"), string(knownHosts))
	}
	secret(server.KnownHosts)
	r.once(0)
	audit := w.auditor(generated)
	w.desk.churn(rand.New(rand.NewPCG(4, 4)))
	head := w.repo.Head("main")
	other, _ := gittest.NewKey(t, "")
	secret([]byte(knownhosts.Line([]string{server.Address}, other.PublicKey()) + "\n"))
	got := r.once(1)
	mustContain(t, "refusal", got.said, "renderer: error: ", "host key", "renderer: hint: ")
	if w.repo.Head("main") != head {
		t.Error("something was pushed to a server that is not the known one")
	}
	secret(server.KnownHosts)
	r.once(0)
	if audit.shows() != w.desk.latest() {
		t.Errorf("the branch shows state %d, want %d", audit.shows(), w.desk.latest())
	}
}
