// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"context"
	"strings"
	"testing"

	"resourceset.example/renderer/pkg/api"
)

// FR-10: two tags with one id (their Adler-32 is the same) make one object name. Both
// are named, and the sets keep folders of their own.
func TestObjectsThatSetsMakeDifferently(t *testing.T) {
	defs := api.Parse("rset.yaml", []byte(`apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: app, namespace: apps}
spec:
  inputsFrom: [{name: tags}]
  resources:
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: "app-<< inputs.id >>", namespace: apps}
      data: {tag: << inputs.tag >>}
    - apiVersion: v1
      kind: Namespace
      metadata: {name: apps}
`))
	if len(defs.Faults) > 0 {
		t.Fatal(defs.Faults[0])
	}
	program, err := Compile(defs.ResourceSets[0])
	if err != nil {
		t.Fatal(err)
	}
	sets, err := program.Sets([]Export{{Kind: api.KindInputProvider, Namespace: "apps", Name: "tags", Type: api.TypeGitHubTag, Inputs: []api.Input{
		{"id": "93585765", "tag": "v1.0.1"}, {"id": "93585765", "tag": "v0.2.0"}, {"id": "1", "tag": "v3"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if sets[0].Name == sets[1].Name {
		t.Errorf("both tags have the folder %s", sets[0].Name)
	}
	rendering := program.Render(context.Background(), sets, Options{})
	if len(rendering.Warnings) != 1 {
		t.Fatalf("warnings: %v", rendering.Warnings)
	}
	text := rendering.Warnings[0].Error()
	for _, want := range []string{"ConfigMap", "v1.0.1", "v0.2.0", "different content"} {
		if !strings.Contains(text, want) {
			t.Errorf("the warning does not mention %s: %s", want, text)
		}
	}
}
