// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/pkg/api"
)

// slowInputs reads as one YAML document, as all other ways have to.
func slowInputs(t *testing.T, data string) ([]api.Input, bool) {
	docs, err := decodeDocuments([]byte(data))
	if err != nil || len(docs) != 1 {
		return nil, false
	}
	list, ok := docs[0].([]any)
	if !ok {
		return nil, false
	}
	inputs, err := inputsOf(list)
	return inputs, err == nil
}

func TestDecodeInputs(t *testing.T) {
	for data, want := range map[string]string{
		"a: 1":            "holds a map, not one list of input sets",
		"- a: 1\n- text":  "inputs[1] is a text, not a map",
		"[1]":             "inputs[0] is a number, not a map",
		"[{}, null]":      "inputs[1] is empty, not a map",
		"- [":             "line",
		"[{\"a\": .nan}]": "no counterpart in JSON",
		"[]\n---\n[]":     "not one list",
	} {
		_, err := DecodeInputs([]byte(data))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", data, err, want)
		}
	}
	if inputs, err := DecodeInputs(nil); err != nil || len(inputs) != 0 {
		t.Errorf("%v, %v", inputs, err)
	}
}

// A long list is read in pieces, with the same outcome as in one.
func TestDecodeLongLists(t *testing.T) {
	var block, quoted, anchors strings.Builder
	anchors.WriteString("- &base {a: 1}\n")
	var sets []map[string]any
	for i := range 5000 {
		fmt.Fprintf(&block, "- id: \"%d\"\n  sha: %040x\n  n: 1.0\n  list: [a, null]\n  text: |\n    - one\n    two\n", i, i)
		fmt.Fprintf(&quoted, "- id: \"%d\"\n  text: \"a\n\n- id: b\"\n  other: some text to make it long enough\n", i)
		fmt.Fprintf(&anchors, "- <<: *base\n  id: \"%d and more text\"\n", i)
		sets = append(sets, map[string]any{"id": fmt.Sprint(i), "n": i, "f": 1.5, "big": 1e21, "nested": map[string]any{"list": []any{i, nil, true}}})
	}
	asJSON, err := json.Marshal(sets)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"block": block.String(), "quoted": quoted.String(), "anchors": anchors.String(), "json": string(asJSON)} {
		want, ok := slowInputs(t, data)
		got, err := DecodeInputs([]byte(data))
		if !ok || err != nil {
			t.Fatalf("%s: %v, %v", name, ok, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%.2000s", name, diff)
		}
	}
	if _, ok := decodeYAMLChunks([]byte(block.String())); !ok {
		t.Error("the list in block style was not read in pieces")
	}
	if _, ok := decodeJSONInputs(asJSON); !ok {
		t.Error("the list in JSON was not read as JSON")
	}
}

func FuzzDecodeInputs(f *testing.F) {
	for _, s := range oddTexts {
		text, _ := json.Marshal(s)
		f.Add(fmt.Sprintf(`[{"a": %s, "b": {%s: [1, 1.0, 1e3, -0, 0.5]}}]`, text, text))
	}
	f.Add(`[{"a": 12345678901234567890, "b": 1e400, "a": 2}]`)
	f.Add(`[{}] x`)
	f.Fuzz(func(t *testing.T, data string) {
		got, ok := decodeJSONInputs([]byte(data))
		if !ok {
			return
		}
		want, wantOK := slowInputs(t, data)
		if !wantOK {
			return // JSON that this YAML reader does not take, such as tabs
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -yaml +json:\n%s", data, diff)
		}
	})
}
