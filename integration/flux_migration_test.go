// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"resourceset.example/renderer/integration/cluster"
)

// The ResourceSet that moves: two Deployments whose pods carry a checksum of a ConfigMap.
const movingSet = `apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata:
  name: podinfo
  namespace: moving
  annotations:
    fluxcd.controlplane.io/reconcile: enabled
spec:
  inputs:
    - {tenant: red}
    - {tenant: blue}
  resourcesTemplate: |
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: settings-<< inputs.tenant >>
      namespace: moving
      labels: {first: "yes", second: "yes"}
    data: {tenant: << inputs.tenant | quote >>, first: "yes", second: "yes"}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata:
      name: podinfo-<< inputs.tenant >>
      namespace: moving
    spec:
      selector: {matchLabels: {app: podinfo-<< inputs.tenant >>}}
      template:
        metadata:
          labels: {app: podinfo-<< inputs.tenant >>}
          annotations: {fluxcd.controlplane.io/checksumFrom: ConfigMap/moving/settings-<< inputs.tenant >>}
        spec:
          containers:
            - {name: podinfo, image: "podinfo:1", env: [{name: FIRST, value: "yes"}, {name: SECOND, value: "yes"}]}
`

const (
	operatorName = "flux-operator" // as a field manager
	fluxName     = "kustomize-controller"
	finalizer    = "fluxcd.controlplane.io/finalizer"
)

// An operatorLike does to the cluster what the operator does, one step when it is told
// to: the operator itself cannot run here. What it goes by was read in the operator's
// documentation and behaviour. It applies objects server-side as flux-operator, with force,
// takes the owner labels of Kustomizations off them, and keeps an inventory in the
// status of the ResourceSet; while that is disabled, it does nothing, and when a
// ResourceSet is deleted, it deletes what is in the inventory and bears its labels, unless
// it is disabled.
type operatorLike struct {
	*fleet
	t      *testing.T
	set    cluster.Ref
	render func() []string // the objects, as YAML
}

func (o *operatorLike) reconcile() {
	t, ctx := o.t, o.t.Context()
	t.Helper()
	rs, err := o.Get(ctx, o.set)
	must(t, err)
	if rs == nil {
		t.Fatalf("%s is not there", o.set)
	}
	disabled := rs.GetAnnotations()["fluxcd.controlplane.io/reconcile"] == "disabled"
	switch {
	case rs.GetDeletionTimestamp() != nil:
		for _, ref := range inventory(rs) {
			live, err := o.Get(ctx, ref)
			must(t, err)
			if !disabled && live != nil && live.GetLabels()["resourceset.fluxcd.controlplane.io/name"] == o.set.Name {
				must(t, o.Delete(ctx, ref))
			}
		}
		must(t, o.MergePatch(ctx, operatorName, o.set, `{"metadata": {"finalizers": null}}`))
		return
	case disabled:
		return
	}
	must(t, o.MergePatch(ctx, operatorName, o.set, `{"metadata": {"finalizers": ["`+finalizer+`"]}}`))
	var entries []map[string]string
	for _, doc := range o.render() {
		var object unstructured.Unstructured
		must(t, yaml.Unmarshal([]byte(doc), &object.Object))
		must(t, o.ApplyAs(ctx, operatorName, doc))
		ref := refOf(&object)
		must(t, o.MergePatch(ctx, operatorName, ref,
			`{"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": null, "kustomize.toolkit.fluxcd.io/namespace": null}}}`))
		gvk := object.GroupVersionKind()
		entries = append(entries, map[string]string{"id": fmt.Sprintf("%s_%s_%s_%s", ref.Namespace, ref.Name, gvk.Group, gvk.Kind), "v": gvk.Version})
	}
	status, err := json.Marshal(map[string]any{"status": map[string]any{"inventory": map[string]any{"entries": entries}}})
	must(t, err)
	must(t, o.MergePatch(ctx, operatorName, o.set, string(status), "status"))
}

func refOf(o kubeObject) cluster.Ref {
	return cluster.Ref{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// inventory are the objects that a ResourceSet or a Kustomization has applied: both note
// "<namespace>_<name>_<group>_<kind>" and the version.
func inventory(o kubeObject) []cluster.Ref {
	entries, _, _ := unstructured.NestedSlice(o.Object, "status", "inventory", "entries")
	var refs []cluster.Ref
	for _, one := range entries {
		entry, _ := one.(map[string]any)
		id, _ := entry["id"].(string)
		version, _ := entry["v"].(string)
		parts := strings.Split(id, "_")
		if len(parts) != 4 {
			continue
		}
		ref := cluster.Ref{APIVersion: version, Kind: parts[3], Namespace: parts[0], Name: parts[1]}
		if parts[2] != "" {
			ref.APIVersion = parts[2] + "/" + version
		}
		refs = append(refs, ref)
	}
	return refs
}

// objects are the live ones of an inventory.
func (f *fleet) objects(t *testing.T, refs []cluster.Ref) map[cluster.Ref]kubeObject {
	t.Helper()
	live := map[cluster.Ref]kubeObject{}
	for _, ref := range refs {
		o, err := f.Get(t.Context(), ref)
		must(t, err)
		if o == nil {
			t.Fatalf("%s is gone", ref)
		}
		live[ref] = o
	}
	return live
}

// untouched: the objects are the very same, and no pod template has changed.
func untouched(t *testing.T, before, after map[cluster.Ref]kubeObject) {
	t.Helper()
	for ref, o := range before {
		same(t, o, after[ref])
		if o.GetGeneration() != after[ref].GetGeneration() {
			t.Errorf("%s was changed: generation %d was %d", ref, after[ref].GetGeneration(), o.GetGeneration())
		}
	}
}

// owns says whether a manager has applied a field, named as managedFields has it:
// "f:metadata", "f:labels", "f:first".
func owns(t *testing.T, o kubeObject, manager string, fields ...string) bool {
	t.Helper()
	for _, entry := range o.GetManagedFields() {
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
			continue
		}
		var owned map[string]any
		must(t, json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned))
		if _, found, _ := unstructured.NestedFieldNoCopy(owned, fields...); found {
			return true
		}
	}
	return false
}

// migration is docs/migration.md, step by step: objects that the operator made become
// Flux's, by way of Git, without being deleted or changed; nothing stays behind of the
// operator; and before its ResourceSet is deleted, there is a way back.
func (f *fleet) migration(t *testing.T) {
	w := newWorld(t)
	r := w.renderer("renderer")
	ctx := t.Context()
	must(t, f.CreateNamespace(ctx, "moving"))
	const cluster0 = "cluster/podinfo.yaml" // what Flux applies for the operator
	mine := r.source + "/podinfo.yaml"
	definition := movingSet
	define := func(files map[string]string) string {
		w.repo.Commit("main", "Move a ResourceSet", files)
		return w.repo.Head("main")
	}
	disabled := strings.Replace(movingSet, "reconcile: enabled", "reconcile: disabled", 1)
	op := &operatorLike{fleet: f, t: t, set: cluster.Ref{APIVersion: "fluxcd.controlplane.io/v1", Kind: "ResourceSet", Namespace: "moving", Name: "podinfo"}}
	op.render = func() []string {
		w.write("build.yaml", definition)
		cmd := r.command(ctx, "build", "-f", "build.yaml")
		out, err := cmd.Output()
		must(t, err)
		docs, err := cluster.Split(string(out))
		must(t, err)
		return docs
	}

	t.Log("the operator's world: Flux applies the ResourceSet, the operator its objects")
	sets := &cluster.Sync{Name: "migration-sets", URL: r.url, Branch: "main", Path: "cluster"}
	head := define(map[string]string{cluster0: movingSet, "cluster/keep.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: keep, namespace: moving}\n"})
	f.follow(t, sets)
	f.applied(t, sets, head)
	op.reconcile()
	rs, err := f.Get(ctx, op.set)
	must(t, err)
	refs := inventory(rs)
	if len(refs) != 4 {
		t.Fatalf("the operator's inventory: %v", refs)
	}
	t.Cleanup(func() { // should the test end early
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		_ = f.MergePatch(ctx, operatorName, op.set, `{"metadata": {"finalizers": null}}`)
	})
	before := f.objects(t, refs)
	red := cluster.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "moving", Name: "settings-red"}
	app := cluster.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "moving", Name: "podinfo-red"}

	t.Log("disable, then define for renderer elsewhere, then hand to Flux")
	f.applied(t, sets, define(map[string]string{cluster0: disabled}))
	op.reconcile() // does nothing any more
	define(map[string]string{mine: movingSet})
	r.once(0)
	sync := &cluster.Sync{Name: "migration", URL: r.url, Branch: "main", Path: r.target}
	f.follow(t, sync)
	f.applied(t, sync, w.repo.Head("main"))
	moved := f.objects(t, refs)
	untouched(t, before, moved)
	for ref, o := range moved {
		if labels := o.GetLabels(); labels["kustomize.toolkit.fluxcd.io/name"] != sync.Name || labels["resourceset.fluxcd.controlplane.io/name"] != "podinfo" {
			t.Errorf("labels of %s: %v", ref, labels)
		}
	}
	for _, manager := range []string{operatorName, fluxName} {
		if !owns(t, moved[red], manager, "f:data", "f:first") || !owns(t, moved[app], manager, "f:spec", "f:template") {
			t.Errorf("%s does not own what both have applied", manager)
		}
	}

	t.Log("back: suspend, enable, delete the Kustomization")
	must(t, f.MergePatch(ctx, "tests", sync.Kustomization(), `{"spec": {"suspend": true}}`))
	f.applied(t, sets, define(map[string]string{cluster0: movingSet}))
	op.reconcile()
	must(t, f.Unfollow(ctx, sync))
	untouched(t, before, f.objects(t, refs))
	f.applied(t, sets, define(map[string]string{cluster0: disabled}))
	must(t, f.Follow(ctx, sync))
	f.applied(t, sync, w.repo.Head("main"))
	untouched(t, before, f.objects(t, refs))

	t.Log("what is removed from Git stays, as long as the operator owns it, too")
	without := func(word string) {
		t.Helper()
		for _, old := range []string{word + `: "yes", `, word + `: "yes"`, "{name: " + strings.ToUpper(word) + `, value: "yes"}, `, "{name: " + strings.ToUpper(word) + `, value: "yes"}`} {
			definition = strings.ReplaceAll(definition, old, "")
		}
		define(map[string]string{mine: definition})
		r.once(0)
		f.applied(t, sync, w.repo.Head("main"))
	}
	without("first")
	stuck := f.objects(t, refs)
	if !has(stuck[red], "metadata", "labels", "first") || !has(stuck[red], "data", "first") || !strings.Contains(fmt.Sprint(stuck[app].Object["spec"]), "FIRST") {
		t.Error("it went: then nothing needs to be released, and docs/migration.md is wrong")
	}

	t.Log("release what the operator owns")
	kustomization, err := f.Get(ctx, sync.Kustomization())
	must(t, err)
	applied := inventory(kustomization)
	if got := sorted(applied); !slices.Equal(got, sorted(refs)) {
		t.Errorf("Flux has %v, the operator had %v", got, sorted(refs))
	}
	for _, ref := range applied {
		must(t, f.ApplyAs(ctx, operatorName, fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: %s}\n", ref.APIVersion, ref.Kind, ref.Name, ref.Namespace)))
	}
	released := f.objects(t, refs)
	for ref, o := range released {
		same(t, before[ref], o)
		if owns(t, o, operatorName) {
			t.Errorf("flux-operator still owns something of %s", ref)
		}
		if !owns(t, o, fluxName, "f:metadata", "f:labels", "f:resourceset.fluxcd.controlplane.io/name") {
			t.Errorf("%s has lost its labels: %v", ref, o.GetLabels())
		}
	}
	// For Flux, there was nothing to apply before: it finds a difference only now.
	eventually(t, "what was removed from Git before is gone", func() bool {
		o := f.objects(t, refs)
		return !has(o[red], "metadata", "labels", "first") && !has(o[red], "data", "first") && !strings.Contains(fmt.Sprint(o[app].Object["spec"]), "FIRST")
	})
	if !has(released[red], "data", "second") || !strings.Contains(fmt.Sprint(released[app].Object["spec"]), "SECOND") {
		t.Error("what is in Git went")
	}
	without("second")
	if o := f.objects(t, refs); has(o[red], "metadata", "labels", "second") || has(o[red], "data", "second") || strings.Contains(fmt.Sprint(o[app].Object["spec"]), "SECOND") {
		t.Error("what is removed from Git stays")
	}

	t.Log("delete the ResourceSet: the operator drops its finalizer, and the objects stay")
	head = define(map[string]string{cluster0: ""})
	eventually(t, "Flux deletes the ResourceSet", func() bool {
		rs, err := f.Get(ctx, op.set)
		return err == nil && rs != nil && rs.GetDeletionTimestamp() != nil
	})
	op.reconcile()
	f.applied(t, sets, head)
	if rs, err := f.Get(ctx, op.set); err != nil || rs != nil {
		t.Errorf("the ResourceSet is still there: %v", err)
	}
	for ref, o := range f.objects(t, refs) {
		same(t, before[ref], o)
	}

	t.Log("from now on Git decides: an input that goes takes its objects with it")
	define(map[string]string{mine: strings.Replace(definition, "    - {tenant: blue}\n", "", 1)})
	r.once(0)
	f.applied(t, sync, w.repo.Head("main"))
	f.names(t, "apps/v1", "Deployment", "moving", "podinfo-red")
	f.names(t, "v1", "ConfigMap", "moving", "settings-red", "keep")
	r.quiet()

	t.Log("a ResourceSet that is deleted without being disabled takes its objects with it")
	definition = strings.NewReplacer("podinfo", "careless", "settings", "careless").Replace(movingSet)
	op.set.Name = "careless"
	f.applied(t, sets, define(map[string]string{cluster0: definition}))
	op.reconcile()
	define(map[string]string{cluster0: ""})
	eventually(t, "Flux deletes the other ResourceSet", func() bool {
		rs, err := f.Get(ctx, op.set)
		return err == nil && rs != nil && rs.GetDeletionTimestamp() != nil
	})
	op.reconcile()
	f.names(t, "apps/v1", "Deployment", "moving", "podinfo-red")
}

func has(o kubeObject, fields ...string) bool {
	_, found, err := unstructured.NestedFieldNoCopy(o.Object, fields...)
	return found && err == nil
}

func sorted(refs []cluster.Ref) []string {
	names := map[string]bool{}
	for _, ref := range refs {
		names[ref.APIVersion+" "+ref.String()] = true
	}
	return slices.Sorted(maps.Keys(names))
}
