// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const token = "r4nd0mtoken"

// A loop is what the server calls; it notes what it is told.
type loop struct {
	mu               sync.Mutex
	got              []Target
	refreshed        chan struct{}
	healthy, unready error
}

func (l *loop) Refresh(targets []Target) {
	l.mu.Lock()
	l.got = append(l.got, targets...)
	l.mu.Unlock()
	select {
	case l.refreshed <- struct{}{}:
	default:
	}
}
func (l *loop) Healthy() error { return l.healthy }
func (l *loop) Ready() error   { return l.unready }

func (l *loop) targets() []Target {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got
}

// A fixture is a server with one receiver, and all that it logs.
type fixture struct {
	*Server
	loop *loop
	logs *bytes.Buffer
	path string
}

func newFixture(t *testing.T, r Receiver) *fixture {
	t.Helper()
	f := &fixture{loop: &loop{refreshed: make(chan struct{}, 1)}, logs: &bytes.Buffer{}}
	log := slog.New(slog.NewJSONHandler(f.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := New(Config{
		Refresher: f.loop, Checker: f.loop, Log: log, MaxBody: 4096, Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Server = s
	if r.Name == "" {
		r.Namespace, r.Name = "podinfo-preview", "github-receiver"
	}
	if r.Token == nil {
		r.Token = []byte(token)
	}
	if r.Targets == nil {
		r.Targets = []Target{{"ResourceSetInputProvider", r.Namespace, "podinfo-pull-requests"}}
	}
	if problems := s.SetReceivers([]Receiver{r}); len(problems) > 0 {
		t.Fatal(problems)
	}
	f.path = HookPath(r.Token, r.Name, r.Namespace)
	return f
}

func (f *fixture) call(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

// pending is what has been accepted and not handed over yet.
func (f *fixture) pending(t *testing.T) bool {
	t.Helper()
	page := f.call(http.MethodGet, "/metrics", "").Body.String()
	return strings.Contains(page, `renderer_webhooks_total{result="accepted"}`)
}

func sign(function func() hash.Hash, key, body string) string {
	mac := hmac.New(function, []byte(key))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// The digest was made with sha256sum, of token, name and namespace as Flux joins them.
func TestHookPathIsThatOfFlux(t *testing.T) {
	const want = "/hook/a48ebb47226cd047db91f9e2370163c3f729e39d1b8af60f2c66b0c8f5a666e7"
	if got := HookPath([]byte(token), "github-receiver", "podinfo-preview"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FR-70, FR-74: who may call, and which events lead to a refresh.
func TestHook(t *testing.T) {
	const body = `{"action":"labeled"}`
	sha256Of := func(key, body string) string { return "sha256=" + sign(sha256.New, key, body) }
	good := sha256Of(token, body)
	gitHub := func(event string) []string { return []string{"X-Hub-Signature-256", good, "X-GitHub-Event", event} }
	gitLab := func(key, event string) []string { return []string{"X-Gitlab-Token", key, "X-Gitlab-Event", event} }
	for _, tt := range []struct {
		name     string
		receiver Receiver
		headers  []string
		status   int
		accepted bool
	}{
		{"github pull request", Receiver{Type: TypeGitHub}, gitHub("pull_request"), 200, true},
		{"github push", Receiver{Type: TypeGitHub}, gitHub("push"), 200, true},
		{"github ping", Receiver{Type: TypeGitHub, Events: []string{"ping"}}, gitHub("ping"), 200, false},
		{"github event unknown to us", Receiver{Type: TypeGitHub}, gitHub("check_suite"), 200, false},
		{"github event asked for", Receiver{Type: TypeGitHub, Events: []string{"Check_Suite"}}, gitHub("check_suite"), 200, true},
		{"github event not asked for", Receiver{Type: TypeGitHub, Events: []string{"push"}}, gitHub("pull_request"), 200, false},
		{"github sha1 of an old server", Receiver{Type: TypeGitHub}, []string{"X-Hub-Signature", "sha1=" + sign(sha1.New, token, body), "X-GitHub-Event", "push"}, 200, true},
		{"github good sha1 beside bad sha256", Receiver{Type: TypeGitHub}, []string{"X-Hub-Signature-256", sha256Of("x", body), "X-Hub-Signature", "sha1=" + sign(sha1.New, token, body)}, 403, false},
		{"github unsigned", Receiver{Type: TypeGitHub}, []string{"X-GitHub-Event", "push"}, 403, false},
		{"github wrong key", Receiver{Type: TypeGitHub}, []string{"X-Hub-Signature-256", sha256Of("other", body)}, 403, false},
		{"github signature of an empty body", Receiver{Type: TypeGitHub}, []string{"X-Hub-Signature-256", sha256Of(token, "")}, 403, false},
		{"github signature cut short", Receiver{Type: TypeGitHub}, []string{"X-Hub-Signature-256", good[:20]}, 403, false},
		{"github signature of no length", Receiver{Type: TypeGitHub}, []string{"X-Hub-Signature-256", "sha256="}, 403, false},
		{"github token as signature", Receiver{Type: TypeGitHub}, []string{"X-Hub-Signature-256", token}, 403, false},
		{"gitlab merge request", Receiver{Type: TypeGitLab}, gitLab(token, "Merge Request Hook"), 200, true},
		{"gitlab event unknown to us", Receiver{Type: TypeGitLab}, gitLab(token, "Note Hook"), 200, false},
		{"gitlab wrong token", Receiver{Type: TypeGitLab}, gitLab("other", "Push Hook"), 403, false},
		{"gitlab no token", Receiver{Type: TypeGitLab}, nil, 403, false},
		{"generic", Receiver{Type: TypeGeneric}, nil, 200, true},
		{"generic takes no notice of events", Receiver{Type: TypeGeneric, Events: []string{"push"}}, nil, 200, true},
		{"generic-hmac sha256", Receiver{Type: TypeGenericHMAC}, []string{"X-Signature", good}, 200, true},
		{"generic-hmac sha512", Receiver{Type: TypeGenericHMAC}, []string{"X-Signature", "sha512=" + sign(sha512.New, token, body)}, 200, true},
		{"generic-hmac sha1", Receiver{Type: TypeGenericHMAC}, []string{"X-Signature", "sha1=" + sign(sha1.New, token, body)}, 200, true},
		{"generic-hmac of an algorithm unknown", Receiver{Type: TypeGenericHMAC}, []string{"X-Signature", "md5=" + sign(sha256.New, token, body)}, 403, false},
		{"generic-hmac unsigned", Receiver{Type: TypeGenericHMAC}, nil, 403, false},
		{"suspended", Receiver{Type: TypeGeneric, Suspend: true}, nil, 503, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, tt.receiver)
			if got := f.call(http.MethodPost, f.path, body, tt.headers...); got.Code != tt.status {
				t.Errorf("status %d, want %d", got.Code, tt.status)
			}
			if got := f.pending(t); got != tt.accepted {
				t.Errorf("accepted: %t, want %t", got, tt.accepted)
			}
			f.mustKeepSecrets(t)
		})
	}
}

// mustKeepSecrets fails when a log line or a metric holds the token or the path.
func (f *fixture) mustKeepSecrets(t *testing.T) {
	t.Helper()
	seen := f.logs.String() + f.call(http.MethodGet, "/metrics", "").Body.String()
	for _, secret := range []string{token, strings.TrimPrefix(f.path, HookPrefix)} {
		if strings.Contains(seen, secret) {
			t.Errorf("%s is in\n%s", secret, seen)
		}
	}
}

// FR-74: other methods, and paths that nobody was given, look alike and do nothing.
func TestNoSuchHook(t *testing.T) {
	f := newFixture(t, Receiver{Type: TypeGeneric})
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS"} {
		got := f.call(method, f.path, "")
		if got.Code != 405 || got.Header().Get("Allow") != "POST" {
			t.Errorf("%s: %d, Allow %q", method, got.Code, got.Header().Get("Allow"))
		}
	}
	paths := []string{"/hook/", "/hook/" + strings.Repeat("0", 64), f.path + "/", f.path[:len(f.path)-1], strings.ToUpper(f.path[6:]), "/hook/%2e%2e"}
	for _, path := range paths {
		if !strings.HasPrefix(path, HookPrefix) {
			path = HookPrefix + path
		}
		got := f.call("POST", path, "x")
		if got.Code != 404 || got.Body.String() != "not found\n" {
			t.Errorf("%s: %d %q", path, got.Code, got.Body)
		}
	}
	if f.pending(t) {
		t.Error("something was accepted")
	}
	f.mustKeepSecrets(t)
}

// An endless body that counts what is taken of it.
type endless struct{ taken int }

func (e *endless) Read(p []byte) (int, error) { e.taken += len(p); return len(p), nil }

// FR-73: a body over the limit is not read past it, declared or not.
func TestBodyLimit(t *testing.T) {
	for _, kind := range []string{TypeGitHub, TypeGitLab, TypeGeneric, TypeGenericHMAC} {
		f := newFixture(t, Receiver{Type: kind})
		for _, declared := range []int64{-1, 2 << 30} {
			body := &endless{}
			r := httptest.NewRequest("POST", f.path, io.NopCloser(body))
			r.ContentLength = declared
			w := httptest.NewRecorder()
			f.ServeHTTP(w, r)
			if w.Code != 413 {
				t.Errorf("%s, length %d: status %d", kind, declared, w.Code)
			}
			if most := 4096 + 1; body.taken > most || declared > 0 && body.taken > 0 {
				t.Errorf("%s, length %d: %d bytes were read", kind, declared, body.taken)
			}
		}
		if f.pending(t) {
			t.Errorf("%s: accepted", kind)
		}
	}
	f := newFixture(t, Receiver{Type: TypeGeneric})
	if got := f.call("POST", f.path, strings.Repeat("x", 4096)); got.Code != 200 {
		t.Errorf("a body of exactly the limit: %d", got.Code)
	}
}

// A cut body proves nothing, and is no event.
func TestBodyCut(t *testing.T) {
	f := newFixture(t, Receiver{Type: TypeGeneric})
	r := httptest.NewRequest("POST", f.path, io.MultiReader(strings.NewReader("{"), failing{}))
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	if w.Code != 400 || f.pending(t) {
		t.Errorf("status %d", w.Code)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestSetReceivers(t *testing.T) {
	f := newFixture(t, Receiver{Type: TypeGeneric})
	problems := f.SetReceivers([]Receiver{
		{Namespace: "a", Name: "one", Type: TypeGitHub, Token: []byte("t")},
		{Namespace: "a", Name: "quay", Type: "quay", Token: []byte("t")},
		{Namespace: "a", Name: "blank", Type: TypeGitHub, Token: []byte("\n")},
		{Namespace: "a", Name: "none", Type: TypeGitHub},
		{Namespace: "bc", Name: "a", Type: TypeGeneric, Token: []byte("t")},
		{Namespace: "c", Name: "ab", Type: TypeGeneric, Token: []byte("t")},
	})
	var all strings.Builder
	for _, p := range problems {
		all.WriteString(p.Error() + "\n")
	}
	for _, want := range []string{"Receiver a/quay: ", "Receiver a/blank: its token is empty", "Receiver a/none: its token is empty", "Receiver c/ab: has the same path as Receiver bc/a"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("%q is not among\n%s", want, all.String())
		}
	}
	if len(problems) != 4 {
		t.Errorf("%d problems:\n%s", len(problems), all.String())
	}
	if got := f.call("POST", f.path, ""); got.Code != 404 {
		t.Errorf("a receiver that is gone answers %d", got.Code)
	}
	if got := f.call("POST", HookPath([]byte("t"), "a", "bc"), ""); got.Code != 200 {
		t.Errorf("a new receiver answers %d", got.Code)
	}
}

// FR-86: a line break at the end of a token does no harm.
func TestTokenWithLineBreak(t *testing.T) {
	f := newFixture(t, Receiver{Type: TypeGitLab, Token: []byte(token + "\n"), Name: "r", Namespace: "n"})
	for path, want := range map[string]int{
		HookPath([]byte(token), "r", "n"):      200, // a file written with echo
		HookPath([]byte(token+"\n"), "r", "n"): 403, // as Flux: there the token has the line break, too
	} {
		if got := f.call("POST", path, "", "X-Gitlab-Token", token, "X-Gitlab-Event", "Push Hook"); got.Code != want {
			t.Errorf("status %d, want %d", got.Code, want)
		}
	}
}

// FR-71: one repository behind 2,000 providers is answered at once.
func TestManyTargets(t *testing.T) {
	var targets []Target
	for i := range 2000 {
		targets = append(targets, Target{"ResourceSetInputProvider", "apps", "p" + hex.EncodeToString([]byte{byte(i >> 8), byte(i)})})
	}
	f := newFixture(t, Receiver{Type: TypeGeneric, Targets: targets})
	began := time.Now()
	for range 50 {
		if got := f.call("POST", f.path, "{}"); got.Code != 200 {
			t.Fatal(got.Code)
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("50 hooks took %s", took)
	}
}

func FuzzHook(f *testing.F) {
	f.Add("sha256=00", "push", []byte("{}"))
	f.Add("sha1=", "", []byte(nil))
	f.Add("=", "ping", []byte("x"))
	f.Fuzz(func(t *testing.T, signature, event string, body []byte) {
		// Nobody without the token gets in, whatever is sent.
		for _, kind := range []string{TypeGitHub, TypeGitLab, TypeGenericHMAC} {
			e := &endpoint{Receiver: &Receiver{Type: kind}, token: []byte(token)}
			h := http.Header{}
			for _, name := range []string{"X-Hub-Signature", "X-Hub-Signature-256", "X-Signature", "X-Gitlab-Token"} {
				h.Set(name, signature)
			}
			h.Set("X-GitHub-Event", event)
			seal := e.seal(h)
			_, _ = seal.Write(body)
			if seal.holds() && !strings.Contains(signature, token) {
				t.Fatalf("%s took %q over %q", kind, signature, body)
			}
			if got := eventOf(TypeGitHub, h); len(got) > 100 {
				t.Fatalf("event of %d bytes", len(got))
			}
		}
	})
}
