// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ConfigMaps are found in plain files and in what kustomize builds, generated ones too;
// by themselves they make no path of definitions (rule 3).
func TestRule03_ConfigMapsBesideDefinitions(t *testing.T) {
	plain := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: apps}\ndata: {a: b}\n"
	files := repo{
		"app.yaml": set("apps", "a"), "maps.yaml": "# comment\n" + plain,
		"built/kustomization.yaml": "namespace: apps\nresources: [fixed.yaml]\nconfigMapGenerator:\n- name: made\n  literals: [x=y]\n  options: {disableNameSuffixHash: true}\n",
		"built/fixed.yaml":         "---\n" + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fixed}\ndata: {a: b}\n",
		"generated/x.yaml":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ours, namespace: apps}\n",
	}
	defs, err := Read(t.Context(), files.tree(t), Options{Exclude: "generated"})
	if err != nil || len(defs.Faults) > 0 {
		t.Fatal(err, defs.Faults)
	}
	var got []string
	for _, c := range defs.ConfigMaps {
		got = append(got, c.String()+" "+c.Pos.String()+" "+c.Data["a"]+c.Data["x"])
	}
	want := []string{
		"ConfigMap apps/fixed built/fixed.yaml:2 b", "ConfigMap apps/made built/kustomization.yaml y", "ConfigMap apps/plain maps.yaml:2 b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := Read(t.Context(), repo{"maps.yaml": plain}.tree(t), Options{}); !errors.Is(err, ErrNoDefinitions) {
		t.Errorf("only a ConfigMap: %v", err)
	}
}
