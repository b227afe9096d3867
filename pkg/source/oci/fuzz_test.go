// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/json"
	"strings"
	"testing"

	"resourceset.example/renderer/pkg/source/provider"
)

// What ACR's token exchange answers is a token, or an error that repeats none of it.
func FuzzRefreshToken(f *testing.F) {
	for _, body := range []string{
		`{"refresh_token":"eyJhbGciOiJSUzI1NiJ9.e30.c2ln"}`, `{"refresh_token":""}`, `{"refresh_token":null}`, `{"refresh_token":["s3cr3t"]}`,
		`{"access_token":"s3cr3t"}`, `{"refresh_token":"a\nb: c"}`, `{"errors":[{"code":"UNAUTHORIZED","message":"s3cr3t"}]}`, "<html>s3cr3t", "null", "",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		token, err := decodeRefreshToken(body)
		if err != nil {
			if token != "" || provider.ReasonOf(err) != provider.Implausible || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%q: got %q, %v", body, token, err)
			}
			return
		}
		var answer map[string]any
		if json.Unmarshal(body, &answer) != nil || token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%q: took %q for a token", body, token)
		}
	})
}
