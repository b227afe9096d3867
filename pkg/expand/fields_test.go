// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/pkg/api"
)

func (f *Fields) String() string {
	if f.all {
		return "*"
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.children)) {
		names = append(names, fmt.Sprintf("%s%v", name, f.children[name]))
	}
	return "(" + strings.Join(names, " ") + ")"
}

func TestFields(t *testing.T) {
	for template, want := range map[string]string{
		`<< inputs.a >>`:                              "(a*)",
		`<< inputs.a.b >><< inputs.a.c >>`:            "(a(b* c*))",
		`<< inputs.a.b >><< inputs.a >>`:              "(a*)",
		`<< inputs.a | default inputs.b >>`:           "(a* b*)",
		`<< (inputs).a >>`:                            "(a*)",
		`<< (inputs.a).b >>`:                          "(a*)",
		`<< inputs >>`:                                "*",
		`<< get inputs "a" >>`:                        "*",
		`<< index inputs "a" >>`:                      "*",
		`<< dig "a" "b" "" inputs >>`:                 "*",
		`<< index inputs.a 0 >>`:                      "(a*)",
		`<< $x := inputs >><< $x.a >>`:                "*",
		`<< range $k, $v := inputs >><< end >>`:       "*",
		`<< with inputs.a >><< .b >><< end >>`:        "(a*)",
		`<< if inputs.a.b >>x<< end >>`:               "(a(b*))",
		`<< range inputs.l >><< inputs.z >><< end >>`: "(l* z*)",
		`<< define "x" >><< inputs.q >><< end >><< template "x" inputs.p >>`: "(p* q*)",
		`<< block "x" inputs.p >><< . >><< end >>`:                           "(p*)",
		`<< "inputs.a" >><</* inputs.b */>>`:                                 "()",
	} {
		p := compile(t, "resourcesTemplate: "+quoteYAML(template))
		if got := p.Fields().String(); got != want {
			t.Errorf("%s reads %s, want %s", template, got, want)
		}
	}
}

func TestProject(t *testing.T) {
	p := compile(t, "resourcesTemplate: << inputs.a.b >><< inputs.c >><< inputs.gone >>")
	in := api.Input{"a": map[string]any{"b": int64(1), "x": "y"}, "c": []any{"z"}, "title": "secret"}
	want := api.Input{"a": map[string]any{"b": int64(1)}, "c": []any{"z"}}
	if diff := cmp.Diff(want, p.Fields().Project(in)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	in["a"] = "text" // templates fail on it just the same
	if got := p.Fields().Project(in)["a"]; got != "text" {
		t.Errorf("a is %v", got)
	}
}

func TestNameFieldsAndStaticIdentities(t *testing.T) {
	p := compile(t, `
resources:
- apiVersion: v1
  kind: Namespace
  metadata:
    name: fixed
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: app-<< inputs.tenant >>
    namespace: << get inputs "space" >>
    labels: {name: << inputs.label >>}
  spec:
    template:
      metadata: {name: << inputs.pod >>}
resourcesTemplate: |
  <<- $region := inputs.region >>
  apiVersion: v1
  kind: ConfigMap # comment
  metadata:
    name: "settings"
    namespace: apps
  ---
  <<- range inputs.users >>
  apiVersion: v1
  kind: ConfigMap
  metadata:
    name: user-<< .name >>-<< $region >>
  ---
  <<- end >>
  apiVersion: v1
  kind: ConfigMap
  metadata:
    <<- if inputs.prod >>
    name: prod
    <<- else >>
    name: test
    <<- end >>
  ---
  apiVersion: v1
  kind: ConfigMap
  metadata:
    name: << if inputs.blue >>blue<< else >>green<< end >>
  ---
  apiVersion: v1
  kind: List
  items:
  - apiVersion: v1
    kind: Secret
    metadata:
      name: listed
  - kind: Secret
    apiVersion: v1
    metadata:
      name: listed-<< inputs.tenant >>
  - apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata:
      name: last
      namespace: apps`)
	if diff := cmp.Diff([]string{"tenant", "space", "users", "region", "blue"}, p.NameFields()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var static []string
	for _, part := range p.parts {
		for id := range part.static {
			static = append(static, id.Group+" "+id.String())
		}
	}
	slices.Sort(static)
	want := []string{" ConfigMap apps/settings", " Namespace fixed", " Secret listed", "rbac.authorization.k8s.io Role apps/last"}
	if diff := cmp.Diff(want, static); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
