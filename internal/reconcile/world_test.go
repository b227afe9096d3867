// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/internal/secrets"
	"resourceset.example/renderer/pkg/expand"
)

// A world is a definitions repository with everything that a pass needs around
// it: an orchestrator that exports inputs, a secret store, a clock.
type world struct {
	t            *testing.T
	repo         *gittest.Repo
	orchestrator *forgetest.Orchestrator
	cfg          *config.Config
	secrets      string
	clock        *clock
	log          *strings.Builder
	redactor     *secrets.Redactor
	version      string                              // of the program; empty for a build without a release
	encode       func(expand.Object) ([]byte, error) // in place of the real one, if set
	r            *Reconciler                         // the one that is running; nil after a restart
}

// A clock stands still until it is told to move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newWorld starts with one ResourceSet, apps/app, that makes a ConfigMap of every
// tenant that the provider apps/tenants exports.
func newWorld(t *testing.T) *world {
	t.Helper()
	orchestrator, err := forgetest.NewOrchestrator(forgetest.OrchestratorOptions{Token: "s3cret-token-value"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(orchestrator.Close)
	w := &world{
		t: t, repo: gittest.NewRepo(t), orchestrator: orchestrator, secrets: t.TempDir(),
		clock:    &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
		log:      &strings.Builder{},
		redactor: &secrets.Redactor{},
	}
	w.secret("apps", "orchestrator", "token", "s3cret-token-value\n")
	w.cfg = w.config(fmt.Sprintf(`
source: {url: %[1]q, path: ./clusters}
target: {path: ./clusters/generated}
secrets: {directory: %[2]q}
state: {directory: %[3]q}
`, w.repo.URL(), w.secrets, t.TempDir()))
	w.define(map[string]string{"tenants.yaml": w.provider("tenants"), "app.yaml": appSet})
	w.tenants("red", "blue")
	t.Cleanup(func() { w.restart() })
	return w
}

const appSet = `apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata:
  name: app
  namespace: apps
spec:
  inputsFrom:
    - name: tenants
  resources:
    - apiVersion: v1
      kind: ConfigMap
      metadata:
        name: app-<< inputs.tenant >>
        namespace: apps
      data:
        version: << inputs.version | quote >>
`

func (w *world) config(text string) *config.Config {
	w.t.Helper()
	cfg, _, err := config.Load("config.yaml", []byte(text))
	if err != nil {
		w.t.Fatal(err)
	}
	return cfg
}

// provider is an ExternalService that asks the world's orchestrator.
func (w *world) provider(name string) string {
	return fmt.Sprintf(`apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSetInputProvider
metadata:
  name: %s
  namespace: apps
  labels: {team: red}
spec:
  type: ExternalService
  url: %s/inputs
  insecure: true
  secretRef: {name: orchestrator}
`, name, w.orchestrator.URL)
}

func (w *world) secret(namespace, name, key, value string) {
	w.t.Helper()
	dir := filepath.Join(w.secrets, namespace, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, key), []byte(value), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// define commits files below clusters/; an empty text deletes one.
func (w *world) define(files map[string]string) {
	w.t.Helper()
	below := make(map[string]string, len(files))
	for name, text := range files {
		below["clusters/"+name] = text
	}
	w.repo.Commit("main", "Change the definitions", below)
}

// tenants sets what the orchestrator exports: name, or name=version.
func (w *world) tenants(names ...string) {
	inputs := make([]map[string]any, len(names))
	for i, name := range names {
		name, version, ok := strings.Cut(name, "=")
		if !ok {
			version = "1.0"
		}
		inputs[i] = map[string]any{"tenant": name, "version": version}
	}
	w.orchestrator.Set(inputs...)
}

// restart ends the running process: all that it remembered is gone.
func (w *world) restart() {
	if w.r != nil {
		if err := w.r.Close(); err != nil {
			w.t.Error(err)
		}
		w.r = nil
	}
}

// once does a full pass, in the process that is running.
func (w *world) once() *Report { return w.pass(request{trigger: TriggerOnce}) }

func (w *world) open(afterPass func(context.Context, *Report)) *Reconciler {
	w.t.Helper()
	r, err := New(context.Background(), Options{
		Config: w.cfg, Secrets: secrets.NewStore(w.secrets), Redactor: w.redactor, Now: w.clock.Now, AfterPass: afterPass, Version: w.version,
		Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	r.encode = w.encode
	return r
}

func (w *world) pass(req request) *Report {
	w.t.Helper()
	if w.r == nil {
		w.r = w.open(nil)
	}
	w.clock.Advance(time.Hour) // past every pause after a failure
	report := w.r.pass(context.Background(), req)
	w.r.publish(report)
	return report
}

// ok is a pass in which nothing may fail.
func (w *world) ok() *Report {
	w.t.Helper()
	report := w.once()
	if !report.OK() {
		w.t.Fatalf("the pass had problems: %v", report.Err())
	}
	return report
}

// generated are the files below the target path, without the bookkeeping.
func (w *world) generated() []string {
	w.t.Helper()
	var files []string
	for _, file := range w.repo.Files("main") {
		rest, ok := strings.CutPrefix(file, "clusters/generated/")
		if ok && filepath.Base(rest) != "kustomization.yaml" && filepath.Base(rest) != "inputs.lock" {
			files = append(files, rest)
		}
	}
	return files
}

// has fails the test unless exactly these sets of apps/app are committed.
func (w *world) has(tenants ...string) {
	w.t.Helper()
	var got []string
	for _, file := range w.generated() {
		rest, ok := strings.CutPrefix(file, "apps/app/")
		if !ok || strings.HasPrefix(rest, fluxFolder+"/") {
			continue
		}
		folder, _, inSet := strings.Cut(rest, "/")
		if !inSet {
			continue
		}
		got = append(got, strings.TrimPrefix(folder, "tenants-"))
	}
	got = slices.Compact(got)
	slices.Sort(tenants)
	if !slices.Equal(got, tenants) {
		w.t.Fatalf("committed sets are %v, want %v", got, tenants)
	}
}

// unchanged runs f and fails the test when the branch moved meanwhile.
func (w *world) unchanged(f func() *Report) *Report {
	w.t.Helper()
	before := w.repo.Head("main")
	report := f()
	if after := w.repo.Head("main"); after != before {
		w.t.Fatalf("a commit was made:\n%s", w.repo.Git("log", "--stat", before+".."+after))
	}
	return report
}

// problem fails the test unless the report has a problem whose text holds all words.
func (w *world) problem(report *Report, words ...string) *Problem {
	w.t.Helper()
	for _, p := range report.Problems {
		found := true
		for _, word := range words {
			found = found && strings.Contains(p.Error()+"\n"+p.Suggestion(), word)
		}
		if found {
			return p
		}
	}
	w.t.Fatalf("no problem mentions %q: %v", words, report.Err())
	return nil
}

// tree is the hash of the generated folder.
func (w *world) tree() string {
	w.t.Helper()
	return w.repo.Git("rev-parse", "main:clusters/generated")
}
