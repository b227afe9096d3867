// SPDX-License-Identifier: Apache-2.0

package gitwriter_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/pkg/gitwriter"
)

// TestRule09_DamageFoundWhileReading: a mirror whose head can be read, and not what is
// below it. Whoever reads it finds out, and the next Fetch makes a new one.
func TestRule09_DamageFoundWhileReading(t *testing.T) {
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{"d/e/f": "1\n"})
	cfg := gitwriter.Config{URL: repo.URL(), Directory: t.TempDir()}
	m, err := gitwriter.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	mirrors, err := filepath.Glob(filepath.Join(cfg.Directory, "mirror-*.git"))
	if err != nil || len(mirrors) != 1 {
		t.Fatal(mirrors, err)
	}
	keepOnly(t, mirrors[0], repo.Head("main"), repo.Git("rev-parse", "main^{tree}"))

	if m, err = gitwriter.Open(cfg); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	head, err := m.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if m.Damaged() {
		t.Error("damaged before anything was read")
	}
	if _, err := head.ReadFile("d/e/f"); err == nil || !m.Damaged() {
		t.Errorf("reading what is not there: %v, damaged: %t", err, m.Damaged())
	}
	if head, err = m.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if data, err := head.ReadFile("d/e/f"); err != nil || string(data) != "1\n" || m.Damaged() {
		t.Errorf("after the next fetch: %q, %v, damaged: %t", data, err, m.Damaged())
	}
}

// keepOnly leaves a repository that holds these objects, and no other.
func keepOnly(t *testing.T, dir string, hashes ...string) {
	t.Helper()
	pack := exec.Command("git", "pack-objects", "--quiet", filepath.Join(dir, "pack"))
	pack.Dir, pack.Env = dir, gittest.Env()
	pack.Stdin = strings.NewReader(strings.Join(hashes, "\n") + "\n")
	name, err := pack.Output()
	if err != nil {
		t.Fatal(err)
	}
	packs := filepath.Join(dir, "objects", "pack")
	old, err := filepath.Glob(filepath.Join(packs, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	for _, suffix := range []string{".pack", ".idx"} {
		file := "pack-" + strings.TrimSpace(string(name)) + suffix
		if err := os.Rename(filepath.Join(dir, file), filepath.Join(packs, file)); err != nil {
			t.Fatal(err)
		}
	}
}
