// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/pkg/api"
)

// pass compiles, renders and lays out f's ResourceSet, and commits that.
func (f *folder) pass(exports ...Export) *Output {
	f.t.Helper()
	program, err := Compile(f.rs)
	if err != nil {
		f.t.Fatal(err)
	}
	sets, err := program.Sets(exports)
	if err != nil {
		f.t.Fatal(err)
	}
	r := program.Render(f.t.Context(), sets, Options{Structure: StructureEnforce})
	for _, failed := range r.Failed {
		f.t.Error(failed.Err)
	}
	return f.apply(LayoutParams{Sets: sets, Rendering: r, Read: program.Fields().Project})
}

// configMapTemplate is a ConfigMap with a name and one text.
func configMapTemplate(name, text string) any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": "apps"}, "data": map[string]any{"text": text}}
}

// The seed's orchestrator: its inputs have no id.
func TestOnboardToggleUpgradeOffboard(t *testing.T) {
	f := newFolder(t)
	f.rs.Spec.InputsFrom = []api.InputProviderReference{{Name: "app1-feature-flags"}}
	f.rs.Spec.Resources = []any{
		configMapTemplate("app1-<< inputs.tenant >>", `<< inputs.version >>`),
		configMapTemplate("flags-<< inputs.tenant >>", `<< inputs.featureFlags | join "," >>`),
	}
	export := func(inputs ...api.Input) Export {
		return Export{Kind: api.KindInputProvider, Namespace: "apps", Name: "app1-feature-flags", Type: api.TypeExternalService, Inputs: inputs}
	}
	tenant := func(name, version string, flags ...any) api.Input {
		return api.Input{"tenant": name, "version": version, "featureFlags": flags, "secretScore": "unread"}
	}
	out := f.pass(export(tenant("tenant1", "2.0.0-rc.1", "feature1"), tenant("tenant2", "1.9.0")))
	equal(t, "onboarded", []string{"added app1-feature-flags-tenant1", "added app1-feature-flags-tenant2"}, changes(out))
	equal(t, "files", []string{
		"app1-feature-flags-tenant1/apps_app1-tenant1__ConfigMap.yaml", "app1-feature-flags-tenant1/apps_flags-tenant1__ConfigMap.yaml",
		"app1-feature-flags-tenant2/apps_app1-tenant2__ConfigMap.yaml", "app1-feature-flags-tenant2/apps_flags-tenant2__ConfigMap.yaml",
	}, f.names())
	if strings.Contains(f.files[LockFile], "unread") {
		t.Errorf("unread data in the lock:\n%s", f.files[LockFile])
	}
	out = f.pass(export(tenant("tenant1", "2.0.0-rc.1", "feature1", "feature2"), tenant("tenant2", "1.9.0")))
	equal(t, "toggled", []string{"featureFlags"}, out.Changes[0].Fields)
	out = f.pass(export(tenant("tenant1", "2.0.0", "feature1", "feature2"), tenant("tenant2", "1.9.0")))
	equal(t, "upgraded", []string{"version"}, out.Changes[0].Fields)
	equal(t, "upgraded", []string{"updated app1-feature-flags-tenant1"}, changes(out))
	out = f.pass(export(tenant("tenant2", "1.9.0")))
	equal(t, "offboarded", []string{"removed app1-feature-flags-tenant1"}, changes(out))
}

// Rule 2: what the lock recorded stands for a provider that has not answered yet.
// Rendered again from that, every byte and every folder is the same; and so `verify`
// needs nothing but the definitions and the lock.
func TestRule02LockRendersTheSameAgain(t *testing.T) {
	provider := func(name, providerType string, inputs ...api.Input) Export {
		return Export{Kind: api.KindInputProvider, Namespace: "apps", Name: name, Type: providerType, Inputs: inputs}
	}
	tests := map[string]struct {
		spec    api.ResourceSetSpec
		exports []Export
	}{
		"pull requests": {
			api.ResourceSetSpec{Resources: []any{configMapTemplate("a-<< inputs.id >>", "<< inputs.provider.name >>")}},
			[]Export{provider("prs", api.TypeGitHubPullRequest,
				api.Input{"id": "9", "sha": "a", "branch": "b", "title": "t"}, api.Input{"id": "12", "sha": "b", "branch": "c", "title": "u"})},
		},
		"branches whose name no template reads": {
			api.ResourceSetSpec{Resources: []any{configMapTemplate("a-<< inputs.sha >>", "x")}},
			[]Export{provider("branches", api.TypeGitHubBranch,
				api.Input{"id": "178979487", "sha": "a", "branch": "fix/bdb"}, api.Input{"id": "178979487", "sha": "b", "branch": "fix/cbc"})},
		},
		"no ids": {
			api.ResourceSetSpec{Resources: []any{configMapTemplate("a-<< inputs.tenant >>", "<< inputs.id >> << inputs.n >>")}},
			[]Export{provider("service", api.TypeExternalService,
				api.Input{"tenant": "t1", "n": int64(1), "x": "unread"}, api.Input{"tenant": "t2", "n": 1.5, "x": "unread"})},
		},
		"neither ids nor names": {
			api.ResourceSetSpec{Resources: []any{configMapTemplate(`a-<< index inputs "id" >>`, "x")}},
			[]Export{provider("service", api.TypeExternalService, api.Input{"n": int64(1)}, api.Input{"n": int64(2)})},
		},
		"all of a set": {
			api.ResourceSetSpec{Resources: []any{configMapTemplate("a-<< inputs.id >>", "<< toJson inputs | b64enc >>")}},
			[]Export{provider("service", api.TypeExternalService, api.Input{"id": "a", "deep": map[string]any{"x": []any{nil, true, 0.5}}})},
		},
		"inline and static": {
			api.ResourceSetSpec{Inputs: []api.Input{{"n": "1", "u": "unread"}, {"n": "2"}},
				Resources: []any{configMapTemplate("a-<< inputs.n >>", "x")}},
			[]Export{provider("static", api.TypeStatic, api.Input{"n": "3", "u": "unread"})},
		},
		"permutations": {
			api.ResourceSetSpec{InputStrategy: api.StrategyPermute, Inputs: []api.Input{{"dish": "soup"}, {"dish": "pie"}},
				Resources: []any{configMapTemplate("a-<< inputs.id >>", "<< inputs.app.dish >> << inputs.wine_bar.wine >> << inputs.breads.id >>")}},
			[]Export{
				provider("wine-bar", api.TypeExternalService, api.Input{"wine": "red", "u": "unread"}, api.Input{"wine": "white"}),
				provider("breads", api.TypeGitHubTag, api.Input{"id": "1", "tag": "v1"}, api.Input{"id": "1", "tag": "v2"}),
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t)
			f.rs.Spec = tt.spec
			for _, export := range tt.exports {
				f.rs.Spec.InputsFrom = append(f.rs.Spec.InputsFrom, api.InputProviderReference{Name: export.Name})
			}
			f.pass(tt.exports...)
			if strings.Contains(f.files[LockFile], "unread") {
				t.Errorf("unread data in the lock:\n%s", f.files[LockFile])
			}
			recorded := slices.Clone(tt.exports)
			for i := range recorded {
				inputs, err := f.lock.Export(recorded[i].Name)
				if err != nil {
					t.Fatal(err)
				}
				if len(inputs) != len(recorded[i].Inputs) {
					t.Errorf("%s exported %d sets, %d are recorded", recorded[i].Name, len(recorded[i].Inputs), len(inputs))
				}
				recorded[i].Inputs = inputs
			}
			again := newFolder(t)
			again.rs = f.rs
			again.pass(recorded...)
			if diff := cmp.Diff(f.files, again.files); diff != "" {
				t.Errorf("rendered from the lock (-before +after):\n%s", diff)
			}
		})
	}
}

// FR-10: two tags with the same id are two sets; equal object names of theirs are told.
func TestFR10TagsWithOneID(t *testing.T) {
	f := newFolder(t)
	f.rs.Spec.InputsFrom = []api.InputProviderReference{{Name: "tags"}}
	f.rs.Spec.Resources = []any{configMapTemplate("app-<< inputs.id >>", "<< inputs.tag >>"), configMapTemplate("app-<< inputs.tag | slugify >>", "x")}
	f.pass(Export{Kind: api.KindInputProvider, Namespace: "apps", Name: "tags", Type: api.TypeGitHubTag,
		Inputs: []api.Input{{"id": "93585765", "tag": "v1.0.1"}, {"id": "93585765", "tag": "v0.2.0"}}})
	equal(t, "sets", 2, len(f.lock.Sets))
	equal(t, "files", 3, len(f.names())) // the repeated object is shared
}
