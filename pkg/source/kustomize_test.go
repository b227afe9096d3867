// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/pkg/api"
)

func TestKustomizationIsBuilt(t *testing.T) {
	check(t, repo{
		"clusters/preview/kustomization.yaml": "namespace: built\nnamePrefix: p-\nresources:\n  - app.yaml\n  - ../../base\n  - generated\n",
		"clusters/preview/app.yaml":           "# comment\n" + set("apps", "a"),
		"clusters/preview/not-listed.yaml":    set("apps", "unlisted"),
		"base/Kustomization":                  "resources: [prs.yaml, more]\n",
		"base/prs.yaml":                       "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\n" + provider("apps", "prs"),
		"base/more/kustomization.yml":         "resources: [set.yaml]\n",
		"base/more/set.yaml":                  set("apps", "b"),
		// Our own output is neither read nor does it break the build.
		"clusters/preview/generated/kustomization.yaml": "resources: [x.yaml]\n",
		"clusters/preview/generated/x.yaml":             set("apps", "generated"),
	}, Options{Path: "clusters/preview", Exclude: "clusters/preview/generated"},
		"ResourceSet built/p-a clusters/preview/app.yaml:2",
		"ResourceSet built/p-b base/more/set.yaml:1",
		"ResourceSetInputProvider built/p-prs base/prs.yaml:5",
	)
}

// The target path may not exist yet, and a kustomization may list it already.
func TestKustomizationListsTargetBeforeItExists(t *testing.T) {
	check(t, repo{"kustomization.yaml": "resources: [app.yaml, generated]\n", "app.yaml": set("apps", "a")},
		Options{Exclude: "generated"}, "ResourceSet apps/a app.yaml:1")
}

func TestKustomizationInSubFolder(t *testing.T) {
	check(t, repo{
		"a.yaml":                        set("apps", "a"),
		"sub/kustomization.yaml":        "resources: [b.yaml]\npatches:\n  - patch: |-\n      - op: add\n        path: /metadata/annotations\n        value: {renderer/directory: x}\n    target: {kind: ResourceSet}\n",
		"sub/b.yaml":                    set("apps", "b"),
		"sub/deep/unlisted.yaml":        set("apps", "unlisted"),
		"bad/kustomization.yaml":        "resources: [c.yaml, missing.yaml]\n",
		"bad/c.yaml":                    set("apps", "c"),
		"circle/kustomization.yaml":     "resources: [sub]\n",
		"circle/sub/kustomization.yaml": "resources: [..]\n",
		"none/kustomization.yaml":       "resources: [sub]\n",
		"none/sub/a.yaml":               set("apps", "n"),
		"typo/kustomization.yaml":       "resource: [a.yaml]\n",
		"worse/kustomization.yaml":      "resources: [d.yaml]\n",
		"worse/d.yaml":                  "kind: ResourceSet\nmetadata: [\n",
	}, Options{},
		"ResourceSet apps/a a.yaml:1",
		"ResourceSet apps/b sub/b.yaml:1",
		"fault bad/kustomization.yaml:1: resources: missing.yaml does not exist in the repository",
		"fault circle/kustomization.yaml: kustomize: cycle detected: candidate root 'circle' contains visited root 'circle/sub'",
		"fault none/kustomization.yaml:1: resources: the folder sub has no kustomization.yaml",
		"fault typo/kustomization.yaml: kustomize: couldn't make target for path 'typo': invalid Kustomization: json: unknown field \"resource\"",
		"fault worse/d.yaml:2: not valid YAML: did not find expected node content",
	)
}

// What a build yields is checked as strictly as a plain file, with its lines.
func TestBuiltObjectsKeepTheirLines(t *testing.T) {
	files := repo{
		"kustomization.yaml": "namespace: built\nresources: [app.yaml]\n",
		"app.yaml": `# a comment
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata:
  name: app
spec:
  commonMetadata:
    labels: {a: b}
  inputs:
    - tenant: one
      enabled: true
    - tenant: two
  resourcesTemplate: |
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: << inputs.tenant >>
`,
	}
	defs, err := Read(context.Background(), files.tree(t), Options{})
	if err != nil || len(defs.ResourceSets) != 1 {
		t.Fatal(err, summary(defs))
	}
	rs := defs.ResourceSets[0]
	for path, want := range map[string]int{"spec.inputs[1]": 12, "spec.resourcesTemplate": 14, "metadata.name": 5} {
		if got := rs.At(path); got.Line != want || got.File != "app.yaml" {
			t.Errorf("%s is at %v, want line %d", path, got, want)
		}
	}
	if len(rs.Annotations) > 0 || len(rs.Labels) > 0 {
		t.Errorf("left over from the build: %v %v", rs.Annotations, rs.Labels)
	}
	files["app.yaml"] = strings.Replace(files["app.yaml"], "inputs:", "inptus:", 1)
	defs, err = Read(context.Background(), files.tree(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"fault app.yaml:9: ResourceSet built/app: unknown field spec.inptus"}
	if diff := cmp.Diff(want, summary(defs)); diff != "" {
		t.Error(diff)
	}
}

// What kustomize would fetch, run or read elsewhere is refused before it can.
func TestRule12_KustomizeStaysInside(t *testing.T) {
	for entry, want := range map[string]string{
		"resources: [https://example.com/x.yaml]":                            "resources: remote https://example.com/x.yaml is not supported",
		"RESOURCES: [https://example.com/x.yaml]":                            "resources: remote https://example.com/x.yaml is not supported",
		"bases: ['https://u:secret@example.com/org/repo?ref=main']":          "resources: remote https://example.com/org/repo?ref=main is not supported",
		"resources: [github.com/org/repo]":                                   "resources: remote github.com/org/repo is not supported",
		"resources: ['git@example.com:org/repo']":                            "resources: remote git@example.com:org/repo is not supported",
		"components: ['ssh://git@example.com/org/repo']":                     "components: remote ssh://example.com/org/repo is not supported",
		"resources: ['file:///etc']":                                         "resources: remote file:///etc is not supported",
		"resources: [../../../etc/passwd]":                                   "resources: ../../../etc/passwd leads out of the repository",
		"resources: [/etc/passwd]":                                           "resources: absolute path /etc/passwd",
		"resources: [out.yaml]":                                              "resources: out.yaml does not exist in the repository",
		"patches: [{path: 'HTTP://example.com/p.yaml'}]":                     "patches: remote HTTP://example.com/p.yaml is not supported",
		"crds: ['http://example.com/p.yaml']":                                "crds: remote http://example.com/p.yaml is not supported",
		"openapi: {path: 'http://example.com/p.json'}":                       "openapi: remote http://example.com/p.json is not supported",
		"replacements: [{path: 'http://example.com/p.json'}]":                "replacements: remote http://example.com/p.json is not supported",
		"configMapGenerator: [{name: x, files: ['a=http://example.com/p']}]": "configMapGenerator: remote http://example.com/p is not supported",
		"secretGenerator: [{name: x, envs: ['http://example.com/p']}]":       "secretGenerator: remote http://example.com/p is not supported",
		"helmCharts: [{name: x}]":                                            "helmCharts is not supported: it runs programs",
		"transformers: [x.yaml]":                                             "transformers is not supported: it runs programs",
		"generators: [x.yaml]":                                               "generators is not supported: it runs programs",
		"validators: [x.yaml]":                                               "validators is not supported: it runs programs",
	} {
		// Also one level down: what a base includes is inspected as well.
		for _, files := range []repo{
			{"a.yaml": set("apps", "a"), "k/kustomization.yaml": entry + "\n", "k/out.yaml": "link:/etc/hostname"},
			{"a.yaml": set("apps", "a"), "k/kustomization.yaml": "resources: [sub]\n", "k/sub/kustomization.yaml": entry + "\n", "k/sub/out.yaml": "link:../../../x"},
		} {
			defs, err := Read(context.Background(), files.tree(t), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(defs.ResourceSets) != 1 || len(defs.Faults) == 0 || defs.Faults[0].Msg != want {
				t.Errorf("%s: %q", entry, summary(defs))
			}
		}
	}
}

// A build is repeated when, and only when, something that it looked at changed.
func TestReaderBuildsOnlyWhatChanged(t *testing.T) {
	files := repo{
		"apps/kustomization.yaml": "resources: [a.yaml, ../base, late.yaml]\n",
		"apps/a.yaml":             set("apps", "a"),
		"base/kustomization.yaml": "resources: [b.yaml]\n",
		"base/b.yaml":             set("apps", "b"),
		"other.yaml":              set("apps", "other"),
	}
	var r Reader
	read := func() *api.Definitions {
		t.Helper()
		defs, err := r.Read(context.Background(), files.tree(t), Options{Path: "apps"})
		if err != nil {
			t.Fatal(err)
		}
		return defs
	}
	if defs := read(); len(defs.Faults) != 1 {
		t.Fatal(summary(defs))
	}
	files["apps/late.yaml"] = set("apps", "late")
	first := read()
	if len(first.ResourceSets) != 3 {
		t.Fatal(summary(first))
	}
	files["other.yaml"] = "a: b\n"
	if second := read(); second.ResourceSets[0] != first.ResourceSets[0] {
		t.Error("built again although nothing changed")
	}
	files["base/b.yaml"] = set("apps", "c")
	if third := read(); third.ResourceSets[1].Name != "c" {
		t.Error("a change in a base was not seen", summary(third))
	}
}

// Refusing is not enough: nothing may have been fetched or run before.
func TestRule12_KustomizeFetchesNothing(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	bin := t.TempDir()
	marker := filepath.Join(bin, "ran")
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\n: > '"+marker+"'\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	for _, entry := range []string{
		"resources: ['" + server.URL + "/x.yaml']",
		"patches: [{path: '" + server.URL + "/x.yaml'}]\nresources: [a.yaml]",
		"configMapGenerator: [{name: x, files: ['a=" + server.URL + "/x']}]",
		"resources: ['" + server.URL + "/org/repo?ref=main']",
		"resources: ['git@localhost:org/repo']",
		"components: ['ssh://git@localhost/org/repo']",
		"resources: ['a@b/c/d']",
	} {
		files := repo{"kustomization.yaml": entry + "\n", "a.yaml": set("apps", "a"), "a@b/c/d": "not: [yaml"}
		defs, err := Read(context.Background(), files.tree(t), Options{})
		if err != nil || len(defs.Faults) == 0 {
			t.Errorf("%s: %v, %v", entry, defs, err)
		}
		if n := requests.Load(); n > 0 {
			t.Fatalf("%s: %d requests", entry, n)
		}
		if _, err := os.Stat(marker); err == nil {
			t.Fatalf("%s: git was run", entry)
		}
	}
}
