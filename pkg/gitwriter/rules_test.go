// SPDX-License-Identifier: Apache-2.0

package gitwriter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/pkg/gitwriter"
)

// FR-30: the branch is moved while the server has our push in hand.
func TestRule06_BranchMovedDuringPush_FR30(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{"README.md": "hello\n"})
	repo.Hook("update", `
test -e moved && exit 0
touch moved
new=$(git -c user.name=x -c user.email=x@example.com commit-tree -p "$2" -m theirs "$2^{tree}")
git update-ref refs/heads/main "$new"`)
	m := open(t, gitwriter.Config{URL: repo.HTTP("", "")})
	result, err := m.Update(t.Context(), commits(write("ours", map[string]string{"gen/a": "1\n"})))
	if err != nil {
		t.Fatal(err)
	}
	if got := repo.Git("log", "--format=%s", "main"); got != "ours\ntheirs\nbase" || result.Attempts != 2 {
		t.Errorf("%+v, log:\n%s", result, got)
	}
}

// FR-31: the server takes the pack and refuses the branch.
func TestRule06_RefusedPushIsReported_FR31(t *testing.T) {
	t.Parallel()
	for _, hook := range []string{"pre-receive", "update"} {
		repo := gittest.NewRepo(t)
		base := repo.Commit("main", "base", map[string]string{"README.md": "hello\n"})
		repo.Hook(hook, `echo "push declined due to repository rule violations (s3cr3t-token)" >&2; exit 1`)
		for name, cfg := range transports(t, repo) {
			cfg.Auth.Passphrase = "s3cr3t-token" // any secret that the server might repeat
			m := open(t, cfg)
			_, err := m.Update(t.Context(), commits(write("ours", map[string]string{"gen/a": "1\n"})))
			var refused *gitwriter.RefusedError
			if !errors.As(err, &refused) || !strings.Contains(refused.Text, "push declined due to repository rule violations (***)") {
				t.Errorf("%s over %s: %T %v", hook, name, err, err)
			}
		}
		if got := repo.Head("main"); got != base {
			t.Errorf("%s: head moved to %s", hook, got)
		}
	}
}

// FR-31, the other way round: a server that says ok and does nothing is not believed.
func TestRule06_SuccessIsReadBack(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{"README.md": "hello\n"})
	backend := gittest.HTTPHandler(t, filepath.Dir(repo.Dir), "", "")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "receive-pack") {
			w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
			report := "000eunpack ok\n0017ok refs/heads/main\n0000"
			fmt.Fprintf(w, "%04x\x01%s0000", len(report)+5, report)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	_, err := open(t, gitwriter.Config{URL: server.URL + "/repo.git"}).Update(t.Context(), commits(write("x", map[string]string{"a": "1"})))
	var refused *gitwriter.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "reported success, but the branch has not moved") {
		t.Errorf("%v", err)
	}
}

// The connection is lost after the server has the push: the outcome is found out, and
// nothing is pushed twice.
func TestRule06_ConnectionLostMidPush(t *testing.T) {
	t.Parallel()
	for _, reached := range []bool{true, false} {
		repo := gittest.NewRepo(t)
		base := repo.Commit("main", "base", map[string]string{"README.md": "hello\n"})
		backend := gittest.HTTPHandler(t, filepath.Dir(repo.Dir), "", "")
		var pushes atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "receive-pack") {
				backend.ServeHTTP(w, r)
				return
			}
			pushes.Add(1)
			if reached {
				backend.ServeHTTP(httptest.NewRecorder(), r)
			}
			panic(http.ErrAbortHandler) // cuts the connection
		}))
		t.Cleanup(server.Close)
		m := open(t, gitwriter.Config{URL: server.URL + "/repo.git"})
		result, err := m.Update(t.Context(), commits(write("ours", map[string]string{"gen/a": "1\n"})))
		if pushes.Load() != 1 {
			t.Errorf("reached %t: %d pushes", reached, pushes.Load())
		}
		if reached && (err != nil || result.New.String() != repo.Head("main") || result.New.String() == base) {
			t.Errorf("it landed, but: %+v, %v", result, err)
		}
		if !reached && (err == nil || repo.Head("main") != base) {
			t.Errorf("it did not land, but: %+v, %v", result, err)
		}
	}
}

// Somebody pushes on top of ours before we read the branch back.
func TestRule06_PushedOnTopAtOnce(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{"README.md": "hello\n"})
	// Before the server says that all is well, so that we cannot be faster.
	repo.Hook("reference-transaction", `
test "$1" = committed && ! test -e moved || exit 0
touch moved
read old new ref
top=$(git -c user.name=x -c user.email=x@example.com commit-tree -p "$new" -m "on top" "$new^{tree}")
git update-ref refs/heads/main "$top"`)
	m := open(t, gitwriter.Config{URL: repo.URL()})
	result, err := m.Update(t.Context(), commits(write("ours", map[string]string{"gen/a": "1\n"})))
	if err != nil || result.Attempts != 1 || len(result.Commits) != 1 {
		t.Fatalf("%+v, %v", result, err)
	}
	if got := repo.Git("log", "--format=%s", "main"); got != "on top\nours\nbase" {
		t.Errorf("log:\n%s", got)
	}
	snapshot, err := m.Fetch(t.Context())
	if err != nil || snapshot.Hash().String() != repo.Head("main") {
		t.Errorf("%v, %v", snapshot, err)
	}
}

func TestRule06_GivesUpAfterManyRaces(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{"n": "0"})
	m := open(t, gitwriter.Config{URL: repo.URL(), MaxAttempts: 3})
	clone := repo.Clone("main")
	n := 0
	_, err := m.Update(t.Context(), func(context.Context, *gitwriter.Snapshot) ([]gitwriter.Commit, error) {
		n++
		clone.Write(map[string]string{"n": fmt.Sprint(n)})
		clone.CommitAndPush("theirs")
		return []gitwriter.Commit{write("ours", map[string]string{"gen/a": "1\n"})}, nil
	})
	var race *gitwriter.RaceError
	if !errors.As(err, &race) || race.Attempts != 3 {
		t.Errorf("%v", err)
	}
}

// Issue 3, item 1, in small: every writer's every change lands once.
func TestRule10_ManyWritersOnOneBranch(t *testing.T) {
	t.Parallel()
	const writers, changes = 3, 3 // BenchmarkContention has more
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{"README.md": "hello\n"})
	url := repo.HTTP("", "")
	var wg sync.WaitGroup
	for w := range writers {
		m := open(t, gitwriter.Config{URL: url})
		wg.Go(func() {
			for n := range changes {
				path, text := fmt.Sprintf("gen/%d/file", w), fmt.Sprintf("%d\n", n)
				if _, err := m.Update(t.Context(), commits(write(path+" "+text, map[string]string{path: text}))); err != nil {
					t.Errorf("writer %d, change %d: %v", w, n, err)
				}
			}
		})
	}
	wg.Wait()
	log := strings.Split(repo.Git("log", "--format=%s", "main"), "\n")
	seen := map[string]int{}
	for _, subject := range log {
		seen[subject]++
	}
	if len(log) != writers*changes+1 || len(seen) != len(log) {
		t.Errorf("%d commits, %d different:\n%s", len(log), len(seen), strings.Join(log, "\n"))
	}
	if merges := repo.Git("rev-list", "--merges", "main"); merges != "" {
		t.Errorf("merges: %s", merges)
	}
}

// FR-32: nothing to change, nothing pushed, however often.
func TestFR32NoChangeNoCommit(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	m := open(t, gitwriter.Config{URL: repo.URL()})
	files := map[string]string{"gen/a/b.yaml": "b: 1\n", "gen/c.yaml": "c: 1\n"}
	if _, err := m.Update(t.Context(), commits(write("first", files))); err != nil {
		t.Fatal(err)
	}
	head := repo.Head("main")
	for range 100 {
		result, err := m.Update(t.Context(), commits(write("again", files), gitwriter.Commit{Message: "rm", Author: author, Delete: []string{"gen/none", "x/y"}}))
		if err != nil || len(result.Commits) != 0 || result.New != result.Old {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	if got := repo.Head("main"); got != head {
		t.Errorf("head moved to %s", got)
	}
}

// FR-33: what others have beside and inside our folders stays, in every bit.
func TestRule07_ForeignFilesStay_FR33(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	clone := repo.Clone("main")
	clone.Write(map[string]string{
		"README.md": "hello\n", ".github/ci.yml": "on: push\n", "gen.yaml": "x\n", "gen-x/y": "y\n",
		"gen/handmade.yaml": "mine\n", "gen/run.sh": "#!/bin/sh\n", "gen/old/a.yaml": "a: 1\n",
	})
	clone.Git("add", "-A")
	clone.Git("update-index", "--chmod=+x", "gen/run.sh")
	clone.CommitAndPush("base")
	before := strings.Split(repo.Git("ls-tree", "-r", "main"), "\n")
	m := open(t, gitwriter.Config{URL: repo.URL()})
	_, err := m.Update(t.Context(), commits(gitwriter.Commit{
		Message: "ours", Author: author, Delete: []string{"gen/old/a.yaml"},
		Write: map[string][]byte{"gen/new/b.yaml": []byte("b: 1\n")},
	}))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, line := range before {
		if !strings.HasSuffix(line, "gen/old/a.yaml") {
			want = append(want, line)
		}
	}
	var got []string
	for _, line := range strings.Split(repo.Git("ls-tree", "-r", "main"), "\n") {
		if !strings.HasSuffix(line, "gen/new/b.yaml") {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// FR-34: the remote was reset to an older commit, by force.
func TestFR34RewrittenHistory(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Config("receive.denyNonFastForwards", "false")
	c1 := repo.Commit("main", "c1", map[string]string{"a": "1"})
	repo.Commit("main", "c2", map[string]string{"a": "2", "b": "2"})
	repo.Commit("main", "c3", map[string]string{"a": "3", "c": "3"})
	for name, url := range map[string]string{"file": repo.URL(), "http": repo.HTTP("", "")} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			m := open(t, gitwriter.Config{URL: url, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if _, err := m.Fetch(t.Context()); err != nil {
				t.Fatal(err)
			}
			old := repo.Head("main")
			repo.Git("update-ref", "refs/heads/main", c1)
			defer repo.Git("update-ref", "refs/heads/main", old)
			result, err := m.Update(t.Context(), commits(write("ours", map[string]string{"gen/x": "1"})))
			if err != nil || result.Old.String() != c1 {
				t.Fatalf("%+v, %v", result, err)
			}
			if got := strings.Join(repo.Files("main"), " "); got != "a gen/x" {
				t.Errorf("files: %s", got)
			}
			if !strings.Contains(log.String(), "history was rewritten") {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

// FR-36: line-ending settings of the repository or the environment change nothing.
func TestFR36LineEndings(t *testing.T) {
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "core.autocrlf")
	t.Setenv("GIT_CONFIG_VALUE_0", "true")
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{".gitattributes": "* text=auto eol=crlf\n"})
	m := open(t, gitwriter.Config{URL: repo.URL()})
	change := write("ours", map[string]string{"gen/a.yaml": "a: 1\nb: 2\n"})
	for range 2 {
		if _, err := m.Update(t.Context(), commits(change)); err != nil {
			t.Fatal(err)
		}
	}
	if got := repo.Read("main", "gen/a.yaml"); got != "a: 1\nb: 2\n" {
		t.Errorf("blob: %q", got)
	}
	if n := repo.Git("rev-list", "--count", "main"); n != "2" {
		t.Errorf("%s commits", n)
	}
}

// Rule 12: nothing is written through a link, and no link is read through.
func TestRule12_LinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	clone := repo.Clone("main")
	clone.Write(map[string]string{"real/a": "1\n", "link": "real", "gen/file": "x\n", "gen/link": "../real/a"})
	clone.Git("add", "-A")
	for _, name := range []string{"link", "gen/link"} {
		hash := clone.Git("hash-object", "-w", name)
		clone.Git("update-index", "--cacheinfo", "120000,"+hash+","+name)
	}
	clone.Git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",sub")
	clone.Git("commit", "--quiet", "-m", "base")
	clone.Git("push", "--quiet", "origin", "HEAD:main")
	base := repo.Head("main")
	m := open(t, gitwriter.Config{URL: repo.URL()})
	for path, kind := range map[string]gitwriter.Kind{
		"link/a": gitwriter.KindSymlink, "link/x/y": gitwriter.KindSymlink, "sub/x": gitwriter.KindSubmodule,
		"gen/file/x": gitwriter.KindFile, "real": gitwriter.KindDirectory, "sub": gitwriter.KindSubmodule,
	} {
		_, err := m.Update(t.Context(), commits(write("x", map[string]string{path: "1"})))
		var barred *gitwriter.PathError
		if !errors.As(err, &barred) || barred.Kind != kind || barred.Suggestion() == "" {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := repo.Head("main"); got != base {
		t.Error("something was pushed")
	}
	snapshot, err := m.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"link", "link/a", "gen/link", "sub", "sub/x", "real", ""} {
		if _, err := snapshot.ReadFile(path); err == nil {
			t.Errorf("%q was read", path)
		}
	}
	for path, kind := range map[string]gitwriter.Kind{"link": gitwriter.KindSymlink, "sub": gitwriter.KindSubmodule, "real": gitwriter.KindDirectory} {
		if e, err := snapshot.Entry(path); err != nil || e.Kind != kind {
			t.Errorf("%s: %v, %v", path, e, err)
		}
	}
	// A link that stands where a file of ours should be is replaced, not followed.
	if _, err := m.Update(t.Context(), commits(write("x", map[string]string{"gen/link": "now a file"}))); err != nil {
		t.Fatal(err)
	}
	if got := repo.Read("main", "real/a"); got != "1\n" {
		t.Errorf("the link's target became %q", got)
	}
}

func TestBadPathsAreRefused(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	m := open(t, gitwriter.Config{URL: repo.URL()})
	for _, path := range []string{
		"", "/a", "a/", "a//b", ".", "..", "a/../b", ".git", "a/.GIT/hooks/x", "git~1", "a/GIT~1", ".git ", ".git.", ".git::$INDEX_ALLOCATION",
		".g\u200cit", "a\x00b", `a\b`, strings.Repeat("x", 256), "\xff", strings.Repeat("x/", 3000) + "x",
	} {
		for _, c := range []gitwriter.Commit{write("x", map[string]string{path: "1"}), {Message: "x", Author: author, Delete: []string{path}}} {
			_, err := m.Update(t.Context(), commits(c))
			var bad *gitwriter.PathError
			if !errors.As(err, &bad) {
				t.Errorf("%q: %v", path, err)
			}
		}
	}
	if repo.Head("main") != "" {
		t.Error("something was pushed")
	}
}

// FR-38: the token expired between fetch and push.
func TestFR38RejectedTokenIsAskedForOnce(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{"a": "1"})
	backend := gittest.HTTPHandler(t, filepath.Dir(repo.Dir), "", "")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		write := strings.Contains(r.URL.String(), "receive-pack")
		if token := r.Header.Get("Authorization"); token != "Bearer two" && (write || token != "Bearer one") {
			http.Error(w, "expired", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	asked, token := 0, "one"
	m := open(t, gitwriter.Config{URL: server.URL + "/repo.git", Credentials: func(_ context.Context, rejected bool) (gitwriter.Auth, error) {
		if rejected {
			asked++
			token = "two"
		}
		return gitwriter.Auth{BearerToken: token}, nil
	}})
	if _, err := m.Update(t.Context(), commits(write("x", map[string]string{"b": "1"}))); err != nil {
		t.Fatal(err)
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}
