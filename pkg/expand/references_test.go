// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
		api.Input{"id": "4", "greeting": "x", "more": "", "source": "settings-4"},
		api.Input{"id": "5", "greeting": "x", "more": "Secret/apps/x", "source": "settings-5"},
		api.Input{"id": "6", "greeting": "x", "more": "", "source": "a/b/c"})
	out, err := Layout(LayoutParams{ResourceSet: resourceSet("apps", "app"), Sets: prs("1", "2", "3", "4", "5", "6"), Rendering: r})
	if err != nil {
		t.Fatal(err)
	}
	const neither = "is neither rendered by this ResourceSet nor among the definitions: it may be in the live cluster"
	for set, want := range map[int]string{
		0: "checksumFrom: ConfigMap apps/elsewhere " + neither, 1: `checksumFrom: "Pod/apps/x" is not of the form`,
		2: "copyFrom: ConfigMap apps/elsewhere " + neither, 4: "Secret apps/x is not rendered by this ResourceSet",
		5: `copyFrom: "apps/a/b/c" is not of the form`,
	} {
		if err := failure(out, set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("set %d: want %q, got %v", set+1, want, err)
		}
	}
	if err := failure(out, 3); err != nil {
		t.Errorf("set 4: %v", err)
	}
	for name, want := range map[string]bool{"apps/elsewhere": true, "apps/settings-4": false} {
		if found, looked := r.Looked[name]; looked != want || found != nil {
			t.Errorf("looked for %s: %t, found %v", name, looked, found)
		}
	}
}

func failure(out *Output, set int) error {
	for _, f := range out.Failed {
		if f.Set == set {
			return f.Err
		}
	}
	return nil
}

// given are ConfigMaps of the definitions.
func given(t *testing.T, text string) map[string]*api.ConfigMap {
	t.Helper()
	defs := api.Parse("maps.yaml", []byte(text))
	if len(defs.Faults) > 0 || len(defs.ConfigMaps) == 0 {
		t.Fatalf("no ConfigMaps: %v", defs.Faults)
	}
	return defs.ConfigMapsByName()
}

// rendered renders a template once, without inputs.
func rendered(t *testing.T, text string, maps map[string]*api.ConfigMap) *Rendering {
	t.Helper()
	r := render(t, "resourcesTemplate: |\n  "+strings.ReplaceAll(text, "\n", "\n  ")+"\n", Options{ConfigMaps: maps})
	if len(r.Failed) > 0 {
		t.Fatal(r.Failed[0].Err)
	}
	return r
}

// What the definitions hold can be copied, whole; what the same ResourceSet renders wins.
func TestReferencesToTheDefinitions(t *testing.T) {
	maps := given(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: both, namespace: apps}
data: {from: definitions}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: shared, namespace: flux-system}
data: {greeting: hello}
binaryData: {logo: aGVsbG8=}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: empty, namespace: apps}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: broken, namespace: apps}
data: {number: 1}
`)
	r := rendered(t, `apiVersion: v1
kind: ConfigMap
metadata: {name: both, namespace: apps}
data: {from: rendering}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: apps, annotations: {fluxcd.controlplane.io/copyFrom: flux-system/shared}}
data: {own: text}
binaryData: {own: AA==}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: apps, annotations: {fluxcd.controlplane.io/copyFrom: apps/both}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: apps, annotations: {fluxcd.controlplane.io/copyFrom: apps/empty}}
data: {own: text}
binaryData: {own: AA==}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: d, namespace: apps, annotations: {fluxcd.controlplane.io/copyFrom: apps/broken}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: e, namespace: apps, annotations: {fluxcd.controlplane.io/copyFrom: apps/a}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: f, namespace: apps, annotations: {fluxcd.controlplane.io/copyFrom: apps/g}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: g, namespace: apps, annotations: {fluxcd.controlplane.io/copyFrom: apps/f}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: h, namespace: apps, annotations: {fluxcd.controlplane.io/copyFrom: apps/d}}
---
apiVersion: v1
kind: Service
metadata: {name: of-no-meaning-there, namespace: apps, annotations: {fluxcd.controlplane.io/copyFrom: apps/d}}
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: apps, annotations: {fluxcd.controlplane.io/copyFrom: apps/both}}
`, maps)
	type content struct {
		data, binary any
		refused      string
	}
	shared := content{data: map[string]any{"greeting": "hello"}, binary: map[string]any{"logo": "aGVsbG8="}}
	for i, want := range []content{
		{data: map[string]any{"from": "rendering"}},
		shared,
		{data: map[string]any{"from": "rendering"}},
		{data: map[string]any{}, binary: map[string]any{"own": "AA=="}}, // as the operator leaves it
		{refused: "ConfigMap apps/d: the annotation fluxcd.controlplane.io/copyFrom: maps.yaml:20: ConfigMap apps/broken: data.number must be a text"},
		shared, // by way of another copy
		{refused: "ConfigMap apps/g does not get its own data"},
		{refused: "ConfigMap apps/f takes its data from itself"},
		{refused: "ConfigMap apps/d does not get its own data"},
		{},
		{refused: "would put the plain text of a Secret into Git"},
	} {
		o := r.Objects[i]
		if want.refused != "" {
			if o.Unresolved == nil || !strings.Contains(o.Unresolved.Error(), want.refused) {
				t.Errorf("%s: want %q, got %v", o.ID, want.refused, o.Unresolved)
			}
			continue
		}
		if o.Unresolved != nil {
			t.Errorf("%s: %v", o.ID, o.Unresolved)
		}
		equal(t, o.ID.Name+" data", want.data, o.Content["data"])
		equal(t, o.ID.Name+" binaryData", want.binary, o.Content["binaryData"])
	}
	if r.Looked["flux-system/shared"] != maps["flux-system/shared"] || len(r.Looked) != 3 {
		t.Errorf("looked for %v", r.Looked)
	}
}

// The checksum is the operator's: over names and data, each ended by a zero byte, of
// ConfigMaps and Secrets, wherever an object has metadata.
func TestChecksumFromTheDefinitions(t *testing.T) {
	maps := given(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: flux-system}\ndata: {b: two, a: one}\nbinaryData: {c: AAE=}\n")
	template := `apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: apps}
spec:
  jobTemplate:
    spec:
      template:
        metadata:
          annotations:
            fluxcd.controlplane.io/checksumFrom: ConfigMap/flux-system/shared
        spec: {containers: []}
`
	want := sha256.Sum256([]byte("ConfigMap/flux-system/shared\x00a\x00one\x00b\x00two\x00c\x00\x00\x01\x00"))
	r := rendered(t, template, maps)
	place := []string{"spec", "jobTemplate", "spec", "template", "metadata", "annotations", annotationChecksum}
	equal(t, "checksum", any("sha256:"+hex.EncodeToString(want[:])), at(r.Objects[0].Content, place...))
	if o := rendered(t, template, nil).Objects[0]; o.Unresolved == nil || at(o.Content, place...) != nil {
		t.Errorf("without the ConfigMap: %v", o.Unresolved)
	}
	own := strings.Replace(template, "            fluxcd", "            fluxcd.controlplane.io/checksum: mine\n            fluxcd", 1)
	if o := rendered(t, own, nil).Objects[0]; o.Unresolved != nil || at(o.Content, place...) != "mine" {
		t.Errorf("with a checksum of one's own: %v", o.Unresolved)
	}
}

// References that need no inputs are found in templates of both kinds, with their lines.
func TestLiterals(t *testing.T) {
	rs, _ := parseOne(t, specText(`
inputsFrom: [{name: from}]
resources:
  - apiVersion: v1
    kind: ConfigMap
    metadata:
      name: own
      namespace: apps
      annotations:
        fluxcd.controlplane.io/copyFrom: apps/a
resourcesTemplate: |
  # fluxcd.controlplane.io/copyFrom: apps/comment
  metadata: {annotations: {fluxcd.controlplane.io/copyFrom: "apps/<< inputs.x >>"}}
  metadata: {annotations: {"fluxcd.controlplane.io/copyFrom": apps/b}}
  annotations:
    fluxcd.controlplane.io/checksumFrom: |
      ConfigMap/apps/own, ConfigMap/apps/c,
      Secret/apps/d, ConfigMap/apps/<< inputs.x >>, ConfigMap/apps/e
    fluxcd.controlplane.io/other: x
    fluxcd.controlplane.io/checksumFrom: 'ConfigMap/apps/f'
`))
	p, err := Compile(rs)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range p.Literals() {
		got = append(got, fmt.Sprintf("%d %s", l.Pos.Line, l.Name))
	}
	equal(t, "literals", []string{"15 apps/a", "19 apps/b", "21 apps/c", "21 apps/e", "25 apps/f"}, got)
}

// Items of spec.resources are looked through only if they can refer to anything; what
// spec.commonMetadata adds is seen all the same.
func TestChecksumsOfItems(t *testing.T) {
	const item = `
inputs: [{tenant: a}]
commonMetadata: {annotations: {COMMON}}
resources:
  - apiVersion: batch/v1
    kind: Job
    metadata: {name: "job-<< inputs.tenant >>", namespace: apps}
    spec: {template: {metadata: {annotations: {x: "<< inputs.tenant >>", OWN}}}}
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "m-<< inputs.tenant >>", namespace: apps}
`
	from := annotationChecksumFrom + `: "ConfigMap/apps/m-<< inputs.tenant >>"`
	for _, c := range []struct{ common, own string }{{"a: b", from}, {strings.Replace(from, "<< inputs.tenant >>", "a", 1), "a: b"}, {"a: b", "a: b"}} {
		r := render(t, strings.NewReplacer("COMMON", c.common, "OWN", c.own).Replace(item), Options{})
		if len(r.Failed) > 0 || len(r.Objects) != 2 {
			t.Fatalf("%v, %d objects", r.Failed, len(r.Objects))
		}
		o := r.Objects[0]
		inTemplate := at(o.Content, "spec", "template", "metadata", "annotations", annotationChecksum)
		equal(t, "sums of "+c.common+" and "+c.own, []bool{c.own == from, strings.Contains(c.common, "checksumFrom")},
			[]bool{inTemplate != nil, annotationsOf(o.Content)[annotationChecksum] != nil})
	}
}

// A kubeconfig gives its cluster's address and authority, if it holds no credential.
func TestConvertKubeConfig(t *testing.T) {
	kubeconfig := func(name, key, users, server, ca string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: apps}\ndata:\n  " + key + ": |\n" +
			"    clusters: [{name: a, cluster: {server: \"" + server + "\", certificate-authority-data: " + ca + "}}]\n    users: " + users + "\n---\n"
	}
	maps := given(t, kubeconfig("good", "kubeconfig", "[{name: x}]", "https://a:6443", "Y2E=")+kubeconfig("value", "value", "", "https://b", "Y2E=")+
		kubeconfig("key", "mine", "[]", "https://c", "Y2E=")+kubeconfig("token", "kubeconfig", "[{name: x, user: {token: hunter2}}]", "https://d", "Y2E=")+
		kubeconfig("in-address", "kubeconfig", "[]", "https://x:hunter2@d", "Y2E=")+kubeconfig("no-ca", "kubeconfig", "[]", "https://d", "''")+
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: apps}\ndata: {kubeconfig: 'hunter2: ['}\n")
	for from, want := range map[string]string{
		"apps/good": "https://a:6443", "apps/value": "https://b", "apps/key:mine": "https://c", "apps/key": "has no data kubeconfig or value",
		"apps/token": "its kubeconfig holds credentials", "apps/in-address": "its kubeconfig holds credentials", "apps/no-ca": "no certificate-authority-data",
		"apps/other": "no kubeconfig", "default/capi-kubeconfig": "default/capi-kubeconfig wants data of a Secret in the live cluster",
	} {
		template := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: apps, annotations: {fluxcd.controlplane.io/convertKubeConfigFrom: \"" + from + "\"}}\n"
		o := rendered(t, template, maps).Objects[0]
		if !strings.HasPrefix(want, "https:") {
			if o.Unresolved == nil || !strings.Contains(o.Unresolved.Msg, want) || strings.Contains(o.Unresolved.Error(), "hunter2") {
				t.Errorf("%s: want %q, got %v", from, want, o.Unresolved)
			}
			o = rendered(t, template+"data: {address: mine, ca.crt: mine}\n", maps).Objects[0]
			if o.Unresolved != nil {
				t.Errorf("%s, with data of its own: %v", from, o.Unresolved)
			}
			continue
		}
		equal(t, from, any(map[string]any{"address": want, "ca.crt": "ca"}), o.Content["data"])
		o = rendered(t, template+"data: {address: mine, more: text}\n", maps).Objects[0]
		equal(t, from, any(map[string]any{"address": "mine", "ca.crt": "ca", "more": "text"}), o.Content["data"])
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

// force on the ResourceSet is for all of its objects.
func TestFluxForceOfTheResourceSet(t *testing.T) {
	f := newFolder(t)
	f.rs.Annotations = map[string]string{annotationForce: "enabled"}
	own := configMap("own", "x", 0)
	own.Content["metadata"].(map[string]any)["annotations"] = map[string]any{annotationFluxForce: "disabled"}
	f.apply(LayoutParams{Sets: prs("1"), Rendering: rendering(configMap("a", "x", 0), own)})
	for file, want := range map[string]string{"apps_a__ConfigMap.yaml": "enabled", "apps_own__ConfigMap.yaml": "disabled"} {
		if text := f.content(file); strings.Count(text, annotationFluxForce+": "+want) != 1 || strings.Count(text, annotationFluxForce) != 1 {
			t.Errorf("%s, want %s:\n%s", file, want, text)
		}
	}
}
