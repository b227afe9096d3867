// SPDX-License-Identifier: Apache-2.0

package gitwriter_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/pkg/gitwriter"
)

var author = gitwriter.Signature{Name: "renderer", Email: "renderer@example.com"}

func open(t testing.TB, cfg gitwriter.Config) *gitwriter.Mirror {
	t.Helper()
	if cfg.Directory == "" {
		cfg.Directory = filepath.Join(t.TempDir(), "mirror")
	}
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	}
	m, err := gitwriter.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return m
}

// commits is a build function that asks for the same commits on every base.
func commits(list ...gitwriter.Commit) func(context.Context, *gitwriter.Snapshot) ([]gitwriter.Commit, error) {
	return func(context.Context, *gitwriter.Snapshot) ([]gitwriter.Commit, error) { return list, nil }
}

func write(message string, files map[string]string) gitwriter.Commit {
	c := gitwriter.Commit{Message: message, Author: author, Write: map[string][]byte{}}
	for path, content := range files {
		c.Write[path] = []byte(content)
	}
	return c
}

func TestUpdateCreatesBranchInEmptyRepository(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	m := open(t, gitwriter.Config{URL: repo.URL()})
	ctx := t.Context()

	empty, err := m.Fetch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !empty.Hash().IsZero() || empty.Tree() != nil {
		t.Errorf("an empty repository has the head %s", empty.Hash())
	}
	if _, err := empty.ReadFile("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading from an empty snapshot: %v", err)
	}
	result, err := m.Update(ctx, commits(
		write("first", map[string]string{"gen/a/x.yaml": "x: 1\n", "gen/b.yaml": "b: 1\n"}),
		write("second", map[string]string{"gen/a/x.yaml": "x: 2\n"}),
		write("nothing", map[string]string{"gen/a/x.yaml": "x: 2\n"}),
	))
	if err != nil {
		t.Fatal(err)
	}
	if got := repo.Head("main"); got != result.New.String() || len(result.Commits) != 2 {
		t.Errorf("head is %s, result %+v", got, result)
	}
	want := "second\nfirst"
	if got := repo.Git("log", "--format=%s", "main"); got != want {
		t.Errorf("log:\n%s", got)
	}
	if diff := cmp.Diff([]string{"gen/a/x.yaml", "gen/b.yaml"}, repo.Files("main")); diff != "" {
		t.Error(diff)
	}
	snapshot, err := m.Fetch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	data, err := snapshot.ReadFile("gen/a/x.yaml")
	if err != nil || string(data) != "x: 2\n" {
		t.Errorf("read back %q, %v", data, err)
	}
	again, err := m.Update(ctx, commits(write("again", map[string]string{"gen/b.yaml": "b: 1\n"})))
	if err != nil || again.New != result.New || again.Attempts != 0 {
		t.Errorf("no-op: %+v, %v", again, err)
	}
	last, err := m.Update(ctx, commits(gitwriter.Commit{Message: "rm", Author: author, Delete: []string{"gen/a/x.yaml"}}))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(repo.Files("main"), " "); got != "gen/b.yaml" || repo.Head("main") != last.New.String() {
		t.Errorf("after the removal: %s", got)
	}
}

func TestUpdateAgainstCompetingPusher(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{"README.md": "hello\n", "other/x": "x\n"})
	m := open(t, gitwriter.Config{URL: repo.URL()})
	calls := 0
	result, err := m.Update(t.Context(), func(_ context.Context, base *gitwriter.Snapshot) ([]gitwriter.Commit, error) {
		calls++
		if calls <= 2 {
			repo.Commit("main", "theirs", map[string]string{"other/x": strings.Repeat("y", calls)})
		}
		return []gitwriter.Commit{write("ours", map[string]string{"gen/a": "1\n"})}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if calls != 3 || result.New.String() != repo.Head("main") {
		t.Errorf("%d calls, %+v", calls, result)
	}
	if got := repo.Git("log", "--format=%s", "main"); got != "ours\ntheirs\ntheirs\nbase" {
		t.Errorf("log:\n%s", got)
	}
	if got := repo.Read("main", "other/x"); got != "yy" {
		t.Errorf("their change: %q", got)
	}
}
