// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"

	sigsyaml "sigs.k8s.io/yaml"
)

// manyInputs is a ResourceSet with n inline input sets.
func manyInputs(n int) []byte {
	var b strings.Builder
	b.WriteString("apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata:\n  name: fleet\n  namespace: apps\nspec:\n  inputs:\n")
	for i := range n {
		fmt.Fprintf(&b, "    - tenant: tenant-%d\n      version: 1.2.%d\n      replicas: %d\n      enabled: true\n      features: [a, b]\n", i, i, i%7)
	}
	b.WriteString("  resourcesTemplate: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: << inputs.tenant >>\n")
	return []byte(b.String())
}

// BenchmarkParse10kInputs reads 10,000 inline input sets; the naive way is to
// convert the file to JSON once, without positions or checks.
func BenchmarkParse10kInputs(b *testing.B) {
	data := manyInputs(10_000)
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if d := Parse("f.yaml", data); len(d.ResourceSets) != 1 || len(d.ResourceSets[0].Spec.Inputs) != 10_000 {
				b.Fatal(d.Faults)
			}
		}
	})
	b.Run("naive", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := sigsyaml.YAMLToJSON(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
