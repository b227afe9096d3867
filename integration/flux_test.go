// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"resourceset.example/renderer/integration/cluster"
)

// A kubeObject is an object in the cluster.
type kubeObject = *unstructured.Unstructured

// A fleet is a cluster that the tests of TestFlux share. Each has its own repository,
// its own namespaces and its own Flux objects in it.
type fleet struct {
	*cluster.Cluster
}

// TestFlux has what needs a cluster.
func TestFlux(t *testing.T) {
	f := newFleet(t)
	t.Run("Deployment", f.deployment)
	t.Run("Chart", f.chart)
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
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Logs())
		}
		c.Close()
	})
	t.Logf("the cluster runs after %s", time.Since(began).Round(time.Millisecond))
	return &fleet{Cluster: c}
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

// previews is a namespace of the examples.
const previews = "podinfo-preview"
