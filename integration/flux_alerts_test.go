// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"resourceset.example/renderer/internal/forgetest"
)

// An eventDesk is where an orchestrator takes what Flux's notification-controller
// delivers: over TLS, from who shows a certificate.
type eventDesk struct {
	*httptest.Server
	mu  sync.Mutex
	got map[string][]event // by path
}

// An event has of a Flux event what the tests look at.
type event struct {
	InvolvedObject      struct{ APIVersion, Kind, Namespace, Name string }
	Severity, Reason    string
	Message             string
	Metadata            map[string]string
	ReportingController string
}

func newEventDesk(t testing.TB, ca *forgetest.CA) *eventDesk {
	t.Helper()
	d := &eventDesk{got: map[string][]event{}}
	d.Server = httptest.NewUnstartedServer(http.HandlerFunc(d.take))
	var err error
	d.TLS, err = ca.ServerTLS(true)
	must(t, err)
	d.StartTLS()
	t.Cleanup(func() {
		d.Close()
		if t.Failed() {
			t.Logf("the orchestrator was told: %+v", d.got)
		}
	})
	return d
}

func (d *eventDesk) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	var e event
	if err != nil || json.Unmarshal(body, &e) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.got[r.URL.Path] = append(d.got[r.URL.Path], e)
	w.WriteHeader(http.StatusAccepted)
}

// all are the events that one path got.
func (d *eventDesk) all(path string) []event {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]event(nil), d.got[path]...)
}

// An eventMatch says which event is waited for. What is empty may be anything.
type eventMatch struct {
	controller, object, severity, reason string
	message                              string // a part of it
	revision                             string
}

func (m *eventMatch) is(e *event) bool {
	same := func(want, got string) bool { return want == "" || want == got }
	object := e.InvolvedObject.Kind + " " + e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name
	return same(m.controller, e.ReportingController) && same(m.object, object) && same(m.severity, e.Severity) &&
		same(m.reason, e.Reason) && same(m.revision, e.Metadata["revision"]) && strings.Contains(e.Message, m.message)
}

// comes waits until so many events of a kind came to a path, and returns the last one.
func (d *eventDesk) comes(t *testing.T, path string, times int, m eventMatch) event {
	t.Helper()
	var last event
	eventually(t, "an event at "+path, func() bool {
		n := 0
		for _, e := range d.all(path) {
			if m.is(&e) {
				n, last = n+1, e
			}
		}
		return n >= times
	})
	return last
}

// Where the example's Provider delivers, and another one that is told of failures only.
const (
	eventsPath = "/api/v1/flux/events"
	errorsPath = "/api/v1/flux/errors"
)

// alertsOnApp1 are what a user of the example adds to be told of renderer's work.
const alertsOnApp1 = `apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Alert
metadata: {name: tenants, namespace: apps}
spec:
  providerRef: {name: orchestrator-webhook}
  eventMetadata: {summary: tenants of app1, cluster: production}
  eventSources:
    - {kind: ResourceSet, name: "*"}
    - {kind: ResourceSetInputProvider, name: "*"}
    - {kind: Kustomization, name: tenants, namespace: flux-system}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Alert
metadata: {name: failures, namespace: apps}
spec:
  providerRef: {name: failures}
  eventSeverity: error
  eventSources:
    - {kind: ResourceSet, name: app1}
    - {kind: ResourceSetInputProvider, name: app1-feature-flags}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: failures, namespace: apps}
spec:
  type: generic
  address: ADDRESS
  certSecretRef: {name: my-orchestrator-client-certs}
`

// alerted has Flux tell the orchestrator of the example what happens: by the example's
// own Provider and Alert, and by Alerts on renderer's kinds.
func (f *fleet) alerted(t *testing.T, o *seedOrchestrator) {
	t.Helper()
	for name, data := range o.secrets {
		text, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"name": name, "namespace": "apps"}, "stringData": data,
		})
		must(t, err)
		must(t, f.Apply(t.Context(), string(text)))
	}
	must(t, f.Apply(t.Context(), seed(t, "external-service/alert.yaml", "https://my-orchestrator.com", o.events.URL)))

	alerts := strings.ReplaceAll(alertsOnApp1, "ADDRESS", o.events.URL+errorsPath)
	if err := f.Apply(t.Context(), alerts); err == nil || !strings.Contains(err.Error(), `Unsupported value: "ResourceSet"`) {
		t.Errorf("docs/events.md says that Flux as it is released takes no Alert on ResourceSets, but: %v", err)
	}
	must(t, f.Apply(t.Context(), f.alertsOfRenderer(t)))
	var err error
	eventually(t, "the API server takes Alerts on renderer's kinds", func() bool {
		err = f.Apply(t.Context(), alerts)
		return err == nil || !strings.Contains(err.Error(), "Unsupported value")
	})
	must(t, err)
}

// alertsOfRenderer is Flux's definition of Alerts with deploy/components/alerts, put
// into the kustomization of Flux.
func (f *fleet) alertsOfRenderer(t *testing.T) string {
	t.Helper()
	definitions, err := f.Definitions(t.Context(), "github.com/fluxcd/notification-controller")
	must(t, err)
	component, err := os.ReadFile("../deploy/components/alerts/kustomization.yaml")
	must(t, err)
	fs := filesys.MakeFsInMemory()
	must(t, fs.WriteFile("flux-system/gotk-components.yaml", []byte(strings.Join(definitions, "---\n"))))
	must(t, fs.WriteFile("flux-system/kustomization.yaml", []byte("resources: [gotk-components.yaml]\ncomponents: [../alerts]\n")))
	must(t, fs.WriteFile("alerts/kustomization.yaml", component))
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "flux-system")
	must(t, err)
	text, err := built.AsYaml()
	must(t, err)
	return string(text)
}

// tellsOfWork: of the last change the orchestrator hears from renderer that it is
// committed, and from Flux that it is applied and released.
func (d *eventDesk) tellsOfWork(t *testing.T, commit string) {
	t.Log("renderer's commit and Flux's work on it are told")
	revision := "main@sha1:" + commit
	told := d.comes(t, eventsPath, 1, eventMatch{
		controller: "renderer", object: "ResourceSet apps/app1", severity: "info", reason: "ReconciliationSucceeded",
		message: "remove tenant2", revision: revision,
	})
	if got := told.InvolvedObject.APIVersion; got != "fluxcd.controlplane.io/v1" {
		t.Errorf("apiVersion %q", got)
	}
	source := told.Metadata["sourceRevision"]
	if !strings.HasPrefix(source, "main@sha1:") {
		t.Errorf("sourceRevision %q", source)
	}
	want := map[string]string{
		"revision": revision, "sourceRevision": source, "trigger": "once",
		"summary": "tenants of app1", "cluster": "production", // of the Alert
	}
	if diff := cmp.Diff(want, told.Metadata); diff != "" {
		t.Errorf("metadata of renderer's event (-want +got):\n%s", diff)
	}

	applied := eventMatch{controller: "kustomize-controller", object: "Kustomization flux-system/tenants", severity: "info", revision: revision}
	deleted := applied
	deleted.message = "HelmRelease/apps/app1-tenant2 deleted"
	d.comes(t, eventsPath, 1, deleted)
	applied.reason = "ReconciliationSucceeded"
	d.comes(t, eventsPath, 1, applied)

	// This is what the example's own Alert is for: releases, with the tenant's annotations.
	upgraded := d.comes(t, eventsPath, 1, eventMatch{
		controller: "helm-controller", object: "HelmRelease apps/app1-tenant2", severity: "info", reason: "UpgradeSucceeded",
	})
	for key, want := range map[string]string{"tenant": "tenant2", "env": "production", "app": "app1"} {
		if got := upgraded.Metadata[key]; got != want {
			t.Errorf("metadata of the release: %s is %q, want %q: %v", key, got, want, upgraded.Metadata)
		}
	}
	d.comes(t, eventsPath, 1, eventMatch{controller: "helm-controller", object: "HelmRelease apps/app1-tenant3", reason: "InstallSucceeded"})
	d.comes(t, eventsPath, 1, eventMatch{controller: "helm-controller", object: "HelmRelease apps/app1-tenant2", reason: "UninstallSucceeded"})
}

// tellsOfFailures: a fetch fails, goes well, and fails again in the same words, all
// within the five minutes in which notification-controller drops repetitions. The
// orchestrator hears of each turn; who wants failures hears of these alone.
func (o *seedOrchestrator) tellsOfFailures(t *testing.T, r *setup) {
	t.Log("a fetch fails, twice")
	r.w.write("secrets/apps/hook/token", hookToken)
	r.w.repo.Commit("main", "Fetch when asked, and say whose it is", map[string]string{
		r.source + "/provider.yaml": seed(t, "external-service/provider.yaml", "https://my-orchestrator.com", o.URL,
			"  annotations:\n", "  annotations:\n    event.toolkit.fluxcd.io/team: web\n"),
		r.source + "/receiver.yaml": `apiVersion: notification.toolkit.fluxcd.io/v1
kind: Receiver
metadata: {name: desk, namespace: apps}
spec:
  type: generic
  secretRef: {name: hook}
  resources: [{kind: ResourceSetInputProvider, name: app1-feature-flags}]
`,
	})
	run := r.start()
	run.ready()
	failed := eventMatch{
		controller: "renderer", object: "ResourceSetInputProvider apps/app1-feature-flags", severity: "error", reason: "ReconciliationFailed",
		message: "503",
	}
	well := eventMatch{
		controller: "renderer", object: failed.object, severity: "info", reason: "ReconciliationSucceeded", message: "in order again",
	}
	fails := func(times int) {
		o.Break(forgetest.Status(http.StatusServiceUnavailable, "closed"))
		run.hook()
		o.events.comes(t, errorsPath, times, failed)
		o.events.comes(t, eventsPath, times, failed)
	}
	fails(1)
	o.Heal()
	o.events.comes(t, eventsPath, 1, well) // 15 s later, when renderer tries again
	fails(2)
	if code := run.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, e := range o.events.all(errorsPath) {
		if !failed.is(&e) {
			t.Errorf("who wants failures is told: %+v", e)
		}
		want := map[string]string{"team": "web", "trigger": "webhook", "sourceRevision": "main@sha1:" + r.w.repo.Head("main")}
		if diff := cmp.Diff(want, e.Metadata); diff != "" { // no token either
			t.Errorf("metadata of a failure (-want +got):\n%s", diff)
		}
	}
}
