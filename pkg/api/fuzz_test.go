// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func seeds(f *testing.F) {
	files, err := filepath.Glob("testdata/parse/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds (%v): wrong folder?", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// FuzzParse holds that every fault has a place in the file, that an object with a
// fault is not returned, and that reading twice gives the same.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		first, second := Parse("f.yaml", data), Parse("f.yaml", data)
		if diff := cmp.Diff(describe(first), describe(second)); diff != "" {
			t.Fatalf("not deterministic:\n%s", diff)
		}
		lines := 1
		for _, c := range data {
			if c == '\n' || c == '\r' || c >= 0x80 { // YAML has breaks beyond ASCII, too
				lines++
			}
		}
		for _, fault := range append(first.Faults, first.Warnings...) {
			if fault.Pos.Line < 1 || fault.Pos.Line > lines || fault.Msg == "" {
				t.Errorf("bad position among %d lines: %q", lines, fault.Error())
			}
		}
		for _, rs := range first.ResourceSets {
			if rs.Name == "" || rs.Namespace == "" || rs.Spec.InputStrategy == "" {
				t.Errorf("half an object: %+v", rs)
			}
		}
		for _, p := range first.Providers {
			if _, known := providerTypes()[p.Spec.Type]; !known || p.Spec.Filter.Limit < 1 {
				t.Errorf("half an object: %+v", p)
			}
		}
	})
}

var nonSpecificTag = regexp.MustCompile(`!([^!<\w]|$)`)

// FuzzValuesEqualKubernetes holds that what we read is what a cluster would.
func FuzzValuesEqualKubernetes(f *testing.F) {
	seeds(f)
	for _, s := range []string{"- 012\n- 1_0\n- y\n", "a: &a {b: 1}\nc: {<<: *a, b: 2}\n", "a: >\n  b\n\n  c\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var doc yaml.Node
		if decodeNode(yaml.NewDecoder(bytes.NewReader(data)), &doc) != nil || len(doc.Content) == 0 {
			return
		}
		if nonSpecificTag.Match(data) {
			return // the newer parser does not tell "! 12" from "12"
		}
		want, err := reference(data)
		if err != nil {
			return
		}
		got, faults := ours(data)
		if len(faults) > 0 {
			return // stricter: repeated keys, keys that are the same in JSON
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q\ngot  %#v\nwant %#v", data, got, want)
		}
	})
}
