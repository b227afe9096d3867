// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"resourceset.example/renderer/internal/forgetest"
)

// An access is one of the ways in which an orchestrator lets renderer in. The
// seed's provider names both kinds of secret; the other ways leave lines of it out.
type access struct {
	name               string
	token              string
	username, password string
	clientCert         bool
	privateCA          bool
	leftOut            string // field of the seed's provider
}

// accesses are the three ways, and all of the seed at once.
func accesses() []access {
	return []access{
		{name: "basic", username: "flux", password: "orchestrator-password-1", leftOut: "certSecretRef"},
		{name: "bearer", token: "orchestrator-bearer-token-1", privateCA: true},
		{name: "mtls", clientCert: true, privateCA: true, leftOut: "secretRef"},
		{name: "verbatim", username: "flux", password: "orchestrator-password-2", clientCert: true, privateCA: true},
	}
}

// verbatim is the access for which the seed's provider stays word for word.
func verbatim() access { return accesses()[3] }

// newTenants is the second seed with an orchestrator that has the seed's response.
func newTenants(t testing.TB, way access) (*fleet, *forgetest.Orchestrator) {
	t.Helper()
	f := newFleet(t)
	orchestrator, err := forgetest.NewOrchestrator(forgetest.OrchestratorOptions{
		Token: way.token, Username: way.username, Password: way.password,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(orchestrator.Close)
	ca := f.public
	if way.privateCA {
		if ca, err = forgetest.NewCA(); err != nil {
			t.Fatal(err)
		}
	}
	f.internet.serve("my-orchestrator.com", ca, way.clientCert, orchestrator)

	credentials := map[string]string{"token": way.token, "username": way.username, "password": way.password}
	maps.DeleteFunc(credentials, func(_, value string) bool { return value == "" })
	if len(credentials) > 0 {
		f.secret("apps", "my-orchestrator-basic-auth", credentials)
	}
	certs := map[string]string{"ca.crt": string(ca.PEM())}
	if way.clientCert {
		crt, key, err := ca.Issue("renderer of the production cluster")
		if err != nil {
			t.Fatal(err)
		}
		certs["tls.crt"], certs["tls.key"] = string(crt), string(key)
	}
	f.secret("apps", "my-orchestrator-client-certs", certs)
	f.define(map[string]string{
		"provider.yaml":    without(seed(t, "external-service/provider.yaml"), way.leftOut),
		"resourceset.yaml": seed(t, "external-service/resourceset.yaml"),
		"alert.yaml":       seed(t, "external-service/alert.yaml"),
	})

	var response struct{ Inputs []map[string]any }
	if err := json.Unmarshal([]byte(seed(t, "external-service/response.json")), &response); err != nil {
		t.Fatal(err)
	}
	orchestrator.Set(response.Inputs...)
	return f, orchestrator
}

// without leaves a reference of two lines out of the seed's provider.
func without(text, field string) string {
	if field == "" {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	i := slices.Index(lines, "  "+field+":\n")
	return strings.Join(slices.Delete(lines, i, i+2), "")
}

// tenantFiles are the manifests of one tenant.
func tenantFiles(tenant string) (helmRelease, ociRepository string) {
	folder := fmt.Sprintf("apps/app1/app1-feature-flags-%s/apps_app1-%s_", tenant, tenant)
	return folder + "helm.toolkit.fluxcd.io_HelmRelease.yaml", folder + "source.toolkit.fluxcd.io_OCIRepository.yaml"
}

// wantTenants compares the list of generated files.
func wantTenants(f *fleet, tenants ...string) {
	f.t.Helper()
	files := []string{"apps/app1/inputs.lock", "apps/app1/kustomization.yaml", "kustomization.yaml"}
	for _, tenant := range tenants {
		hr, oci := tenantFiles(tenant)
		files = append(files, hr, oci)
	}
	slices.Sort(files)
	f.wantFiles(files...)
	if n := len(f.built()); n != 2*len(tenants) {
		f.t.Errorf("kustomize builds %d objects, want %d", n, 2*len(tenants))
	}
}

// checkTenant compares what the seed says of one tenant's objects.
func checkTenant(f *fleet, tenant, version, features string) {
	t := f.t
	t.Helper()
	name := "app1-" + tenant
	hrFile, ociFile := tenantFiles(tenant)
	oci := f.manifest(ociFile)
	wantField(t, oci, "apiVersion", "source.toolkit.fluxcd.io/v1beta2")
	wantField(t, oci, "metadata|name", name)
	wantField(t, oci, "spec|url", "oci://ghcr.io/org/charts/app1")
	wantField(t, oci, "spec|ref|semver", version)
	hr := f.manifest(hrFile)
	wantField(t, hr, "metadata|namespace", "apps")
	wantField(t, hr, "metadata|annotations", map[string]any{
		"event.toolkit.fluxcd.io/tenant": tenant,
		"event.toolkit.fluxcd.io/env":    "production",
		"event.toolkit.fluxcd.io/app":    "app1",
	})
	wantField(t, hr, "spec|chartRef", map[string]any{"kind": "OCIRepository", "name": name})
	wantField(t, hr, "spec|values|features", features)
	wantField(t, hr, "spec|values|ingress|hosts|host", name+".example.com")
}

// checkOrchestratorRequests: all requests are the seed's, and show who is asking in
// the way that was agreed.
func checkOrchestratorRequests(t testing.TB, way access, requests []*http.Request) {
	t.Helper()
	if len(requests) == 0 {
		t.Fatal("the orchestrator was not asked")
	}
	for _, r := range requests {
		if got, want := r.Host+r.URL.String(), "my-orchestrator.com/api/v1/flux/inputs?env=prod&app=app1"; got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
		header := ""
		switch {
		case way.token != "":
			header = "Bearer " + way.token
		case way.username != "":
			expected := &http.Request{Header: http.Header{}}
			expected.SetBasicAuth(way.username, way.password)
			header = expected.Header.Get("Authorization")
		}
		if got := r.Header.Get("Authorization"); got != header {
			t.Errorf("Authorization is %q, want %q", got, header)
		}
		client := ""
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			client = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		if way.clientCert != (client == "renderer of the production cluster") {
			t.Errorf("the client's certificate is of %q", client)
		}
	}
}

// TestOrchestratorSeed plays the second seed: tenants are onboarded, toggled,
// upgraded and offboarded, for every way to show who is asking.
func TestOrchestratorSeed(t *testing.T) {
	t.Parallel()
	for _, way := range accesses() {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			f, orchestrator := newTenants(t, way)

			f.once(0)
			wantTenants(f, "tenant1", "tenant2")
			checkTenant(f, "tenant1", "2.0.0-rc.1", "feature1,feature2,feature3")
			checkTenant(f, "tenant2", "1.9.0", "feature1,feature2")
			checkOrchestratorRequests(t, way, orchestrator.Requests())

			t.Log("onboard")
			orchestrator.Add(map[string]any{"tenant": "tenant3", "version": "1.9.0", "featureFlags": []string{"feature1"}})
			f.once(0)
			wantTenants(f, "tenant1", "tenant2", "tenant3")
			checkTenant(f, "tenant3", "1.9.0", "feature1")
			wantMessage(f, `apps/app1: add tenant3

tenant3  1.9.0  added by ExternalService app1-feature-flags
`, "Input-Added: app1-feature-flags-tenant3")
			f.quiet(0)
			if way != verbatim() {
				return // the rest has nothing to do with who is asking
			}

			t.Log("toggle")
			orchestrator.Update("tenant", "tenant2", "featureFlags", []string{"feature2"})
			f.once(0)
			checkTenant(f, "tenant2", "1.9.0", "feature2")
			hr, _ := tenantFiles("tenant2")
			wantChanges(f, "M "+hr, "M apps/app1/inputs.lock")
			wantMessage(f, `apps/app1: update tenant2

tenant2  changed featureFlags
`, "Input-Updated: app1-feature-flags-tenant2")

			t.Log("upgrade")
			orchestrator.Update("tenant", "tenant1", "version", "2.0.0")
			f.once(0)
			checkTenant(f, "tenant1", "2.0.0", "feature1,feature2,feature3")
			_, oci := tenantFiles("tenant1")
			wantChanges(f, "M "+oci, "M apps/app1/inputs.lock")

			t.Log("something that no template reads")
			orchestrator.Update("tenant", "tenant1", "owner", "somebody@example.com")
			f.quiet(0)

			t.Log("offboard")
			orchestrator.Remove("tenant", "tenant2")
			f.once(0)
			wantTenants(f, "tenant1", "tenant3")
			wantMessage(f, `apps/app1: remove tenant2

tenant2  gone from ExternalService app1-feature-flags
`, "Input-Removed: app1-feature-flags-tenant2")
			f.quiet(0)
		})
	}
}

// TestRule01_OrchestratorOutages: whatever an orchestrator in trouble answers, what
// is committed stands, the failure is said, and it goes on afterwards.
func TestRule01_OrchestratorOutages(t *testing.T) {
	t.Parallel()
	f, orchestrator := newTenants(t, verbatim())
	// One tenant alone: the guard would not stop its removal, so only rule 1 does.
	orchestrator.Remove("tenant", "tenant1")
	f.once(0)

	for _, outage := range []struct {
		name  string
		fault forgetest.Fault
	}{
		{"a page with status 200", forgetest.Page()},
		{"a sign-in page with status 203", forgetest.SignIn()},
		{"status 500", forgetest.Status(http.StatusInternalServerError, "no database")},
		{"a body that is cut", forgetest.Truncate()},
		{"null", forgetest.JSON("null")},
		{"inputs that are null", forgetest.JSON(`{"inputs": null}`)},
		{"the password repeated", forgetest.Status(http.StatusForbidden, "not with "+verbatim().password)},
	} {
		t.Log(outage.name)
		orchestrator.Break(outage.fault)
		wantHeldBack(f)
	}

	t.Log("no answer, with less patience than the seed's minute")
	provider := seed(t, "external-service/provider.yaml")
	f.define(map[string]string{"provider.yaml": strings.Replace(provider, "  annotations:\n",
		"  annotations:\n    fluxcd.controlplane.io/reconcileTimeout: \"1s\"\n", 1)})
	orchestrator.Break(forgetest.Hang())
	wantHeldBack(f)

	t.Log("recovery")
	f.define(map[string]string{"provider.yaml": provider})
	orchestrator.Heal()
	f.quiet(0)
	orchestrator.Update("tenant", "tenant2", "version", "2.0.0")
	f.once(0)
	checkTenant(f, "tenant2", "2.0.0", "feature1,feature2")
}

// wantHeldBack is a pass in which the orchestrator fails: nothing is committed, and
// the provider is named with its file.
func wantHeldBack(f *fleet) {
	f.t.Helper()
	r := f.quiet(1)
	mustContain(f.t, "stderr", r.stderr, "renderer: error: ", "ResourceSetInputProvider apps/app1-feature-flags", "clusters/preview/provider.yaml:")
	if r.stdout != "" {
		f.t.Errorf("stdout: %s", r.stdout)
	}
}

// TestRule02_OrchestratorDownOnColdStart: renderer starts with nothing but Git, and
// the orchestrator does not answer.
func TestRule02_OrchestratorDownOnColdStart(t *testing.T) {
	t.Parallel()
	f, orchestrator := newTenants(t, verbatim())
	t.Log("never answered, nothing recorded: nothing is written")
	orchestrator.Break(forgetest.Page())
	f.quiet(1)
	orchestrator.Heal()
	f.once(0)

	t.Log("lost state: what is committed stands")
	orchestrator.Break(forgetest.Page())
	f.forget()
	r := f.quiet(1)
	mustContain(t, "stderr", r.stderr, "ResourceSetInputProvider apps/app1-feature-flags")

	t.Log("a changed template is rendered from what inputs.lock recorded")
	f.define(map[string]string{
		"resourceset.yaml": strings.Replace(seed(t, "external-service/resourceset.yaml"), "charts/app1", "charts/app2", 1),
	})
	f.forget()
	f.once(1)
	wantTenants(f, "tenant1", "tenant2")
	_, oci := tenantFiles("tenant1")
	object := f.manifest(oci)
	wantField(t, object, "spec|url", "oci://ghcr.io/org/charts/app2")
	wantField(t, object, "spec|ref|semver", "2.0.0-rc.1")
	orchestrator.Heal()
	f.quiet(0)
}

// TestRule05_OrchestratorRestoredFromOldBackup: an answer that is plausible and would
// remove nearly everything is held back; what is new goes on.
func TestRule05_OrchestratorRestoredFromOldBackup(t *testing.T) {
	t.Parallel()
	f, orchestrator := newTenants(t, verbatim())
	for _, tenant := range []string{"tenant3", "tenant4", "tenant5"} {
		orchestrator.Add(map[string]any{"tenant": tenant, "version": "1.9.0", "featureFlags": []string{"feature1"}})
	}
	f.once(0)
	orchestrator.Set(map[string]any{"tenant": "tenant1", "version": "3.0.0", "featureFlags": []string{"feature1"}})
	r := f.once(1)
	mustContain(t, "stderr", r.stderr, "ResourceSet apps/app1")
	wantTenants(f, "tenant1", "tenant2", "tenant3", "tenant4", "tenant5")
	checkTenant(f, "tenant1", "3.0.0", "feature1")
	if removed := removedIn(f); len(removed) > 0 {
		t.Errorf("the commit removed %v", removed)
	}
}

// removedIn lists the files that the last commit removed.
func removedIn(f *fleet) []string {
	f.t.Helper()
	return slices.DeleteFunc(f.changes(), func(change string) bool { return !strings.HasPrefix(change, "D ") })
}
