// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"resourceset.example/renderer/internal/gittest"
)

// generated is the target path, definitions the source path, where a test needs only one.
const (
	generated   = "generated"
	definitions = "definitions"
)

// A world is one repository behind a smart HTTP server, and an orchestrator.
type world struct {
	t    testing.TB
	dir  string
	repo *gittest.Repo
	git  *gitServer
	desk *desk
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), repo: gittest.NewRepo(t), desk: newDesk(t)}
	w.repo.Config("core.logAllRefUpdates", "always") // the audit reads what each push did
	w.git = newGitServer(t, filepath.Dir(w.repo.Dir))
	return w
}

// A gitServer is a real smart HTTP server with something before it that a test may set.
type gitServer struct {
	*httptest.Server
	trouble atomic.Pointer[trouble]
	pushes  atomic.Int64 // requests to git-receive-pack, without those for the list
}

// A trouble answers a request in place of the server, or passes it on.
type trouble func(w http.ResponseWriter, r *http.Request, server http.Handler)

func newGitServer(t testing.TB, root string) *gitServer {
	t.Helper()
	g := &gitServer{}
	server := gittest.HTTPHandler(t, root, "", "")
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isPush(r) {
			g.pushes.Add(1)
		}
		if f := g.trouble.Load(); f != nil {
			(*f)(w, r, server)
			return
		}
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(g.Close)
	return g
}

func isPush(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack")
}

// breaks sets what stands before the server; nil is nothing.
func (g *gitServer) breaks(f trouble) {
	if f == nil {
		g.trouble.Store(nil)
		return
	}
	g.trouble.Store(&f)
}

// A setup is one renderer of a world: what its configuration says.
type setup struct {
	w       *world
	name    string // of its files in the world's folder
	url     string
	source  string
	branch  string // of the definitions; that of the manifests is main
	target  string
	state   string
	every   string // pace of the providers
	auth    string
	flux    string // target.flux; empty is none
	secrets string // more of secrets, as in a flow mapping
	program string // empty: the one that is tested
	extra   string
}

// renderer is a setup with everything usual.
func (w *world) renderer(name string) *setup {
	w.t.Helper()
	s := &setup{w: w, name: name, url: w.git.URL + "/" + filepath.Base(w.repo.Dir), source: definitions, branch: "main", target: generated,
		state: filepath.Join(w.dir, name+"-state"), every: "1s"}
	return s
}

// config writes the configuration file and returns its path.
func (s *setup) config() string {
	s.w.t.Helper()
	auth := ""
	if s.auth != "" {
		auth = fmt.Sprintf("\n  auth: {secret: %s}", s.auth)
	}
	flux := ""
	if s.flux != "" {
		flux = "\n  flux: " + s.flux
	}
	file := filepath.Join(s.w.dir, s.name+".yaml")
	s.w.write(s.name+".yaml", fmt.Sprintf(`source:
  url: %s
  branch: %s
  path: %s
  interval: 1s%s
target:
  branch: main
  path: %s
  commit:
    author: {name: renderer, email: renderer@example.com}%s
prune: {maxRemovals: 100000, maxRemovalsPercent: 100, maxRemovalsTotal: 100000}
inputs: {schedule: "@every %s"}
secrets: {directory: %q, %s}
state: {directory: %q}
server: {listen: "127.0.0.1:0"}
log: {level: info, format: json}
%s`, s.url, s.branch, s.source, auth, s.target, flux, s.every, filepath.Join(s.w.dir, "secrets"), s.secrets, s.state, s.extra))
	return file
}

func (w *world) write(name, content string) {
	w.t.Helper()
	file := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// define commits the definitions of a renderer: two ResourceSets with one provider,
// and a hook that refreshes it.
func (s *setup) define() {
	s.w.t.Helper()
	s.w.write("secrets/apps/hook/token", hookToken)
	s.w.repo.Commit("main", "Define "+s.name, map[string]string{s.source + "/sets.yaml": definitionsOf(s.w.desk.URL)})
}

const hookToken = "f2a1c6d0"

func definitionsOf(url string) string {
	return strings.NewReplacer("ORCHESTRATOR", url).Replace(`apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSetInputProvider
metadata:
  name: desk
  namespace: apps
spec:
  type: ExternalService
  url: ORCHESTRATOR/inputs
  insecure: true
---
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata:
  name: one
  namespace: apps
spec:
  inputsFrom: [{kind: ResourceSetInputProvider, name: desk}]
  resources:
    - apiVersion: v1
      kind: ConfigMap
      metadata:
        name: one-<< inputs.tenant >>
        namespace: apps
      data:
        tenant: << inputs.tenant | quote >>
        version: << inputs.version | quote >>
        revision: << inputs.revision | quote >>
---
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata:
  name: two
  namespace: apps
spec:
  inputsFrom: [{kind: ResourceSetInputProvider, name: desk}]
  resources:
    - apiVersion: v1
      kind: Namespace
      metadata:
        name: apps
    - apiVersion: v1
      kind: ConfigMap
      metadata:
        name: two-<< inputs.tenant >>
        namespace: apps
      data:
        tenant: << inputs.tenant | quote >>
        version: << inputs.version | quote >>
        revision: << inputs.revision | quote >>
---
apiVersion: notification.toolkit.fluxcd.io/v1
kind: Receiver
metadata:
  name: desk
  namespace: apps
spec:
  type: generic
  secretRef:
    name: hook
  resources:
    - kind: ResourceSetInputProvider
      name: desk
`)
}

// command is the program with an environment of its own.
func (s *setup) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, cmp.Or(s.program, program()), args...)
	cmd.Dir = s.w.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.w.dir, "TMPDIR=" + os.TempDir()}
	return cmd
}

// A result is what a run of the program came to.
type result struct {
	code int
	said string
}

// finish executes a command to its end.
func finish(t testing.TB, cmd *exec.Cmd) result {
	t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{code: cmd.ProcessState.ExitCode(), said: said.String()}
}

// try is `renderer run --once`, whatever comes of it.
func (s *setup) try() result {
	s.w.t.Helper()
	ctx, cancel := context.WithTimeout(s.w.t.Context(), 2*patience)
	defer cancel()
	return finish(s.w.t, s.command(ctx, "run", "--once", "--config", s.config()))
}

// once is `renderer run --once`, which has to end with a code.
func (s *setup) once(code int) result {
	s.w.t.Helper()
	r := s.try()
	if r.code != code {
		s.w.t.Fatalf("exit code %d, want %d\n%s", r.code, code, r.said)
	}
	return r
}

// quiet is a pass that has nothing to do.
func (s *setup) quiet() {
	s.w.t.Helper()
	before := s.w.repo.Head("main")
	r := s.once(0)
	if after := s.w.repo.Head("main"); after != before {
		s.w.t.Fatalf("a pass without changes committed:\n%s\n%s", s.w.repo.Git("log", "--stat", before+".."+after), r.said)
	}
}

// eventually waits for a condition, and ends the test if it does not come.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func mustContain(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}
