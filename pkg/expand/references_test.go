// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"strings"
	"testing"

	"resourceset.example/renderer/pkg/api"
)

const referringSpec = `
inputsFrom: [{name: from}]
resourcesTemplate: |
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: "settings-<< inputs.id >>", namespace: apps}
  data: {greeting: "<< inputs.greeting >>"}
  ---
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: "app-<< inputs.id >>", namespace: apps}
  spec:
    template:
      metadata:
        annotations:
          fluxcd.controlplane.io/checksumFrom: |
            ConfigMap/apps/settings-<< inputs.id >>,
            << inputs.more >>
      spec: {containers: []}
  ---
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: "copy-<< inputs.id >>", namespace: other, annotations: {fluxcd.controlplane.io/copyFrom: "apps/<< inputs.source >>"}}
  data: {own: text}
`

// checksumFrom and copyFrom are resolved from what the same ResourceSet renders.
func TestReferencesWithinOneResourceSet(t *testing.T) {
	one := render(t, referringSpec, Options{}, api.Input{"id": "1", "greeting": "hello", "more": "", "source": "settings-1"})
	again := render(t, referringSpec, Options{}, api.Input{"id": "1", "greeting": "hola", "more": "", "source": "settings-1"})
	sum := func(r *Rendering) string {
		text, _ := at(r.Objects[1].Content, "spec", "template", "metadata", "annotations", annotationChecksum).(string)
		return text
	}
	if a, b := sum(one), sum(again); !strings.HasPrefix(a, "sha256:") || a == b {
		t.Errorf("checksums %q and %q", a, b)
	}
	if at(one.Objects[1].Content, "metadata", "annotations") != nil {
		t.Error("the checksum is at the object, too")
	}
	equal(t, "copied", map[string]any{"greeting": "hello"}, one.Objects[2].Content["data"].(map[string]any))
	out, err := Layout(LayoutParams{ResourceSet: resourceSet("apps", "app"), Sets: prs("1"), Rendering: one})
	if err != nil || len(out.Failed) > 0 {
		t.Errorf("%v %v", err, out.Failed)
	}
}

// What is not there is refused, set by set, with what to do.
func TestReferencesElsewhereAreRefused(t *testing.T) {
	r := render(t, referringSpec, Options{},
		api.Input{"id": "1", "greeting": "x", "more": "ConfigMap/apps/elsewhere", "source": "settings-1"},
		api.Input{"id": "2", "greeting": "x", "more": "Pod/apps/x", "source": "settings-2"},
		api.Input{"id": "3", "greeting": "x", "more": "", "source": "elsewhere"},
		api.Input{"id": "4", "greeting": "x", "more": "", "source": "settings-4"})
	kube := configMap("kube", "x", 3)
	kube.Content["metadata"].(map[string]any)["annotations"] = map[string]any{annotationConvertKubeCfg: "default/capi-kubeconfig"}
	r.Objects = append(r.Objects, kube)
	out, err := Layout(LayoutParams{ResourceSet: resourceSet("apps", "app"), Sets: prs("1", "2", "3", "4"), Rendering: r})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"ConfigMap/apps/elsewhere is not rendered by this ResourceSet", "Pod/apps/x", "live cluster", "convertKubeConfigFrom: default/capi-kubeconfig wants data of a Secret"} {
		if len(out.Failed) <= i || !strings.Contains(out.Failed[i].Err.Error(), want) {
			t.Errorf("set %d: want %q, got %v", i+1, want, out.Failed)
		}
	}
}

// The operator's marks on objects become those that Flux knows, as labels too, unless
// there is one already.
func TestFluxAnnotationsOfObjects(t *testing.T) {
	mark := func(name, field string, values map[string]any) Object {
		object := configMap(name, "x", 0)
		object.Content["metadata"].(map[string]any)[field] = values
		return object
	}
	f := newFolder(t)
	f.apply(LayoutParams{Sets: prs("1"), Rendering: rendering(
		mark("a", "annotations", map[string]any{annotationPrune: "disabled", annotationForce: "Enabled"}),
		mark("b", "labels", map[string]any{annotationPrune: "disabled"}),
		mark("c", "annotations", map[string]any{annotationPrune: "enabled"}),
		mark("d", "annotations", map[string]any{annotationForce: "enabled", annotationFluxForce: "disabled"}))})
	for name, want := range map[string][]string{
		"apps_a__ConfigMap.yaml": {"kustomize.toolkit.fluxcd.io/prune: disabled", "kustomize.toolkit.fluxcd.io/force: enabled"},
		"apps_b__ConfigMap.yaml": {"kustomize.toolkit.fluxcd.io/prune: disabled"},
		"apps_c__ConfigMap.yaml": nil,
		"apps_d__ConfigMap.yaml": {"kustomize.toolkit.fluxcd.io/force: disabled"},
	} {
		text := f.content(name)
		if n := strings.Count(text, "kustomize.toolkit.fluxcd.io/"); n != len(want) {
			t.Errorf("%s has %d marks:\n%s", name, n, text)
		}
		for _, mark := range want {
			if !strings.Contains(text, mark) {
				t.Errorf("no %s in\n%s", mark, text)
			}
		}
	}
}
