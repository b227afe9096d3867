// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	"resourceset.example/renderer/integration/cluster"
)

// invalid is an object that kustomize builds and the API server refuses; sound is the
// same, repaired.
const (
	invalid = "- {apiVersion: v1, kind: Service, metadata: {name: web, namespace: NAMESPACE}, spec: {ports: [{port: 99999}]}}\n"
	sound   = "- {apiVersion: v1, kind: Service, metadata: {name: web, namespace: NAMESPACE}, spec: {ports: [{port: 80}]}}\n"
)

const onBase = "  dependsOn:\n    - {apiVersion: fluxcd.controlplane.io/v1, kind: ResourceSet, name: base"

// order: what comes first is there first, and what waits for something that fails is
// not there.
func (f *fleet) order(t *testing.T) {
	t.Run("Steps", f.steps)
	t.Run("Wait", f.waits)
	t.Run("Gates", f.gates)
}

// steps: a step that fails stops the next one, and whoever depends on the ResourceSet.
func (f *fleet) steps(t *testing.T) {
	h := f.hand(t, "steps")
	base := func(object string) string {
		return strings.Replace(fixed("base", "", "first: one", "second: two", "third: three"), "    - name: second", "        "+object+"    - name: second", 1)
	}
	h.define(map[string]string{
		"base":   base(invalid),
		"ready":  fixed("ready", onBase+", ready: true}\n", "ready"),
		"expr":   fixed("expr", onBase+`, ready: true, readyExpr: "status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')"}`+"\n", "expr"),
		"exists": fixed("exists", onBase+"}\n", "exists"), // it does, ready or not
	})
	h.start()
	h.fails(h.part("base", "first"), "ReconciliationFailed", "99999")
	h.becomesReady("resourceset-exists")
	for _, name := range []string{h.part("base", "second"), h.part("base", "third"), "resourceset-ready", "resourceset-expr"} {
		h.fails(name, "DependencyNotReady", "")
	}
	h.lives("exists")

	t.Log("repaired")
	h.define(map[string]string{"base": base(sound)})
	h.pass()
	h.owned("exists=exists", "one=base-first", "two=base-second", "three=base-third", "expr=expr", "ready=ready")

	t.Log("it fails again: what is there stays, what is new waits")
	h.define(map[string]string{"base": strings.Replace(base(invalid), "name: three", "name: other", 1), "ready": fixed("ready", onBase+", ready: true}\n", "ready new")})
	h.setup.once(0)
	h.fails(h.part("base", "first"), "ReconciliationFailed", "99999")
	h.fails(h.part("base", "third"), "DependencyNotReady", "")
	h.fails("resourceset-ready", "DependencyNotReady", "")
	h.lives("exists", "one", "two", "three", "expr", "ready")
	h.define(map[string]string{"base": strings.Replace(base(sound), "name: three", "name: other", 1)})
	h.pass()
	h.owned("exists=exists", "one=base-first", "two=base-second", "other=base-third", "expr=expr", "ready=ready", "new=ready")
}

// waits: with wait, a ResourceSet is ready when its objects are; without, as soon as they
// are applied.
func (f *fleet) waits(t *testing.T) {
	h := f.hand(t, "waits")
	deployment := func(name string) string {
		return "    - apiVersion: apps/v1\n      kind: Deployment\n      metadata: {name: " + name + ", namespace: NAMESPACE}\n" +
			"      spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}\n"
	}
	h.define(map[string]string{
		"base":   fixed("base", "  wait: true\n", "base") + deployment("web"),
		"loose":  fixed("loose", "", "loose") + deployment("loose"),
		"behind": fixed("behind", onBase+", ready: true}\n", "behind"),
	})
	h.start()
	h.becomesReady("resourceset-loose") // nobody runs Pods here
	h.fails("resourceset-behind", "DependencyNotReady", "")
	f.names(t, "apps/v1", "Deployment", h.namespace, "web", "loose")
	h.lives("base", "loose")
	must(t, f.SetStatus(t.Context(), cluster.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: h.namespace, Name: "web"}, map[string]any{
		"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
		"conditions": []any{map[string]any{"type": "Available", "status": "True"}, map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}},
	}))
	h.settles()
	h.owned("base=base", "behind=behind", "loose=loose")
}

// gates: a ResourceSet waits for objects that are not a ResourceSet's. Never so many of
// them wait at once that nothing else is done (see gateTimeout in pkg/expand).
func (f *fleet) gates(t *testing.T) {
	h := f.hand(t, "gates")
	on := func(dep string) string { return "  dependsOn:\n    - {" + dep + "}\n" }
	foreign := func(name string) string {
		return "apiVersion: v1, kind: ConfigMap, name: " + name + ", namespace: NAMESPACE-foreign"
	}
	h.define(map[string]string{
		"exists":  fixed("exists", on(foreign("first")), "exists"),
		"release": fixed("release", on("apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: app, namespace: NAMESPACE-foreign"), "release"),
		"type":    fixed("type", on("apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: helmreleases.helm.toolkit.fluxcd.io, ready: true"), "type"),
		"free":    fixed("free", "", "free"),
	})
	must(t, f.CreateNamespace(t.Context(), "gates-foreign"))
	h.start()
	h.becomesReady("resourceset-free")
	h.becomesReady("resourceset-type")
	for _, name := range []string{"exists", "release"} {
		h.fails("resourceset-"+name, "DependencyNotReady", "")
	}
	h.lives("free", "type")

	t.Log("the objects come")
	appears := func(name, state string) {
		t.Helper()
		must(t, f.Apply(t.Context(), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", namespace: gates-foreign}\ndata: {state: "+state+"}\n"))
	}
	appears("first", "starting")
	must(t, f.Apply(t.Context(), "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: app, namespace: gates-foreign}\n"+
		"spec: {suspend: true, interval: 1h, chartRef: {kind: OCIRepository, name: app}}\n"))
	h.opens("exists")
	h.opens("release")
	h.owned("free=free", "type=type", "exists=exists", "release=release")

	t.Log("an expression about the object, and rights to read it")
	must(t, f.Apply(t.Context(), account(h.namespace, "worker", "cluster-admin"))) // in its own namespace only
	h.define(map[string]string{
		"ready":  fixed("ready", on(foreign("first")+`, ready: true, readyExpr: "data.state == 'ready'"`), "ready"),
		"denied": fixed("denied", "  serviceAccountName: worker\n"+on(foreign("first")), "denied"),
	})
	h.setup.once(0)
	for _, name := range []string{"ready", "denied"} {
		h.fails("resourceset-"+name, "DependencyNotReady", "")
	}
	h.lives("free", "type", "exists", "release")
	appears("first", "ready")
	h.opens("ready")
	must(t, f.Apply(t.Context(),
		strings.Replace(account("gates-foreign", "worker", "cluster-admin"), "kind: ServiceAccount, name: worker, namespace: gates-foreign", "kind: ServiceAccount, name: worker, namespace: gates", 1)))
	h.opens("denied")
	h.owned("free=free", "type=type", "exists=exists", "release=release", "ready=ready", "denied=denied")
}

// part is the Kustomization of a step: its name ends in a digest.
func (h *handed) part(set, step string) string {
	h.t.Helper()
	prefix, found := "resourceset-"+set+"-"+step+"-", ""
	eventually(h.t, "a Kustomization "+prefix+"…", func() bool {
		all, err := h.List(h.t.Context(), kustomizeAPI, "Kustomization", h.namespace)
		for name := range all {
			if strings.HasPrefix(name, prefix) {
				found = name
			}
		}
		return err == nil && found != ""
	})
	return found
}

// opens has Flux look at the gate before a ResourceSet again, which it does every
// minute by itself, and waits for the ResourceSet.
func (h *handed) opens(set string) {
	h.t.Helper()
	must(h.t, h.Reconcile(h.t.Context(), h.ref(h.part(set, "after"))))
	h.becomesReady("resourceset-" + set)
}
