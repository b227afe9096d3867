// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"resourceset.example/renderer/integration/cluster"
	"resourceset.example/renderer/integration/forge"
)

// A kubeObject is an object in the cluster.
type kubeObject = *unstructured.Unstructured

// A fleet is a cluster that the tests of TestFlux share. Each has its own repository,
// its own namespaces and its own Flux objects in it.
type fleet struct {
	*cluster.Cluster
}

// TestFlux follows the product's whole promise: what the inputs say is in the cluster,
// by way of Git and Flux.
func TestFlux(t *testing.T) {
	f := newFleet(t)
	t.Run("Deployment", f.deployment)
	t.Run("Chart", f.chart)
	f.withFlux(t)
	t.Run("Tenants", f.tenants)
	t.Run("GitHub", f.gitHub)
	t.Run("Parts", f.parts)
	t.Run("Rights", f.rights)
	t.Run("Marks", f.marks)
	t.Run("Order", f.order)
	t.Run("Rule15", f.jumps)
	t.Run("Rule15Upsets", f.upsets)
	t.Run("Retired", f.retired)
	t.Run("Migration", f.migration)
	t.Run("PreviewEnvironments", f.previewEnvironments)
	t.Run("Outages", f.outages)
	t.Run("Large", f.large) // Flux is busy afterwards with deleting what it made
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	c, err := cluster.Start(ctx, cluster.Options{Programs: programs(t), Module: "flux", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{c}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Logs())
		}
		c.Close()
	})
	t.Logf("the cluster runs after %s", time.Since(began).Round(time.Millisecond))
	return f
}

// withFlux starts the controllers of Flux.
func (f *fleet) withFlux(t *testing.T) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	must(t, f.StartFlux(ctx))
	t.Logf("Flux runs after %s more", time.Since(began).Round(time.Millisecond))
}

// programs is the folder that `make components` fills.
func programs(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("bin")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// newForge starts a Gitea for a test.
func newForge(t testing.TB) *forge.Forge {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	f, err := forge.Start(ctx, forge.Options{Programs: programs(t), Module: "gitea"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(f.Tail())
		}
		f.Close()
	})
	t.Logf("the forge runs after %s", time.Since(began).Round(time.Millisecond))
	return f
}

// follow has Flux apply a folder, until the test ends.
func (f *fleet) follow(t *testing.T, s *cluster.Sync) {
	t.Helper()
	must(t, f.Follow(t.Context(), s))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := f.Unfollow(ctx, s); err != nil {
			t.Error(err)
		}
	})
}

// applied waits until Flux has applied a commit.
func (f *fleet) applied(t *testing.T, s *cluster.Sync, commit string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, f.Applied(ctx, s, commit))
}

// names waits until exactly these objects of a kind are in a namespace.
func (f *fleet) names(t *testing.T, apiVersion, kind, namespace string, want ...string) map[string]kubeObject {
	t.Helper()
	var objects map[string]kubeObject
	var err error
	eventually(t, kind+"s of "+namespace+": "+strings.Join(want, ", "), func() bool {
		objects, err = f.List(t.Context(), apiVersion, kind, namespace)
		if err != nil || len(objects) != len(want) {
			return false
		}
		for _, name := range want {
			if objects[name] == nil {
				return false
			}
		}
		return true
	})
	return objects
}

// same reports an object that is not the one that it was: it was deleted in between.
func same(t *testing.T, before, after kubeObject) {
	t.Helper()
	if before.GetUID() != after.GetUID() {
		t.Errorf("%s %s was deleted and made again", after.GetKind(), after.GetName())
	}
}

// text is a field of an object.
func text(o kubeObject, fields ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, fields...)
	return s
}

// seed is one of the examples that the project started from.
func seed(t testing.TB, name string, replace ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "cmd", "renderer", "testdata", "seeds", name))
	must(t, err)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(string(content), replace[i]) {
			t.Fatalf("%s does not say %q", name, replace[i])
		}
	}
	return strings.NewReplacer(replace...).Replace(string(content))
}
