// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v2"
)

// TestConformance builds every case of the conformance corpus that is no quirk:
// inputs with the objects, or the words of the failure, that were observed from the
// operator. The corpus is not part of this repository; $CONFORMANCE_DIR names it.
func TestConformance(t *testing.T) {
	dir := os.Getenv("CONFORMANCE_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "conformance")
	}
	cases, _ := filepath.Glob(filepath.Join(dir, "cases", "*", "rset.yaml"))
	if len(cases) == 0 {
		t.Skipf("no conformance corpus in %s; set CONFORMANCE_DIR", dir)
	}
	for _, file := range cases {
		dir := filepath.Dir(file)
		if exists(filepath.Join(dir, "quirk")) {
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) { conformanceCase(t, dir) })
	}
}

func conformanceCase(t *testing.T, dir string) {
	args := []string{"build", "-f", filepath.Join(dir, "rset.yaml")}
	if file := filepath.Join(dir, "inputs.yaml"); exists(file) {
		args = append(args, "--inputs-from", file)
	}
	if file := filepath.Join(dir, "rsip.yaml"); exists(file) {
		args = append(args, "--inputs-from-provider", file)
	}
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), args, strings.NewReader(""), &stdout, &stderr)
	words, err := os.ReadFile(filepath.Join(dir, "expected-error"))
	if err == nil {
		if code == exitOK || stdout.Len() > 0 {
			t.Errorf("exit code %d, standard output %q", code, stdout.String())
		}
		for _, word := range strings.Fields(string(words)) {
			if !strings.Contains(strings.ToLower(stderr.String()), word) {
				t.Errorf("the message lacks %q: %s", word, stderr.String())
			}
		}
		return
	}
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	want, err := os.ReadFile(filepath.Join(dir, "expected.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(readStream(t, want), readStream(t, stdout.Bytes())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if headings(want) != headings(stdout.Bytes()) {
		t.Errorf("steps %q, want %q", headings(stdout.Bytes()), headings(want))
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// readStream is the documents of a YAML stream as values, types and order included.
func readStream(t *testing.T, data []byte) []any {
	var docs []any
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc any
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if doc != nil {
			docs = append(docs, doc)
		}
	}
}

func headings(data []byte) string {
	var lines []string
	for _, line := range strings.Split(string(data), "\n") {
		if strings.HasPrefix(line, "# step: ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
