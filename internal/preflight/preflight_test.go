// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"
	"testing"
)

func object(name, more string) []byte {
	return []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  namespace: apps\n" + more)
}

func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  []string // texts of the faults, in their order
	}{
		"sound":   {map[string]string{"a/a.yaml": string(object("a", "data: {x: \"1\"}\n"))}, nil},
		"nothing": {nil, nil},
		"boolean": {map[string]string{"a/a.yaml": string(object("a", "spec:\n- x: NO\n"))},
			[]string{"a.yaml: spec[0].x is the value false, but Flux will read the text \"NO\""}},
		"date": {map[string]string{"a/a.yaml": string(object("a", "data: {x: 2001-01-01}\n"))},
			[]string{"a.yaml: data.x is the text \"2001-01-01\", but Flux will read the text \"2001-01-01T00:00:00Z\""}},
		"twice": {map[string]string{
			"a/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
			"b/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n",
			"c/c.yaml": string(object("c", "")),
		}, []string{"a.yaml: ConfigMap a names no namespace"}},
		"cluster-wide twice": {map[string]string{
			"a/a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
			"b/b.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: x}\n",
		}, []string{"b.yaml: is the same object as a.yaml to kustomize"}},
		"refused": {map[string]string{
			"a/a.yaml": string(object("a", "")),
			"b/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: apps}\n",
		}, []string{"b.yaml: kustomize refuses it: "}},
		"no namespace of a Flux kind": {map[string]string{"a/a.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\n"},
			[]string{"a.yaml: HelmRelease a names no namespace"}},
		"a list": {map[string]string{"a/a.yaml": "apiVersion: v1\nkind: ConfigMapList\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: x, namespace: apps}\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			part := Part{Files: map[string][]byte{}, Namespaced: true}
			for file, text := range tt.files {
				part.Files[file] = []byte(text)
			}
			faults := Check(part)
			if len(faults) != len(tt.want) {
				t.Fatalf("got %v, want %q", faults, tt.want)
			}
			for i, want := range tt.want {
				if !strings.Contains(faults[i].Error(), want) || faults[i].Suggestion() == "" {
					t.Errorf("got %q, want it to contain %q", faults[i], want)
				}
			}
		})
	}
	part := Part{Files: map[string][]byte{"a/a.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")}}
	if faults := Check(part); len(faults) > 0 {
		t.Errorf("a targetNamespace may add it: %v", faults)
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{5, 100, 500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			part := Part{Files: map[string][]byte{}}
			for i := range n {
				part.Files[fmt.Sprintf("set-%d/a.yaml", i)] = object(fmt.Sprint("a", i), "data: {a: \"1\", b: \"2\"}\n")
			}
			for b.Loop() {
				if faults := Check(part); len(faults) > 0 {
					b.Fatal(faults)
				}
			}
		})
	}
}
