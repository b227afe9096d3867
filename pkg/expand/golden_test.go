// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/pkg/api"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden renders the ResourceSet of each file in testdata/render, with the
// Static providers beside it, and compares objects, failures and warnings.
func TestGolden(t *testing.T) {
	cases, _ := filepath.Glob("testdata/render/*.yaml")
	if len(cases) == 0 {
		t.Fatal("no cases: wrong folder?")
	}
	for _, file := range cases {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			rs, providers := parseOne(t, string(data))
			got := renderOrError(t, rs, providers)
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

func renderOrError(t *testing.T, rs *api.ResourceSet, providers []*api.ResourceSetInputProvider) string {
	selected, err := SelectProviders(rs, providers)
	if err != nil {
		return errorText(err)
	}
	p, err := Compile(rs)
	if err != nil {
		return errorText(err)
	}
	var exports []Export
	for _, provider := range selected {
		exports = append(exports, Export{Kind: api.KindInputProvider, Namespace: provider.Namespace, Name: provider.Name,
			Type: provider.Spec.Type, Inputs: []api.Input{provider.Spec.DefaultValues}})
	}
	sets, err := p.Sets(exports)
	if err != nil {
		return errorText(err)
	}
	return text(t, p.Render(context.Background(), sets, Options{Structure: StructureEnforce}))
}
