// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"path"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/integration/cluster"
	"resourceset.example/renderer/internal/forgetest"
)

const (
	helmAPI   = "helm.toolkit.fluxcd.io/v2"
	sourceAPI = "source.toolkit.fluxcd.io/v1"
)

// tenants is the example with the orchestrator, with its access by password and client
// certificate: whom it onboards, upgrades, toggles and offboards is so in the cluster.
func (f *fleet) tenants(t *testing.T) {
	w := newWorld(t)
	desk := newSeedOrchestrator(t, w)
	charts := newChartDesk(t, "app1", "1.9.0", "2.0.0-rc.1", "2.0.0")
	r := w.renderer("renderer")
	r.extra = "events: [{url: " + f.EventsURL() + "}]\n"
	must(t, f.CreateNamespace(t.Context(), "apps"))
	f.alerted(t, desk)
	w.repo.Commit("main", "Define the tenants", map[string]string{
		r.source + "/provider.yaml":    seed(t, "external-service/provider.yaml", "https://my-orchestrator.com", desk.URL),
		r.source + "/resourceset.yaml": seed(t, "external-service/resourceset.yaml", "oci://ghcr.io", "oci://"+charts.Listener.Addr().String()),
		r.source + "/alert.yaml":       seed(t, "external-service/alert.yaml"),
	})
	sync := &cluster.Sync{Name: "tenants", URL: r.url, Branch: "main", Path: r.target}
	pass := func() {
		t.Helper()
		r.once(0)
		f.applied(t, sync, w.repo.Head("main"))
	}

	r.once(0)
	f.follow(t, sync)
	f.applied(t, sync, w.repo.Head("main"))
	first := f.names(t, helmAPI, "HelmRelease", "apps", "app1-tenant1", "app1-tenant2")
	f.names(t, sourceAPI, "OCIRepository", "apps", "app1-tenant1", "app1-tenant2")
	if got := text(first["app1-tenant1"], "spec", "values", "features"); got != "feature1,feature2,feature3" {
		t.Errorf("features of tenant1: %q", got)
	}
	f.released(t, "app1-tenant1", "2.0.0-rc.1", "feature1,feature2,feature3")
	f.released(t, "app1-tenant2", "1.9.0", "feature1,feature2")

	t.Log("onboard")
	desk.Add(map[string]any{"tenant": "tenant3", "version": "1.9.0", "featureFlags": []string{"feature1"}})
	began := time.Now()
	pass()
	t.Logf("in the cluster %s after the pass began", time.Since(began).Round(time.Millisecond))
	second := f.names(t, helmAPI, "HelmRelease", "apps", "app1-tenant1", "app1-tenant2", "app1-tenant3")

	t.Log("upgrade one, toggle another")
	desk.Update("tenant", "tenant2", "version", "2.0.0")
	desk.Update("tenant", "tenant3", "featureFlags", []string{"feature1", "feature9"})
	pass()
	repositories := f.names(t, sourceAPI, "OCIRepository", "apps", "app1-tenant1", "app1-tenant2", "app1-tenant3")
	if got := text(repositories["app1-tenant2"], "spec", "ref", "semver"); got != "2.0.0" {
		t.Errorf("version of tenant2: %q", got)
	}
	third := f.names(t, helmAPI, "HelmRelease", "apps", "app1-tenant1", "app1-tenant2", "app1-tenant3")
	if got := text(third["app1-tenant3"], "spec", "values", "features"); got != "feature1,feature9" {
		t.Errorf("features of tenant3: %q", got)
	}
	same(t, second["app1-tenant3"], third["app1-tenant3"])
	f.released(t, "app1-tenant2", "2.0.0", "feature1,feature2")
	f.released(t, "app1-tenant3", "1.9.0", "feature1,feature9")

	t.Log("offboard")
	desk.Remove("tenant", "tenant2")
	pass()
	last := f.names(t, helmAPI, "HelmRelease", "apps", "app1-tenant1", "app1-tenant3")
	f.names(t, sourceAPI, "OCIRepository", "apps", "app1-tenant1", "app1-tenant3")
	f.names(t, "v1", "ConfigMap", "apps", "app1-tenant1", "app1-tenant3")
	same(t, first["app1-tenant1"], last["app1-tenant1"])
	if first["app1-tenant1"].GetGeneration() != last["app1-tenant1"].GetGeneration() {
		t.Error("tenant1 was changed, of which nothing was said")
	}
	r.quiet()

	desk.events.tellsOfWork(t, w.repo.Head("main"))
	desk.tellsOfFailures(t, r)
}

// released waits until a tenant's release, which is one ConfigMap, is of a version and
// has these features.
func (f *fleet) released(t *testing.T, name, version, features string) {
	t.Helper()
	eventually(t, "release "+name+" of version "+version+" with "+features, func() bool {
		o, err := f.Get(t.Context(), cluster.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "apps", Name: name})
		if err != nil || o == nil {
			return false
		}
		got, _, _ := strings.Cut(text(o, "data", "version"), "+") // Flux adds the chart's digest
		return got == version && text(o, "data", "features") == features
	})
}

// A seedOrchestrator is the orchestrator of the example.
type seedOrchestrator struct {
	*forgetest.Orchestrator
	events  *eventDesk
	secrets map[string]map[string]string // to reach it, by name, in the namespace apps
}

func newSeedOrchestrator(t *testing.T, w *world) *seedOrchestrator {
	t.Helper()
	ca, err := forgetest.NewCA()
	must(t, err)
	const user, password = "flux", "password-of-the-orchestrator"
	desk, err := forgetest.NewOrchestrator(forgetest.OrchestratorOptions{Username: user, Password: password, CA: ca, ClientCert: true})
	must(t, err)
	t.Cleanup(desk.Close)
	cert, key, err := ca.Issue("renderer")
	must(t, err)
	secrets := map[string]map[string]string{
		"my-orchestrator-basic-auth":   {"username": user, "password": password},
		"my-orchestrator-client-certs": {"ca.crt": string(ca.PEM()), "tls.crt": string(cert), "tls.key": string(key)},
	}
	for secret, data := range secrets {
		for name, value := range data {
			w.write(path.Join("secrets", "apps", secret, name), value)
		}
	}
	var response struct{ Inputs []map[string]any }
	must(t, json.Unmarshal([]byte(seed(t, "external-service/response.json")), &response))
	desk.Set(response.Inputs...)
	return &seedOrchestrator{Orchestrator: desk, events: newEventDesk(t, ca), secrets: secrets}
}
