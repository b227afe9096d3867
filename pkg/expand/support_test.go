// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"resourceset.example/renderer/pkg/api"
)

// parseOne reads the only ResourceSet in a YAML text, and the providers beside it.
func parseOne(t testing.TB, text string) (*api.ResourceSet, []*api.ResourceSetInputProvider) {
	t.Helper()
	defs := api.Parse("app.yaml", []byte(text))
	for _, fault := range defs.Faults {
		t.Fatal(fault)
	}
	if len(defs.ResourceSets) != 1 {
		t.Fatalf("%d ResourceSets, want one", len(defs.ResourceSets))
	}
	return defs.ResourceSets[0], defs.Providers
}

// specText wraps the lines of a spec.
func specText(spec string) string {
	lines := strings.Split(strings.Trim(spec, "\n"), "\n")
	return "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata:\n  name: app\n  namespace: apps\nspec:\n  " +
		strings.Join(lines, "\n  ") + "\n"
}

// render compiles the ResourceSet of a spec and renders it for what a provider
// called "from" exports.
func render(t testing.TB, spec string, opts Options, inputs ...api.Input) *Rendering {
	t.Helper()
	rs, _ := parseOne(t, specText(spec))
	p, err := Compile(rs)
	if err != nil {
		t.Fatal(err)
	}
	var exports []Export
	if inputs != nil {
		exports = []Export{{Kind: api.KindInputProvider, Namespace: "apps", Name: "from", Type: api.TypeExternalService, Inputs: inputs}}
	}
	sets, err := p.Sets(exports)
	if err != nil {
		t.Fatal(err)
	}
	return p.Render(context.Background(), sets, opts)
}

// text is a rendering as one text: objects, failures and warnings.
func text(t testing.TB, r *Rendering) string {
	t.Helper()
	var b strings.Builder
	if err := EncodeStream(&b, r.Objects); err != nil {
		t.Fatal(err)
	}
	for _, failed := range r.Failed {
		fmt.Fprintf(&b, "failed: set %d\n%s", failed.Set, errorText(failed.Err))
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\nhint: %s\n", w.Error(), w.Hint)
	}
	return b.String()
}

func errorText(err error) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var b strings.Builder
		for _, e := range joined.Unwrap() {
			b.WriteString(errorText(e))
		}
		return b.String()
	}
	out := "error: " + err.Error() + "\n"
	var s interface{ Suggestion() string }
	if errors.As(err, &s) && s.Suggestion() != "" {
		out += "hint: " + s.Suggestion() + "\n"
	}
	return out
}

// ids are the identities of the objects, as messages show them.
func ids(r *Rendering) []string {
	var out []string
	for i := range r.Objects {
		out = append(out, r.Objects[i].ID.String())
	}
	return out
}

func mustContain(t *testing.T, got string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(got, word) {
			t.Errorf("lacks %q:\n%s", word, got)
		}
	}
}
