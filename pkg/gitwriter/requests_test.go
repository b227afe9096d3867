// SPDX-License-Identifier: Apache-2.0

package gitwriter_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/pkg/gitwriter"
)

// A server that has just named the head is not asked for it again: an update is a push
// and a look at what came of it.
func TestUpdateAsksForTheHeadOnce(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{"README.md": "hello\n"})
	backend := gittest.HTTPHandler(t, filepath.Dir(repo.Dir), "", "")
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+cmp.Or(r.URL.Query().Get("service"), path.Base(r.URL.Path)))
		mu.Unlock()
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	m := open(t, gitwriter.Config{URL: server.URL + "/" + filepath.Base(repo.Dir)})
	for n := range 3 {
		if n == 2 {
			repo.Commit("main", "theirs", map[string]string{"a": "1"}) // not seen until the server compares
		}
		if _, err := m.Update(t.Context(), commits(write("x", map[string]string{"b": fmt.Sprint(n)}))); err != nil {
			t.Fatal(err)
		}
	}
	const head, push, fetch = "GET git-upload-pack", "POST git-receive-pack", "POST git-upload-pack"
	want := []string{
		head, fetch, "GET git-receive-pack", push, head,
		push, head,
		push, head, fetch, push, head,
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(asked, want) {
		t.Errorf("asked\n%s\nwant\n%s", strings.Join(asked, "\n"), strings.Join(want, "\n"))
	}
	if got := repo.Git("log", "--format=%s", "main"); got != "x\ntheirs\nx\nx\nbase" {
		t.Errorf("log:\n%s", got)
	}
}

// What a server does after it has moved the branch keeps nobody waiting but Close.
func TestUpdateDoesNotWaitForHooks(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"file", "http"} {
		repo := gittest.NewRepo(t)
		repo.Commit("main", "base", map[string]string{"README.md": "hello\n"})
		repo.Hook("post-receive", `while ! test -e go; do sleep 0.01; done; touch done`)
		url := repo.URL()
		if transport == "http" {
			backend := gittest.HTTPHandler(t, filepath.Dir(repo.Dir), "", "")
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				backend.ServeHTTP(prompt{w}, r)
			}))
			t.Cleanup(server.Close)
			url = server.URL + "/" + filepath.Base(repo.Dir)
		}
		m, err := gitwriter.Open(gitwriter.Config{URL: url, Directory: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		result, err := m.Update(t.Context(), commits(write("x", map[string]string{"b": "1"})))
		if err != nil || result.New.String() != repo.Head("main") {
			t.Errorf("%s: %+v, %v", transport, result, err)
		}
		if err := os.WriteFile(filepath.Join(repo.Dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(repo.Dir, "done")); err != nil {
			t.Errorf("%s: the hook was cut off: %v", transport, err)
		}
	}
}

// prompt passes on what it is given at once, as the servers of forges do.
type prompt struct{ http.ResponseWriter }

func (p prompt) Write(data []byte) (int, error) {
	n, err := p.ResponseWriter.Write(data)
	if f, ok := p.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
	return n, err
}
