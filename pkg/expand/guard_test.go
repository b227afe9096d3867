// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/pkg/api"
)

// Two templates that put a title from a stranger into YAML without quotes.
const (
	unquotedResource = `
inputsFrom:
- name: from
resources:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: pr-<< inputs.id >>
    namespace: preview
    annotations:
      title: t << inputs.title >>
  data:
    other: kept`
	unquotedTemplate = `
inputsFrom:
- name: from
resourcesTemplate: |
  apiVersion: v1
  kind: ConfigMap
  metadata:
    annotations:
      title: << inputs.title >>
    name: pr-<< inputs.id >>
    namespace: preview
  data:
    other: kept`
)

// FR-83: a set whose values change the structure of the output is refused.
func TestInjectionIsRefused(t *testing.T) {
	attacks := []string{
		"x\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: evil}",
		"x\n    labels: {a: b}",
		"x\n  labels: {a: b}",
		"x\n      other: y",
		"x\n    namespace: kube-system",
		"x\n    name: evil",
		"x\nkind: Secret",
		"x\ndata:\n  other: changed",
		"x\n...\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: evil}",
		"fix: \"a\": b",
		"fix: a: b",
		"*ref",
		"{a: b}",
		"[a, b]",
		"|\n        text\n    name: evil",
		"x\r---\rkind: A",
	}
	for _, spec := range []string{unquotedResource, unquotedTemplate} {
		for _, title := range attacks {
			if strings.Contains(spec, "title: t <<") && strings.ContainsAny(title[:1], "*{[|") {
				continue // harmless behind other text
			}
			r := render(t, spec, Options{Structure: StructureEnforce}, api.Input{"id": "1", "title": title}, api.Input{"id": "2", "title": "fine"})
			if diff := cmp.Diff([]string{"ConfigMap preview/pr-2"}, ids(r)); diff != "" || len(r.Failed) != 1 {
				t.Errorf("title %q: -want +got:\n%s%s", title, diff, text(t, r))
			} else {
				mustContain(t, errorText(r.Failed[0].Err), "quote")
			}
		}
	}
}

// The same titles are no problem where the template quotes.
func TestQuotedValuesPass(t *testing.T) {
	spec := strings.Replace(unquotedTemplate, "<< inputs.title >>", "<< inputs.title | quote >>", 1)
	for _, title := range []string{"x\n---\nkind: A", "fix: \"a\": b", "*ref", "!!binary x", "{{", "<< env >>", "# no", "- a", "a\\b", "…", "null", "12", "\x00", "\u2028"} {
		r := render(t, spec, Options{Structure: StructureEnforce}, api.Input{"id": "1", "title": title})
		if len(r.Failed) != 0 || len(r.Warnings) != 0 {
			t.Fatalf("title %q: %s", title, text(t, r))
		}
		metadata := r.Objects[0].Content["metadata"].(map[string]any)
		if got := metadata["annotations"].(map[string]any)["title"]; got != title {
			t.Errorf("title %q became %q", title, got)
		}
	}
}

// Ordinary values pass without quotes, in templates that look at them.
func TestHarmlessValuesPass(t *testing.T) {
	spec := `
inputsFrom:
- name: from
resourcesTemplate: |
  <<- range splitList "," inputs.hosts >>
  ---
  apiVersion: v1
  kind: ConfigMap
  metadata:
    name: host-<< . | slugify >>
  data:
    image: << inputs.image >>
    text: |
      << inputs.text | nindent 4 | trim >>
    <<- if hasPrefix "feat/" inputs.branch >>
    feature: "true"
    <<- end >>
    json: << inputs.values | toJson >>
    yaml: << inputs.values | toYaml | nindent 4 >>
  <<- end >>`
	r := render(t, spec, Options{Structure: StructureEnforce}, api.Input{
		"id": "1", "hosts": "a.example,b.example", "image": "ghcr.io/acme/app:1.2.3@sha256:abc", "text": "line one\nline: two\n- three",
		"branch": "feat/x y", "values": map[string]any{"a b": "c: d", "list": []any{"# x", "*"}},
	})
	if len(r.Objects) != 2 || len(r.Failed) != 0 {
		t.Errorf("%s", text(t, r))
	}
}

func TestAllowStructure(t *testing.T) {
	rs, _ := parseOne(t, specText(strings.Replace(unquotedTemplate, "title: << inputs.title >>", "title: x\n    << inputs.title >>", 1)))
	for _, allow := range []bool{false, true} {
		if allow {
			rs.Annotations = map[string]string{api.AnnotationAllowStructure: "true"}
		}
		p, err := Compile(rs)
		if err != nil {
			t.Fatal(err)
		}
		sets, _ := p.Sets([]Export{external("from", api.Input{"id": "1", "title": "labels: {a: b}"})})
		r := p.Render(t.Context(), sets, Options{Structure: StructureEnforce})
		if (len(r.Failed) == 0) != allow {
			t.Errorf("allowed %v: %s", allow, text(t, r))
		}
	}
}

// The author of a ResourceSet is trusted with its inline inputs.
func TestInlineInputsAreTrusted(t *testing.T) {
	spec := strings.Replace(unquotedTemplate, "inputsFrom:\n- name: from", "inputs:\n- {id: \"1\", title: \"{a: b}\"}", 1)
	spec = strings.Replace(spec, "annotations:", "x:", 1)
	if r := render(t, spec, Options{Structure: StructureEnforce}); len(r.Failed) != 0 || len(r.Warnings) != 0 {
		t.Errorf("%s", text(t, r))
	}
	r := render(t, spec, Options{Structure: StructureWarn})
	if len(r.Objects) != 1 || len(r.Warnings) != 1 {
		t.Fatalf("%s", text(t, r))
	}
	mustContain(t, r.Warnings[0].Error(), "changes the structure", "metadata.x.title")
}

// FR-21: texts that YAML re-types are reported with their path; where a cluster
// takes only a text, the set fails.
func TestRetypedTextsAreReported(t *testing.T) {
	spec := `
inputsFrom:
- name: from
resources:
- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: app
  spec:
    replicas: 2
    tag: << inputs.tag >>
    quoted: << inputs.tag | quote >>
    part: v<< inputs.tag >>`
	for _, tag := range []string{"6063e25", "0156133", "1234567", "1.10", "2024", "on", "no", "0x1f", "2"} {
		r := render(t, spec, Options{Structure: StructureEnforce}, api.Input{"id": "1", "tag": tag}, api.Input{"id": "2", "tag": tag})
		if len(r.Objects) != 1 || len(r.Warnings) != 1 {
			t.Errorf("tag %q: %s", tag, text(t, r))
			continue
		}
		mustContain(t, r.Warnings[0].Error(), "app.yaml:16: ", "spec.tag", "\""+tag+"\"", "(and 1 more input sets)")
	}
	for _, tag := range []string{"6063f25", "v1", "1.2.3", "2024-05-01", "main", "12:30"} {
		if r := render(t, spec, Options{Structure: StructureEnforce}, api.Input{"id": "1", "tag": tag}); len(r.Warnings)+len(r.Failed) != 0 {
			t.Errorf("tag %q: %s", tag, text(t, r))
		}
	}
	env := "resources:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: x, << inputs.kind >>: {a: << inputs.label >>}}\n  spec:\n    containers:\n    - env:\n      - name: TAG\n        value: << inputs.tag >>"
	spec = "inputsFrom:\n- name: from\n" + strings.Replace(env, ", << inputs.kind >>: {a: << inputs.label >>}", "", 1)
	r := render(t, spec, Options{Structure: StructureEnforce}, api.Input{"id": "1", "tag": "1.10"})
	if len(r.Failed) != 1 {
		t.Fatalf("%s", text(t, r))
	}
	mustContain(t, errorText(r.Failed[0].Err), "app.yaml:17: ", "spec.containers[0].env[0].value", `"1.10"`, "quote")
	spec = "inputsFrom:\n- name: from\nresources:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: x, labels: {a: << inputs.tag >>}}"
	r = render(t, spec, Options{Structure: StructureEnforce}, api.Input{"id": "1", "tag": "1.10"})
	if len(r.Failed) != 1 {
		t.Fatalf("%s", text(t, r))
	}
	mustContain(t, errorText(r.Failed[0].Err), "metadata.labels[a] is a number", "quote")
}
