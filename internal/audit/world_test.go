// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/internal/reconcile"
	"resourceset.example/renderer/internal/secrets"
)

// A world is one repository with definitions and manifests, and the real loop that
// renders from an orchestrator's inputs.
type world struct {
	t            *testing.T
	repo         *gittest.Repo
	orchestrator *forgetest.Orchestrator
	cfg          *config.Config
	loop         *reconcile.Reconciler
	report       *reconcile.Report // of the last pass
	now          atomic.Int64
}

const (
	target  = "clusters/generated"
	folder  = target + "/apps/app"
	appSet  = "apps/app.yaml"
	appFile = `apiVersion: fluxcd.controlplane.io/v1
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
      metadata: {name: "app-<< inputs.tenant >>", namespace: apps}
      data: {version: "<< inputs.version >>"}
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: all, namespace: apps}
      data: {fixed: text}
`
)

// newWorld has one ResourceSet, apps/app, with the tenants red and blue, not yet
// rendered. More lines go into the configuration.
func newWorld(t *testing.T, more ...string) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	orchestrator, err := forgetest.NewOrchestrator(forgetest.OrchestratorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(orchestrator.Close)
	w := &world{t: t, repo: gittest.NewRepo(t), orchestrator: orchestrator}
	w.now.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Unix())
	text := fmt.Sprintf("source: {url: %q, path: ./clusters}\nsecrets: {directory: %q}\nstate: {directory: %q}\n", w.repo.URL(), t.TempDir(), t.TempDir())
	if len(more) == 0 {
		more = []string{"target: {path: ./" + target + "}"}
	}
	if w.cfg, _, err = config.Load("config.yaml", []byte(text+strings.Join(more, "\n"))); err != nil {
		t.Fatal(err)
	}
	w.define(map[string]string{"tenants.yaml": w.provider("tenants", ""), appSet: appFile})
	w.tenants("red", "blue")
	t.Cleanup(w.stop)
	return w
}

// provider asks the orchestrator; annotations are lines of YAML.
func (w *world) provider(name, annotations string) string {
	return fmt.Sprintf("apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSetInputProvider\nmetadata:\n  name: %s\n  namespace: apps\n%sspec:\n  type: ExternalService\n  url: %s/inputs\n  insecure: true\n",
		name, annotations, w.orchestrator.URL)
}

func (w *world) stop() {
	if w.loop != nil {
		if err := w.loop.Close(); err != nil {
			w.t.Error(err)
		}
		w.loop = nil
	}
}

// define commits files below clusters/; an empty text deletes one.
func (w *world) define(files map[string]string) {
	w.t.Helper()
	below := map[string]string{}
	for name, text := range files {
		below["clusters/"+name] = text
	}
	w.repo.Commit("main", "Change the definitions", below)
}

// tenants sets what the orchestrator exports: name, or name=version.
func (w *world) tenants(names ...string) {
	var inputs []map[string]any
	for _, name := range names {
		name, version, ok := strings.Cut(name, "=")
		if !ok {
			version = "v1"
		}
		inputs = append(inputs, map[string]any{"tenant": name, "version": version, "noise": w.now.Load()})
	}
	w.orchestrator.Set(inputs...)
}

// pass is a full one. It returns the head afterwards.
func (w *world) pass() string {
	w.t.Helper()
	if w.loop == nil {
		var err error
		w.loop, err = reconcile.New(context.Background(), reconcile.Options{
			Config: w.cfg, Secrets: secrets.NewStore(w.cfg.Secrets.Directory), Redactor: &secrets.Redactor{},
			Now: func() time.Time { return time.Unix(w.now.Load(), 0).UTC() },
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	w.now.Add(3600)
	w.report = w.loop.Once(context.Background())
	return w.repo.Head("main")
}

// rendered is a pass that must make a commit.
func (w *world) rendered() string {
	w.t.Helper()
	before := w.repo.Head("main")
	after := w.pass()
	if after == before {
		w.t.Fatal("the pass made no commit")
	}
	return after
}

// person commits as somebody else, with any message; empty content removes.
func (w *world) person(message string, files map[string]string) string {
	w.t.Helper()
	return w.repo.Commit("main", message, files)
}

// read is a file of the branch's head.
func (w *world) read(name string) string { return w.repo.Read("main", name) }

// open opens the server's repository as a clone.
func (w *world) open() *Repository {
	w.t.Helper()
	r, err := Open(w.repo.Dir, "main")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { r.Close() })
	return r
}

// verify verifies all, or what the options say.
func (w *world) verify(opts Verification) *Report {
	w.t.Helper()
	r := w.open()
	opts.Target, opts.SourcePath, opts.Source = target, "clusters", r
	opts.Exclude = target
	report, err := r.Verify(context.Background(), opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// proved fails the test unless so many commits are there, and all of them proved.
func (w *world) proved(n int) {
	w.t.Helper()
	report := w.verify(Verification{})
	if !report.OK() || report.Proved != n {
		w.t.Fatalf("want %d proved:\n%s", n, show(report))
	}
}

// finding fails the test unless the commit has that status and a finding that holds
// all words.
func (w *world) finding(report *Report, commit string, status Status, words ...string) {
	w.t.Helper()
	for _, p := range report.Commits {
		if p.Commit != commit {
			continue
		}
		if p.Status != status {
			w.t.Fatalf("commit %s is %s, want %s:\n%s", commit, p.Status, status, show(report))
		}
		for _, f := range p.Findings {
			text := f.File + " " + f.Reason + " " + f.Commit + " " + f.By + " " + p.Author.String()
			found := true
			for _, word := range words {
				found = found && strings.Contains(text, word)
			}
			if found {
				return
			}
		}
	}
	w.t.Fatalf("no finding of commit %s has %q:\n%s", commit, words, show(report))
}

// status fails the test unless the commit has that status.
func (w *world) status(report *Report, commit string, status Status) {
	w.t.Helper()
	for _, p := range report.Commits {
		if p.Commit == commit && p.Status == status {
			return
		}
	}
	w.t.Fatalf("commit %s is not %s:\n%s", commit, status, show(report))
}

func show(report *Report) string {
	var b strings.Builder
	for _, p := range report.Commits {
		fmt.Fprintf(&b, "%s %s %s\n", p.Commit, p.Status, p.Subject)
		for _, f := range p.Findings {
			fmt.Fprintf(&b, "    %s %s: %s (%s %s)\n", f.Status, f.File, f.Reason, f.Commit, f.By)
		}
	}
	return b.String()
}

// message is the text of a commit.
func (w *world) message(rev string) string { return w.repo.Git("log", "-1", "--format=%B", rev) }

// newOrchestrator is a second one.
func newOrchestrator(t *testing.T, inputs ...map[string]any) *forgetest.Orchestrator {
	t.Helper()
	o, err := forgetest.NewOrchestrator(forgetest.OrchestratorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	o.Set(inputs...)
	return o
}
