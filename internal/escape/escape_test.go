// SPDX-License-Identifier: Apache-2.0

package escape

import (
	"slices"
	"testing"
)

func TestForms(t *testing.T) {
	for text, want := range map[string][]string{
		"S3cr+t/p@ss word%&=xyz": {
			"S3cr%2Bt%2Fp%40ss%20word%25%26%3Dxyz", "S3cr%2Bt%2Fp%40ss+word%25%26%3Dxyz", "S3cr%2Bt/p%40ss%20word%25%26%3Dxyz",
			"S3cr%2bt%2fp%40ss%20word%25%26%3dxyz", "S3cr+t/p@ss word%&amp;=xyz", `S3cr+t/p@ss word%\u0026=xyz`,
			"533363722b742f7040737320776f726425263d78797a",
		},
		"Ünïcode": {`\u00dcn\u00efcode`, "%C3%9Cn%C3%AFcode", "%c3%9cn%c3%afcode", "Ünïcode"},
		"abc":     {"abc"},
	} {
		forms := Forms(text)
		for _, form := range want {
			if !slices.Contains(forms, form) {
				t.Errorf("%q is not among the forms of %q: %q", form, text, forms)
			}
		}
		if len(slices.Compact(slices.Clone(forms))) != len(forms) || !slices.Contains(forms, text) {
			t.Errorf("%q", forms)
		}
	}
}
