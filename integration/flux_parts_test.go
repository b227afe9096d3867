// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	"resourceset.example/renderer/integration/cluster"
)

// parts: each ResourceSet has a Kustomization of its own, with the fields that it asks
// for, and it goes together with the ResourceSet.
func (f *fleet) parts(t *testing.T) {
	h := f.hand(t, "parts")
	h.define(map[string]string{
		"plain": fixed("plain", "", "plain"),
		"busy": marked(fixed("busy", "  wait: true\n  serviceAccountName: worker\n", "busy"),
			"fluxcd.controlplane.io/reconcileEvery: 30m, fluxcd.controlplane.io/reconcileTimeout: 90s"),
	})
	must(t, f.Apply(t.Context(), account(h.namespace, "worker", "cluster-admin")))
	h.start()
	h.settles()
	all := f.names(t, kustomizeAPI, "Kustomization", h.namespace, "resourceset-plain", "resourceset-busy")
	for name, want := range map[string][]any{
		"resourceset-plain": {"1m0s", "5m0s", nil, nil, true, "./generated/parts/plain/_flux/resourceset-plain"},
		"resourceset-busy":  {"30m0s", "1m30s", true, "worker", true, "./generated/parts/busy/_flux/resourceset-busy"},
	} {
		spec, _ := all[name].Object["spec"].(map[string]any)
		for i, field := range []string{"interval", "timeout", "wait", "serviceAccountName", "prune", "path"} {
			if spec[field] != want[i] {
				t.Errorf("%s: %s is %v, want %v", name, field, spec[field], want[i])
			}
		}
	}
	h.owned("busy=busy", "plain=plain")

	h.define(map[string]string{"busy": "", "plain": fixed("plain", "", "plain more")})
	h.pass()
	h.owned("more=plain", "plain=plain")
	h.comes("remove the empty folder")
	h.settles()
	f.names(t, kustomizeAPI, "Kustomization", h.namespace, "resourceset-plain")
	h.setup.quiet()
}

// account is a service account with a role in its namespace; cluster-admin is one that
// the cluster has.
func account(namespace, name, role string) string {
	return strings.NewReplacer("NAMESPACE", namespace, "ACCOUNT", name, "ROLE", role).Replace(`apiVersion: v1
kind: ServiceAccount
metadata: {name: ACCOUNT, namespace: NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ACCOUNT, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ROLE}
subjects: [{kind: ServiceAccount, name: ACCOUNT, namespace: NAMESPACE}]
`)
}

// rights: a ResourceSet with a service account can make what that may make, and
// nothing else, whatever Flux itself may do.
func (f *fleet) rights(t *testing.T) {
	h := f.hand(t, "rights")
	must(t, f.CreateNamespace(t.Context(), "rights-elsewhere"))
	must(t, f.Apply(t.Context(), `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: config-maps}
rules: [{apiGroups: [""], resources: [configmaps], verbs: ["*"]}]
---
`+account(h.namespace, "worker", "config-maps")))
	const as = "  serviceAccountName: worker\n"
	h.define(map[string]string{
		"allowed": fixed("allowed", as, "allowed"),
		"kind":    fixed("kind", as, "kind") + "    - {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: more, namespace: NAMESPACE}, rules: []}\n",
		"secret":  fixed("secret", as, "secret") + "    - {apiVersion: v1, kind: Secret, metadata: {name: token, namespace: NAMESPACE}, stringData: {token: abc}}\n",
		"foreign": fixed("foreign", as, "foreign") + "    - {apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, namespace: NAMESPACE-elsewhere}}\n",
	})
	h.setup.secrets = "allowPlainOutput: true"
	h.start()
	denied := map[string]string{
		"resourceset-kind": "roles", "resourceset-secret": "secrets", "resourceset-foreign": `in the namespace \"rights-elsewhere\"`,
	}
	for name, what := range denied {
		h.fails(name, "ReconciliationFailed", "forbidden")
		h.fails(name, "ReconciliationFailed", strings.ReplaceAll(what, `\"`, `"`))
	}
	h.becomesReady("resourceset-allowed")
	h.owned("allowed=allowed")
	f.names(t, "v1", "ConfigMap", "rights-elsewhere")

	t.Log("the rights come")
	must(t, f.Apply(t.Context(), strings.NewReplacer("RoleBinding", "ClusterRoleBinding", "{name: worker, namespace: rights}\nroleRef", "{name: worker-of-rights}\nroleRef").
		Replace(account(h.namespace, "worker", "cluster-admin"))))
	for name := range denied {
		h.becomesReady(name)
	}
	h.owned("allowed=allowed", "foreign=foreign", "kind=kind", "secret=secret")
	f.names(t, "v1", "ConfigMap", "rights-elsewhere", "foreign")
	f.names(t, "v1", "Secret", h.namespace, "token")
}

// marks: the operator's annotations on objects mean to Flux what they meant to it.
func (f *fleet) marks(t *testing.T) {
	h := f.hand(t, "marks")
	set := func(force, version string, tenants ...string) string {
		text := "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: app, namespace: NAMESPACE}\nspec:\n  inputs:\n"
		for _, tenant := range tenants {
			text += "    - tenant: " + tenant + "\n"
		}
		return text + fmt.Sprintf(`  resources:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: "data-<< inputs.tenant >>", namespace: NAMESPACE, annotations: {fluxcd.controlplane.io/prune: disabled}}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: "app-<< inputs.tenant >>", namespace: NAMESPACE}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: fixed, namespace: NAMESPACE, annotations: {fluxcd.controlplane.io/force: %q}}, immutable: true, data: {version: %q}}
`, force, version)
	}
	h.define(map[string]string{"app": set("disabled", "1", "acme", "globex")})
	h.start()
	h.settles()
	h.lives("app-acme", "app-globex", "data-acme", "data-globex", "fixed")

	t.Log("an input set goes: what prune: disabled is on stays")
	h.define(map[string]string{"app": set("disabled", "1", "acme")})
	h.pass()
	before := h.lives("app-acme", "data-acme", "data-globex", "fixed")

	t.Log("a field that cannot change changes")
	h.define(map[string]string{"app": set("disabled", "2", "acme")})
	h.setup.once(0)
	h.fails("resourceset-app", "ReconciliationFailed", "immutable")
	h.lives("app-acme", "data-acme", "data-globex", "fixed")
	h.define(map[string]string{"app": set("enabled", "2", "acme")})
	h.pass()
	delete(h.uids, "fixed") // made again: that is what force is for
	after := h.lives("app-acme", "data-acme", "data-globex", "fixed")["fixed"]
	if text(after, "data", "version") != "2" || after.GetUID() == before["fixed"].GetUID() {
		t.Errorf("the immutable ConfigMap is as it was: %v", after.Object["data"])
	}
	must(t, f.Delete(t.Context(), cluster.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: h.namespace, Name: "data-globex"}))
}
