// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"resourceset.example/renderer/pkg/source"
)

// A file on disk has the limit that one in a repository has.
func TestValidateSizeLimit(t *testing.T) {
	big := "# " + strings.Repeat("x", source.MaxFileSize)
	file := filepath.Join(t.TempDir(), "big.yaml")
	if err := os.WriteFile(file, []byte(big), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{file, "-"} {
		_, err := readPaths(t.Context(), []string{p}, "", strings.NewReader(big))
		if err == nil || !strings.Contains(err.Error(), "more than 5 MiB") {
			t.Errorf("%s: got %v", p, err)
		}
	}
}
