// SPDX-License-Identifier: Apache-2.0

package static

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
)

func TestFetch(t *testing.T) {
	values := api.Input{"id": "mine", "laps": int64(12), "plan": map[string]any{"rest": nil}}
	p, err := New(provider.Config{Object: &api.ResourceSetInputProvider{
		Meta: api.Meta{Name: "coach", Namespace: "track"},
		Spec: api.InputProviderSpec{Type: api.TypeStatic, DefaultValues: values},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Fetch(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	// The id is the one that was observed from the operator (conformance case 131).
	want := provider.Result{
		Inputs:  []api.Input{{"id": "100729343", "laps": int64(12), "plan": map[string]any{"rest": nil}}},
		Matched: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if values["id"] != "mine" {
		t.Error("the definition was changed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Fetch(ctx, nil); provider.ReasonOf(err) != provider.Canceled {
		t.Errorf("got %v", err)
	}
}
