// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestParse compares what each file of testdata/parse yields with the golden
// file beside it: objects, faults and warnings, with their hints.
func TestParse(t *testing.T) {
	cases, err := filepath.Glob("testdata/parse/*.yaml")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases (%v): wrong folder?", err)
	}
	for _, file := range cases {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := describe(Parse(filepath.Base(file), data))
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(got, "s3cr3t") {
				t.Error("a credential is in the output")
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
			// Line ends and a byte order mark change nothing.
			crlf := append([]byte(byteOrderMark), bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))...)
			if diff := cmp.Diff(got, describe(Parse(filepath.Base(file), crlf))); diff != "" {
				t.Errorf("with CRLF (-want +got):\n%s", diff)
			}
		})
	}
}

// describe is a readable form of all that was found.
func describe(d *Definitions) string {
	var b strings.Builder
	object := func(pos Position, name fmt.Stringer, spec any) {
		fmt.Fprintf(&b, "%s: %s\n    ", pos, name)
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false) // placeholders stay readable
		if err := enc.Encode(spec); err != nil {
			fmt.Fprintf(&b, "not JSON: %v\n", err)
		}
	}
	for _, rs := range d.ResourceSets {
		object(rs.Pos, rs, rs.Spec)
	}
	for _, p := range d.Providers {
		object(p.Pos, p, p.Spec)
	}
	for _, r := range d.Receivers {
		object(r.Pos, r, r.Spec)
	}
	for _, c := range d.ConfigMaps {
		object(c.Pos, c, map[string]any{"data": c.Data, "binaryData": c.BinaryData, "unusable": c.Unusable})
	}
	list := func(word string, faults []*Fault) {
		for _, f := range faults {
			fmt.Fprintf(&b, "%s %s\n", word, f)
			if f.Hint != "" {
				fmt.Fprintf(&b, "    hint: %s\n", f.Hint)
			}
		}
	}
	list("fault", d.Faults)
	list("warning", d.Warnings)
	return b.String()
}

// An alias bomb is a fault, not a lot of memory.
func TestAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: bomb}\nspec:\n  inputs:\n    - a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "      a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	for _, text := range []string{b.String(), strings.Replace(b.String(), "inputs:", "resources:", 1)} {
		allocated := testing.AllocsPerRun(1, func() {
			d := Parse("bomb.yaml", []byte(text))
			if len(d.Faults) != 1 || !strings.Contains(d.Faults[0].Msg, "aliases") || d.Faults[0].Pos.Line == 0 {
				t.Errorf("got %d faults, first %v", len(d.Faults), d.Faults[0])
			}
		})
		if allocated > 3*aliasAllowance {
			t.Errorf("%.0f allocations", allocated)
		}
	}
	// Merge keys expand as well.
	var m strings.Builder
	m.WriteString("apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: bomb}\nspec:\n  inputs:\n    - a0: &a0 {x: 1}\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&m, "      a%d: &a%d {<<: [*a%d, *a%d]}\n", i, i, i-1, i-1)
	}
	if d := Parse("bomb.yaml", []byte(m.String())); len(d.Faults) != 1 || !strings.Contains(d.Faults[0].Msg, "aliases") {
		t.Errorf("merge keys: %v", d.Faults)
	}
}

func TestLinesOfFields(t *testing.T) {
	d := Parse("f.yaml", []byte(`# one
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata:
  name: app
spec:
  inputs:
    - {a: 1}

    - a: 2
  resources:
    - apiVersion: v1
      metadata:
        name: << inputs.a >>
        annotations:
          a.b/c: |

            text
  resourcesTemplate: |+

    second line
`))
	if len(d.ResourceSets) != 1 {
		t.Fatal(d.Faults)
	}
	rs := d.ResourceSets[0]
	for path, want := range map[string]int{
		"":                                   2,
		"metadata.name":                      5,
		"spec.inputs":                        7,
		"spec.inputs[0]":                     8,
		"spec.inputs[1]":                     10,
		"spec.inputs[1].a":                   10,
		"spec.resources[0]":                  12,
		"spec.resources[0].metadata.name":    14,
		"spec.resources[0].metadata.unknown": 13,
		"spec.resources[0].metadata.annotations.a.b/c": 17,
		"spec.resourcesTemplate":                       20,
	} {
		if got := rs.At(path).Line; got != want {
			t.Errorf("%q is at line %d, want %d", path, got, want)
		}
	}
}

func TestUnsupportedFieldsAreReported(t *testing.T) {
	data, err := os.ReadFile("testdata/parse/resourceset-complete.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := Parse("f.yaml", append(data, []byte(`---
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: steps}
spec:
  steps:
    - {name: a, resourcesTemplate: x, timeout: 1m}
    - {name: b, resourcesTemplate: x}
---
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSetInputProvider
metadata: {name: tags}
spec: {type: OCIArtifactTag, url: "oci://ghcr.io/acme/app"}
`)...))
	var got []string
	for _, f := range Unsupported(d, []string{TypeStatic}, false) {
		got = append(got, f.Error())
	}
	want := []string{
		"f.yaml:40: ResourceSet apps/app: spec.dependsOn is not acted on without target.flux",
		"f.yaml:47: ResourceSet apps/app: spec.serviceAccountName is not acted on without target.flux",
		"f.yaml:48: ResourceSet apps/app: spec.wait is not acted on without target.flux",
		"f.yaml:56: ResourceSet default/steps: spec.steps are applied together: their order is not acted on without target.flux",
		"f.yaml:57: ResourceSet default/steps: spec.steps[0].timeout is not acted on without target.flux",
		"f.yaml:63: ResourceSetInputProvider default/tags: providers of type OCIArtifactTag cannot be fetched yet",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// FR-20: a line "---" inside a text is part of it, however the text is written.
func TestFR20_MarkersInTextDoNotSplit(t *testing.T) {
	for text, want := range map[string]string{
		"|\n        a: 1\n        ---\n        b: 2\n": "a: 1\n---\nb: 2\n",
		">-\n        a\n        ---\n        b\n":      "a --- b",
		"\"a\n        ---\n        b\"\n":              "a --- b",
		"a\n        ---\n        b\n":                  "a --- b",
	} {
		file := "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: a}\nspec:\n  inputs:\n    - config: " + text +
			"---\napiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: b}\nspec: {resourcesTemplate: x}\n"
		d := Parse("f.yaml", []byte(file))
		if len(d.Faults) > 0 || len(d.ResourceSets) != 2 || d.ResourceSets[0].Spec.Inputs[0]["config"] != want {
			t.Errorf("%q: %s", text, describe(d))
		}
	}
}

// The parser refuses characters that YAML does not allow without naming a line.
func TestLinesOfBadCharacters(t *testing.T) {
	const before = "# größe\nkind: Other\n---\nkind: ResourceSet\n"
	for name, bad := range map[string]string{
		"NUL": "\x00", "a control character": "\x1b", "DEL": "\x7f", "a C1 control character": "\u009b",
		"a byte that is no UTF-8": "\xff", "a cut character": "\xc3",
	} {
		defs := Parse("bad.yaml", []byte(before+"spec: {a: \""+bad+"\"}\nlast: 1\n"))
		if len(defs.Faults) != 1 || defs.Faults[0].Pos.Line != 5 {
			t.Errorf("%s: want one fault in line 5, got %v", name, defs.Faults)
		}
	}
}
