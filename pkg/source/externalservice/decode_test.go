// SPDX-License-Identifier: Apache-2.0

package externalservice

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/pkg/api"
)

func TestDecode(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want []api.Input
	}{
		"empty list":     {`{"inputs": []}`, []api.Input{}},
		"other fields":   {`{"inputs": [], "next": null, "inputsTotal": 0}`, []api.Input{}},
		"byte order":     {"\xef\xbb\xbf" + `{"inputs": []}`, []api.Input{}},
		"id as text":     {`{"inputs": [{"id": "7"}]}`, []api.Input{{"id": "7"}}},
		"id as number":   {`{"inputs": [{"id": 7}]}`, []api.Input{{"id": "7"}}},
		"whole numbers":  {`{"inputs": [{"a": 3, "b": 3.0, "c": 1e3, "d": -0, "e": 9223372036854775807}]}`, []api.Input{{"a": int64(3), "b": int64(3), "c": int64(1000), "d": int64(0), "e": int64(9223372036854775807)}}},
		"fractions":      {`{"inputs": [{"a": 3.5, "b": 2.5e-7, "c": 1e21}]}`, []api.Input{{"a": 3.5, "b": 2.5e-7, "c": 1e21}}},
		"stay texts":     {`{"inputs": [{"a": "6063e25", "b": "0156133", "c": "1.10", "d": "on", "e": "null"}]}`, []api.Input{{"a": "6063e25", "b": "0156133", "c": "1.10", "d": "on", "e": "null"}}}, // FR-21
		"nested":         {`{"inputs": [{"a": {"b": [1, null, true, {"c": "d"}]}}]}`, []api.Input{{"a": map[string]any{"b": []any{int64(1), nil, true, map[string]any{"c": "d"}}}}}},
		"same id nested": {`{"inputs": [{"id": "a", "x": {"id": "b"}}, {"id": "b"}]}`, []api.Input{{"id": "a", "x": map[string]any{"id": "b"}}, {"id": "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := decode([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Nothing but {"inputs": []} is an empty list, and nothing half-right is taken.
func TestRule01_Decode(t *testing.T) {
	for name, test := range map[string]struct{ body, want string }{
		"nothing":          {"", "empty"},
		"blanks":           {" \n", "empty"},
		"null":             {"null", "null where an object"},
		"empty object":     {"{}", `no "inputs"`},
		"list":             {"[]", "an array where an object"},
		"inputs null":      {`{"inputs": null}`, `"inputs" is null`},
		"inputs object":    {`{"inputs": {}}`, `"inputs" is an object`},
		"inputs text":      {`{"inputs": "none"}`, `"inputs" is a text`},
		"other case":       {`{"Inputs": []}`, `no "inputs"`},
		"item null":        {`{"inputs": [{}, null]}`, "inputs[1] is null"},
		"item text":        {`{"inputs": ["a"]}`, "inputs[0] is a text"},
		"text after":       {`{"inputs": []} {"inputs": [{}]}`, "after the end"},
		"rubbish after":    {`{"inputs": []}<html>`, "after the end"},
		"cut off":          {`{"inputs": [{"id": "a"}, {"id": "b`, "cut off"},
		"cut after item":   {`{"inputs": [{"id": "a"}`, "cut off"},
		"html":             {"<html></html>", "not JSON"},
		"twice":            {`{"inputs": [{"a": 1}], "inputs": []}`, "inputs is there twice"},
		"field twice":      {`{"inputs": [{"a": 1, "a": 2}]}`, "inputs[0].a is there twice"},
		"id twice":         {`{"inputs": [{"id": "7"}, {"id": "8"}, {"id": 7}]}`, `inputs[0] and inputs[2] have the same id "7"`},
		"id empty":         {`{"inputs": [{"id": ""}]}`, "inputs[0].id is empty"},
		"id null":          {`{"inputs": [{"id": null}]}`, "inputs[0].id is null"},
		"id boolean":       {`{"inputs": [{"id": true}]}`, "inputs[0].id is a boolean"},
		"id list":          {`{"inputs": [{"id": []}]}`, "inputs[0].id is an array"},
		"too deep":         {`{"inputs": [{"a": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}]}`, "nested deeper"},
		"number too large": {`{"inputs": [{"a": 1e999}]}`, "inputs[0].a: the number"},
		"not UTF-8":        {"{\"inputs\": [{\"a\": \"\xff\"}]}", "not UTF-8"},
		"trailing comma":   {`{"inputs": [{"a": 1},]}`, "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := decode([]byte(test.body))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v; want an error with %q", got, err, test.want)
			}
		})
	}
}

func TestDecodeWarnsOfRounding(t *testing.T) {
	_, warnings, err := decode([]byte(`{"inputs": [{"a": 18446744073709551617, "b": 1e30}]}`))
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "inputs[0].a") {
		t.Errorf("got %q, %v; want one warning, about inputs[0].a", warnings, err)
	}
}

// What decode takes is valid JSON, and means the same when it is written and read again.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		seed, `{"inputs": []}`, `{"inputs": [{"id": 7, "a": [1.5, null]}]}`, `{"inputs": null}`, "null", "<html>", `{"inputs": [{"a": 1e999}]}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		inputs, _, err := decode(body)
		if err != nil {
			return
		}
		if !json.Valid([]byte(strings.TrimPrefix(string(body), "\xef\xbb\xbf"))) {
			t.Fatalf("took %q, which is not JSON", body)
		}
		written, err := json.Marshal(map[string]any{"inputs": inputs})
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := decode(written)
		if err != nil {
			t.Fatalf("took %q, but not %q: %v", body, written, err)
		}
		if diff := cmp.Diff(inputs, again); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	})
}
