// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

// reference reads YAML as a Kubernetes API server does: to JSON, and whole
// numbers to int64.
func reference(data []byte) (any, error) {
	text, err := sigsyaml.YAMLToJSON(data)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return numbers(v), nil
}

func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

// ours reads one document with the decoder.
func ours(data []byte) (any, []*Fault) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, []*Fault{{Msg: err.Error()}}
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	d := &decoder{lines: map[string]int{}, budget: len(data) + aliasAllowance}
	return d.value(doc.Content[0]), d.faults
}

func TestScalarsEqualKubernetes(t *testing.T) {
	scalars := strings.Fields(`
		y Y yes Yes YES yEs n N no No NO on On ON off Off OFF true True TRUE tRue false False FALSE
		~ null Null NULL nULL nil none t f o
		0 -0 +0 00 7 -42 +42 012 -012 0o17 -0o17 0x1F 0X1f -0x1f 0b101 -0b101 0B1 0b2 1_000 1__0 _1 1_ 08 09 0_8
		9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616
		3.0 -0.0 0.5 .5 -.5 +.5 5. 1.2.3 1e3 1E3 1e+3 1e-7 1e20 1e21 1e22 1e400 -1e400 4611686018427387904.0 9007199254740993.0
		9223372036854775807.0 123456789.5 1_000.5 0x1p-2 0x.8p1 .1_0 1e 1e+ e1 .e1 . .. - -- + +- -.
		2024-05-01 2024-05-01T10:00:00Z 12:30:45 1:30 190:20:30 1.2.3 6063e25 0156133 1.10 infinity inf nan
		<< = <<a a<<`)
	for _, s := range scalars {
		for _, form := range []string{"%s", "'%s'", `"%s"`, "!!str %s", "!!int %s", "!!float %s", "!!bool %s", "!!null %s", "!custom %s"} {
			text := fmt.Sprintf("- "+form, s)
			want, err := reference([]byte(text))
			got, faults := ours([]byte(text))
			switch {
			case err != nil && len(faults) == 0:
				t.Errorf("%s: read as %#v, but Kubernetes says %v", text, got, err)
			case err == nil && len(faults) > 0:
				t.Errorf("%s: %v, but Kubernetes reads %#v", text, faults[0], want)
			case err == nil && !reflect.DeepEqual(got, want):
				t.Errorf("%s: got %#v, want %#v", text, got, want)
			}
		}
	}
}

func TestDocumentsEqualKubernetes(t *testing.T) {
	for _, text := range []string{
		"a: 1\nyes: 2\n3: x\n1.5: y\n30.0: z\n012: o\n",
		"base: &b {x: 1, y: [1, 2]}\nc:\n  <<: *b\n  x: 2\n",
		"base: &b {x: 1}\nc:\n  x: 2\n  <<: *b\n",
		"b1: &a {x: 1, z: 1}\nb2: &b {x: 2}\nc:\n  <<: [*a, *b]\n",
		"c:\n  '<<': text\n",
		"a: |\n  one\n  ---\n  two\n",
		"a: >-\n  one\n  two\n\n  three\n",
		"a: \"x\\ty\\u00e9\"\n",
		"a:\r\n  - b\r\n  - |\r\n    text\r\n    more\r\n",
		"a: !!binary aGVsbG8=\n",
		"- track:\t9\n",
		"a: # nothing\nb:\n",
		"? a\n: b\n",
		"{a: [1, {b: ~}], c: ''}",
	} {
		want, err := reference([]byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		got, faults := ours([]byte(text))
		if len(faults) > 0 {
			t.Errorf("%q: %v", text, faults[0])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-kubernetes +ours):\n%s", text, diff)
		}
	}
}
