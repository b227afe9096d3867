// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSeedsAreVerbatim compares testdata/seeds with the two documents that the
// product began with, where they are at hand: every manifest in them is one of
// ours, and ours hold nothing else.
func TestSeedsAreVerbatim(t *testing.T) {
	for document, folder := range map[string]string{
		"preview-environments.txt":    "preview-environments",
		"external-service-inputs.txt": "external-service",
	} {
		t.Run(folder, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../../../shared/seeds", document))
			if err != nil {
				t.Skipf("the original is not here to compare with: %v", err)
			}
			files, err := filepath.Glob(filepath.Join("testdata/seeds", folder, "*"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no files (%v): wrong folder?", err)
			}
			rest := string(text) + "\n"
			for _, file := range files {
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				before, after, found := strings.Cut(rest, "\n"+string(data))
				if !found {
					t.Errorf("%s is not in the document word for word", file)
					continue
				}
				rest = before + "\n" + after
			}
			for line := range strings.Lines(rest) {
				if strings.HasPrefix(line, "apiVersion:") {
					t.Errorf("a manifest of the document is not among our files: %s", line)
				}
			}
		})
	}
}
