// SPDX-License-Identifier: Apache-2.0

package gitwriter_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/pkg/gitwriter"
)

func TestOwnBranchIsRewrittenAndDeleted(t *testing.T) {
	for name, url := range map[string]func(*gittest.Repo) string{
		"file": (*gittest.Repo).URL,
		"http": func(r *gittest.Repo) string { return r.HTTP("", "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			repo := gittest.NewRepo(t)
			repo.Config("receive.denyNonFastForwards", "false")
			repo.Commit("main", "First", map[string]string{"a/one": "1\n", "b": "b\n"})
			m := open(t, gitwriter.Config{URL: url(repo)})
			base, err := m.Fetch(ctx)
			if err != nil {
				t.Fatal(err)
			}
			own, err := m.Own("renderer")
			if err != nil {
				t.Fatal(err)
			}
			first, err := own.Push(ctx, "apps/x", plumbing.ZeroHash, base, []gitwriter.Commit{write("One", map[string]string{"a/two": "2\n"})})
			if err != nil {
				t.Fatal(err)
			}
			main := repo.Commit("main", "Second", map[string]string{"c": "c\n"})
			if base, err = m.Fetch(ctx); err != nil {
				t.Fatal(err)
			}
			second, err := own.Push(ctx, "apps/x", first, base, []gitwriter.Commit{write("Two", map[string]string{"a/three": "3\n"})})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(repo.Files("renderer/apps/x"), " "); got != "a/one a/three b c" {
				t.Errorf("files of the rewritten branch: %s", got)
			}
			if parent := repo.Git("rev-parse", "renderer/apps/x^"); parent != main {
				t.Errorf("it stands on %s, not on the head %s", parent, main)
			}
			list, err := own.List(ctx)
			if err != nil || !maps.Equal(list, map[string]plumbing.Hash{"apps/x": second}) {
				t.Errorf("list: %v, %v", list, err)
			}
			// Who holds an old view changes nothing.
			var moved *gitwriter.MovedError
			if err := own.Delete(ctx, "apps/x", first); !errors.As(err, &moved) {
				t.Errorf("deleting what is no more: %v", err)
			}
			if _, err = own.Push(ctx, "apps/x", first, base, []gitwriter.Commit{write("Three", map[string]string{"a/z": "z\n"})}); !errors.As(err, &moved) {
				t.Errorf("replacing what is no more: %v", err)
			}
			if err := own.Delete(ctx, "apps/x", second); err != nil {
				t.Fatal(err)
			}
			if repo.Head("renderer/apps/x") != "" || repo.Head("main") != main {
				t.Error("the wrong branch was deleted, or none")
			}
		})
	}
}

// The mirrored branch cannot be named through Own, whatever it is asked for, so no
// force push can reach it.
func TestRule06_OwnBranchesAreNeverTheMirroredOne(t *testing.T) {
	repo := gittest.NewRepo(t)
	for _, branch := range []string{"renderer", "renderer/apps/x", "Renderer/apps", "RENDERER"} {
		m := open(t, gitwriter.Config{URL: repo.URL(), Branch: branch})
		var refused *gitwriter.OwnError
		if _, err := m.Own("renderer"); !errors.As(err, &refused) {
			t.Errorf("branch %s: got %v, want an OwnError", branch, err)
		}
	}
	head := repo.Commit("main", "First", map[string]string{"a": "a\n"})
	m := open(t, gitwriter.Config{URL: repo.URL()})
	base, err := m.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{"", "/", "main", "refs/heads", "..", "-x", "a..b", "x/"} {
		if own, err := m.Own(prefix); err == nil {
			t.Errorf("prefix %q gives %v", prefix, own)
		}
	}
	own, err := m.Own("renderer")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"main", "../main", "refs/heads/main", "/main", "", "..", ".", "a/../../main", "x.lock", "a//b", "\nmain", "a b", "HEAD"} {
		_, err := own.Push(t.Context(), name, plumbing.ZeroHash, base, []gitwriter.Commit{write("Evil", map[string]string{"a": "evil\n"})})
		if err != nil && !errors.As(err, new(*gitwriter.OwnError)) {
			t.Errorf("push to %q: %v", name, err)
		}
		if err := own.Delete(t.Context(), name, base.Hash()); err == nil {
			t.Errorf("%q was deleted", name)
		}
		if repo.Head("main") != head {
			t.Fatalf("pushing to %q moved main", name)
		}
	}
	branches := strings.Fields(repo.Git("for-each-ref", "--format=%(refname)", "refs"))
	if slices.ContainsFunc(branches, func(ref string) bool {
		return ref != "refs/heads/main" && !strings.HasPrefix(ref, "refs/heads/renderer/")
	}) {
		t.Errorf("branches outside the prefix: %v", branches)
	}
}

func TestRefusedOwnBranchIsReported(t *testing.T) {
	repo := gittest.NewRepo(t)
	repo.Commit("main", "First", map[string]string{"a": "a\n"})
	repo.Hook("pre-receive", "echo 'no branches here' >&2; exit 1")
	m := open(t, gitwriter.Config{URL: repo.URL()})
	base, err := m.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own, err := m.Own("renderer")
	if err != nil {
		t.Fatal(err)
	}
	_, err = own.Push(t.Context(), "x", plumbing.ZeroHash, base, []gitwriter.Commit{write("One", map[string]string{"a": "b\n"})})
	var refused *gitwriter.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(refused.Text, "no branches here") || refused.Branch != "renderer/x" {
		t.Errorf("got %v", err)
	}
}
