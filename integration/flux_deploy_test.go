// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"resourceset.example/renderer/integration/cluster"
)

// deployment applies the manifests of deploy/ as `kubectl apply --server-side -k` does,
// and the API server has no fault to find: no field that it does not know, no value that
// it refuses, and only Pods that the restricted standard of their namespace admits.
func (f *fleet) deployment(t *testing.T) {
	overlays, err := filepath.Glob("../deploy/overlays/*")
	must(t, err)
	if len(overlays) == 0 {
		t.Fatal("no overlays: wrong folder?")
	}
	for _, dir := range append(overlays, "../deploy/kubernetes") {
		t.Run(filepath.Base(dir), func(t *testing.T) { f.deploys(t, dir) })
	}

	// What is refused, so that the above means something.
	base := f.deploys(t, "../deploy/kubernetes")
	if err := f.Apply(t.Context(), pod(t, base[0], "other", "\n  hostNetwork: true")); err == nil || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("a Pod in the network of its host: %v", err)
	}
	err = f.Apply(t.Context(), "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: x, namespace: renderer}\nautomountServiceAccountTokens: false\n")
	if err == nil {
		t.Error("the API server takes a field that does not exist")
	}
}

// deploys applies a folder, and returns the Deployments as they are stored.
func (f *fleet) deploys(t *testing.T, dir string) []kubeObject {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	must(t, err)
	var manifests []string
	for _, o := range built.Resources() {
		manifest, err := o.AsYAML()
		must(t, err)
		manifests = append(manifests, string(manifest))
	}
	return f.takes(t, "", manifests)
}

// takes applies manifests, those without a namespace in this one, and a Pod of each
// Deployment.
func (f *fleet) takes(t *testing.T, namespace string, manifests []string) []kubeObject {
	t.Helper()
	var deployments []kubeObject
	for _, manifest := range manifests {
		if err := f.ApplyIn(t.Context(), namespace, manifest); err != nil {
			t.Errorf("%v\n%s", err, manifest)
			continue
		}
		var o metav1.PartialObjectMetadata
		must(t, yaml.Unmarshal([]byte(manifest), &o))
		ref := cluster.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: cmp.Or(o.Namespace, namespace), Name: o.Name}
		if ref.Kind != "Namespace" { // nobody here would finish to delete one
			f.deleted(t, ref)
		}
		stored, err := f.Get(t.Context(), ref)
		must(t, err)
		if ref.Kind == "Deployment" {
			deployments = append(deployments, stored)
		}
	}
	if len(deployments) == 0 {
		t.Fatal("there is no Deployment")
	}
	for _, d := range deployments { // nobody makes Pods here, so the test does
		if err := f.Apply(t.Context(), pod(t, d, d.GetName(), "")); err != nil {
			t.Error(err)
		}
		f.deleted(t, cluster.Ref{APIVersion: "v1", Kind: "Pod", Namespace: d.GetNamespace(), Name: d.GetName()})
	}
	return deployments
}

// deleted deletes an object when the test ends: the next one has some of the same name.
func (f *fleet) deleted(t *testing.T, ref cluster.Ref) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := f.Delete(ctx, ref); err != nil {
			t.Error(err)
		}
	})
}

// pod is what a Deployment has replicas of, with more in its spec.
func pod(t *testing.T, d kubeObject, name, more string) string {
	t.Helper()
	template, ok, err := unstructured.NestedMap(d.Object, "spec", "template", "spec")
	if err != nil || !ok {
		t.Fatalf("the Deployment has no template: %v", err)
	}
	spec, err := yaml.Marshal(template)
	must(t, err)
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s}\nspec:\n  %s%s\n",
		name, d.GetNamespace(), strings.ReplaceAll(strings.TrimSpace(string(spec)), "\n", "\n  "), more)
}
