// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"
)

func FuzzParseInput(f *testing.F) {
	f.Add([]byte("team: red\nversion: \"1.10\"\n"))
	f.Add([]byte(`{"a": [1, {"b": null}]}`))
	f.Add([]byte("a: &x [1]\nb: *x\n"))
	f.Add([]byte("---\n---\na: 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		input, faults := ParseInput("file.yaml", data)
		if (input == nil) != (len(faults) > 0) {
			t.Errorf("input %v with faults %v", input, faults)
		}
		for name, value := range input {
			if value == nil {
				t.Errorf("field %q is null", name)
			}
		}
	})
}
