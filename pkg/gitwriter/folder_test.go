// SPDX-License-Identifier: Apache-2.0

package gitwriter_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/pkg/gitwriter"
)

// A folder that cannot be made is named, with what to do.
func TestFolderInTheWay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := gitwriter.Open(gitwriter.Config{URL: "file:///srv/x.git", Branch: "main", Directory: filepath.Join(file, "target")})
	var folder *gitwriter.FolderError
	if !errors.As(err, &folder) || !strings.Contains(err.Error(), "state folder "+file) || folder.Suggestion() == "" {
		t.Errorf("got %v", err)
	}
}

// Another branch is said to be one; a first fetch that did not end is no damage.
func TestFolderOfAnotherBranch(t *testing.T) {
	repo := gittest.NewRepo(t)
	repo.Commit("main", "First", map[string]string{"a": "b"})
	var log bytes.Buffer
	cfg := gitwriter.Config{
		URL: repo.URL(), Branch: "main", Directory: filepath.Join(t.TempDir(), "mirror"),
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	reopen := func() {
		t.Helper()
		m, err := gitwriter.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	reopen()
	if err := os.MkdirAll(filepath.Join(cfg.Directory, "mirror-000001.git", "objects", "pack"), 0o700); err != nil {
		t.Fatal(err)
	}
	reopen()
	if log.Len() > 0 {
		t.Errorf("logged %s", &log)
	}
	cfg.Branch = "other"
	reopen()
	if !strings.Contains(log.String(), repo.URL()+" main") || !strings.Contains(log.String(), repo.URL()+" other") {
		t.Errorf("logged %s", &log)
	}
}
