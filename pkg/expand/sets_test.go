// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/pkg/api"
)

const configMapSpec = `
inputsFrom:
- name: from
resources:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: app-<< inputs.tenant >>
    namespace: << inputs.space >>`

func compile(t testing.TB, spec string) *Program {
	t.Helper()
	rs, _ := parseOne(t, specText(spec))
	p, err := Compile(rs)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func external(name string, inputs ...api.Input) Export {
	return Export{Kind: api.KindInputProvider, Namespace: "apps", Name: name, Type: api.TypeExternalService, Inputs: inputs}
}

func describeSets(sets []Set) []string {
	var out []string
	for _, s := range sets {
		out = append(out, fmt.Sprintf("%s %s %s %v", s.Name, s.ID, s.Provider, s.Origin))
	}
	return out
}

// FR-25: the order of the exports does not matter, the names of the providers do.
func TestFlattenOrder(t *testing.T) {
	p := compile(t, strings.Replace(configMapSpec, "resources:", "inputs:\n- {tenant: i, space: s}\nresources:", 1))
	a := external("a", api.Input{"id": int64(7), "tenant": "x", "space": "s"})
	b := external("b", api.Input{"id": "2", "tenant": "z", "space": "s"}, api.Input{"id": "1", "tenant": "y", "space": "s"})
	want := []string{"app-s  app inputs[0]", "a-7 7 a input set a-7", "b-2 2 b input set b-2", "b-1 1 b input set b-1"}
	for _, exports := range [][]Export{{a, b}, {b, a}} {
		sets, err := p.Sets(exports)
		if err != nil {
			t.Fatal(err)
		}
		got := describeSets(sets)
		got[0] = "app-s" + got[0][strings.Index(got[0], " "):] // the name's digest is checked elsewhere
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// The seed's orchestrator exports no ids: sets are called by what names their
// objects, and inputs.id is the checksum of that.
func TestSetWithoutID(t *testing.T) {
	spec := strings.Replace(configMapSpec, "namespace: << inputs.space >>", "namespace: apps", 1)
	sets, err := compile(t, spec).Sets([]Export{external("flags", api.Input{"tenant": "tenant1", "version": "2"})})
	if err != nil {
		t.Fatal(err)
	}
	if sets[0].Name != "flags-tenant1" || sets[0].ID != checksum("tenant1") || sets[0].Inputs["id"] != sets[0].ID {
		t.Errorf("%+v", sets[0])
	}
	_, err = compile(t, spec).Sets([]Export{external("flags", api.Input{"tenant": "t", "version": "1"}, api.Input{"tenant": "t", "version": "2"})})
	if err == nil || !strings.Contains(err.Error(), `exports duplicate ids: inputs 0 and 1 are both "t"`) {
		t.Errorf("error %v", err)
	}
}

// FR-10: tags with the same checksum are different sets.
func TestCollidingChecksums(t *testing.T) {
	p := compile(t, configMapSpec)
	export := external("from", api.Input{"id": "93585765", "tag": "v1.0.1"}, api.Input{"id": "93585765", "tag": "v0.2.0"})
	export.Type = api.TypeGitHubTag
	sets, err := p.Sets([]Export{export})
	if err != nil {
		t.Fatal(err)
	}
	if sets[0].Name == sets[1].Name || sets[0].ID != "93585765" || sets[1].ID != "93585765" {
		t.Errorf("%v", describeSets(sets))
	}
}

func TestStaticIDIsTheChecksumOfTheProvider(t *testing.T) {
	export := external("coach", api.Input{"id": "mine", "tenant": "t", "space": "s"})
	export.Type = api.TypeStatic
	sets, err := compile(t, configMapSpec).Sets([]Export{export})
	if err != nil || sets[0].ID != "100729343" {
		t.Errorf("%v, %v", describeSets(sets), err)
	}
	if sets[0].Parts[0].Inputs["id"] != "mine" || sets[0].Parts[0].Inputs["provider"] != nil {
		t.Errorf("the exported values changed: %v", sets[0].Parts[0].Inputs)
	}
}

// Inline sets that are called the same are the author's own: they are told apart.
func TestInlineSetsMayBeCalledTheSame(t *testing.T) {
	p := compile(t, `
inputs:
- {tenant: t, opens: 7}
- {tenant: t, opens: 9}
- {tenant: t, opens: 9}
resources:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: << inputs.tenant >>}`)
	sets, err := p.Sets(nil)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, s := range sets {
		names[s.Name] = true
	}
	if len(names) != 3 || sets[0].Name != "app-t" {
		t.Errorf("%v", describeSets(sets))
	}
}

func TestDirectoryAnnotation(t *testing.T) {
	rs, _ := parseOne(t, specText(configMapSpec))
	rs.Annotations = map[string]string{api.AnnotationDirectory: "<< inputs.tenant | lower >>"}
	p, err := Compile(rs)
	if err != nil {
		t.Fatal(err)
	}
	sets, err := p.Sets([]Export{external("from", api.Input{"id": "1", "tenant": "Red"}, api.Input{"id": "2", "tenant": "blue"})})
	if err != nil || sets[0].Name != "red" || sets[1].Name != "blue" {
		t.Errorf("%v, %v", describeSets(sets), err)
	}
	_, err = p.Sets([]Export{external("from", api.Input{"id": "1", "tenant": "Red"}, api.Input{"id": "2", "tenant": "red"})})
	if err == nil || !strings.Contains(err.Error(), "input set from-1 and input set from-2 have the same name red") {
		t.Errorf("error %v", err)
	}
	_, err = p.Sets([]Export{external("from", api.Input{"id": "1"})})
	if err == nil || !strings.Contains(err.Error(), `annotation renderer/directory`) || !strings.Contains(err.Error(), `inputs has no "tenant"`) {
		t.Errorf("error %v", err)
	}
}

const permuteSpec = `
inputStrategy:
  name: Permute
inputsFrom:
- name: a
resources:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: << inputs.a.x >>-<< inputs.b.x >>
  data: {id: << inputs.id | quote >>}`

func TestPermute(t *testing.T) {
	p := compile(t, permuteSpec)
	a := external("a", api.Input{"id": "1", "x": "p"}, api.Input{"id": "2", "x": "q"})
	sets, err := p.Sets([]Export{external("b", api.Input{"x": "r"}, api.Input{"x": "s"}), a, external("empty")})
	if err != nil {
		t.Fatal(err)
	}
	if len(sets) != 4 || sets[1].ID != checksum("a=0/b=1") || sets[1].Parts[1].Key != "b" {
		t.Fatalf("%v", describeSets(sets))
	}
	if got := p.Fields().Project(sets[0].Inputs); !cmp.Equal(got, api.Input{"a": api.Input{"x": "p"}, "b": api.Input{"x": "r"}, "id": sets[0].ID}) {
		t.Errorf("projection %v", got)
	}
	none, err := p.Sets([]Export{external("a"), external("b")})
	if err != nil || len(none) != 0 {
		t.Errorf("%v, %v", none, err)
	}
}

func TestPermuteLimitsAndKeys(t *testing.T) {
	p := compile(t, permuteSpec)
	many := make([]api.Input, 101)
	for i := range many {
		many[i] = api.Input{"id": fmt.Sprint(i), "x": "x"}
	}
	for _, test := range []struct {
		exports []Export
		want    string
	}{
		{[]Export{external("a", many...), external("b", many...)}, "Permute makes more than 10000 permutations"},
		{[]Export{external("a-b", many[0]), external("a.b", many[0])}, `"a-b" and "a.b" make the same key inputs.a_b`},
		{[]Export{external("id", many[0])}, `"id"`},
		{[]Export{external("ü", many[0])}, "makes no key"},
	} {
		_, err := p.Sets(test.exports)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want %s", err, test.want)
		}
	}
}

func provider(namespace, name string, labels map[string]string) *api.ResourceSetInputProvider {
	return &api.ResourceSetInputProvider{Meta: api.Meta{Namespace: namespace, Name: name, Labels: labels}}
}

// FR-22: providers may come in any order, and "nothing matches" is an error, never
// the same as no inputs.
func TestSelectProviders(t *testing.T) {
	red := map[string]string{"team": "red"}
	all := []*api.ResourceSetInputProvider{provider("apps", "zz", red), provider("other", "aa", red), provider("apps", "mm", nil), provider("apps", "bb", red)}
	rs, _ := parseOne(t, specText("inputsFrom:\n- selector: {matchLabels: {team: red}}\n- name: zz\nresources: [{kind: X}]"))
	got, err := SelectProviders(rs, all)
	if err != nil || len(got) != 2 || got[0].Name != "bb" || got[1].Name != "zz" {
		t.Errorf("%v, %v", got, err)
	}
	var missing *NoProviderError
	rs, _ = parseOne(t, specText("inputsFrom:\n- name: zzz\nresources: [{kind: X}]"))
	_, err = SelectProviders(rs, all)
	if !errors.As(err, &missing) || missing.Name != "zzz" || !strings.Contains(errorText(err), `did you mean "zz"?`) {
		t.Errorf("error %v", err)
	}
	rs, _ = parseOne(t, specText("inputsFrom:\n- selector: {matchLabels: {team: blue}}\nresources: [{kind: X}]"))
	_, err = SelectProviders(rs, all)
	if !errors.As(err, &missing) || missing.Name != "" {
		t.Errorf("error %v", err)
	}
}
