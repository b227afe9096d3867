// SPDX-License-Identifier: Apache-2.0

package gitwriter_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/pkg/gitwriter"
)

// damages are what may happen to a mirror's folder between two runs. Each must end in a
// new mirror, without help and in the same Fetch.
var damages = map[string]func(t *testing.T, dir string){
	"marker cut off": func(t *testing.T, dir string) { overwrite(t, filepath.Join(dir, "mirror.json"), "{") },
	"marker of another repository": func(t *testing.T, dir string) {
		overwrite(t, filepath.Join(dir, "mirror.json"), `{"format":1,"url":"file:///x","branch":"main","generation":1}`)
	},
	"newer format": func(t *testing.T, dir string) {
		overwrite(t, filepath.Join(dir, "mirror.json"), `{"format":99,"generation":1}`)
	},
	"marker gone": func(t *testing.T, dir string) { remove(t, dir, "mirror.json") },
	"killed before the first marker": func(t *testing.T, dir string) {
		remove(t, dir, "mirror*")
		overwrite(t, filepath.Join(dir, "mirror.json.tmp"), "{")
	},
	"generation gone": func(t *testing.T, dir string) { remove(t, dir, "mirror-*.git") },
	"packs gone":      func(t *testing.T, dir string) { remove(t, dir, "mirror-*.git/objects/pack/*") },
	"index gone":      func(t *testing.T, dir string) { remove(t, dir, "mirror-*.git/objects/pack/*.idx") },
	"pack gone":       func(t *testing.T, dir string) { remove(t, dir, "mirror-*.git/objects/pack/*.pack") },
	"pack garbled":    func(t *testing.T, dir string) { garble(t, dir, "mirror-*.git/objects/pack/*.pack") },
	"pack cut off":    func(t *testing.T, dir string) { cut(t, dir, "mirror-*.git/objects/pack/*.pack") },
	"index garbled":   func(t *testing.T, dir string) { garble(t, dir, "mirror-*.git/objects/pack/*.idx") },
	"head gone":       func(t *testing.T, dir string) { remove(t, dir, "mirror-*.git/refs/heads/*") },
	"head garbled":    func(t *testing.T, dir string) { garble(t, dir, "mirror-*.git/refs/heads/*") },
	"shallow gone":    func(t *testing.T, dir string) { remove(t, dir, "mirror-*.git/shallow") },
	"leftovers": func(t *testing.T, dir string) {
		if err := os.Mkdir(filepath.Join(dir, "mirror-000099.git"), 0o700); err != nil {
			t.Fatal(err)
		}
	},
}

func TestRule09_DamagedMirrorIsMadeAnew(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{"a": "1\n", "d/b": "2\n", "d/e/f": strings.Repeat("x", 10_000)})
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cfg := gitwriter.Config{URL: repo.URL(), Directory: dir}
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
			damage(t, dir)
			m = open(t, cfg)
			text := fmt.Sprintf("%s\n", name)
			if _, err := m.Update(t.Context(), commits(write(name, map[string]string{"d/b": text}))); err != nil {
				t.Fatal(err)
			}
			if got := repo.Read("main", "d/b"); got != text {
				t.Errorf("d/b is %q", got)
			}
		})
	}
}

func matches(t *testing.T, dir, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: no files, %v", pattern, err)
	}
	return paths
}

func remove(t *testing.T, dir, pattern string) {
	t.Helper()
	for _, path := range matches(t, dir, pattern) {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

func change(t *testing.T, dir, pattern string, f func([]byte) []byte) {
	t.Helper()
	for _, path := range matches(t, dir, pattern) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		overwrite(t, path, string(f(data)))
	}
}

func garble(t *testing.T, dir, pattern string) {
	t.Helper()
	change(t, dir, pattern, func(data []byte) []byte {
		for i := range data {
			data[i] ^= byte(i) | 1
		}
		return data
	})
}

func cut(t *testing.T, dir, pattern string) {
	t.Helper()
	change(t, dir, pattern, func(data []byte) []byte { return data[:len(data)/3] })
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestForeignFolderIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keep := filepath.Join(dir, "thesis.tex")
	overwrite(t, keep, "years of work")
	_, err := gitwriter.Open(gitwriter.Config{URL: "file:///x", Directory: dir})
	if !errors.Is(err, gitwriter.ErrForeignDirectory) {
		t.Errorf("%v", err)
	}
	if data, err := os.ReadFile(keep); err != nil || string(data) != "years of work" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestSecondMirrorInOneFolder(t *testing.T) {
	t.Parallel()
	cfg := gitwriter.Config{URL: "file:///x", Directory: t.TempDir()}
	first := open(t, cfg)
	if _, err := gitwriter.Open(cfg); !errors.Is(err, gitwriter.ErrLocked) {
		t.Errorf("%v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, cfg)
	if _, err := first.Fetch(t.Context()); !errors.Is(err, gitwriter.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A restart finds the mirror and transfers nothing but the list of branches.
func TestRestartFetchesNothing(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{"a": "1\n"})
	requests := []string{}
	backend := gittest.HTTPHandler(t, filepath.Dir(repo.Dir), "", "")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Method+" "+filepath.Base(r.URL.Path)+r.URL.RawQuery)
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	cfg := gitwriter.Config{URL: server.URL + "/repo.git", Directory: t.TempDir()}
	m := open(t, cfg)
	if _, err := m.Update(t.Context(), commits(write("x", map[string]string{"b": "1"}))); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	requests = nil
	m = open(t, cfg)
	snapshot, err := m.Fetch(t.Context())
	if err != nil || snapshot.Hash().String() != repo.Head("main") {
		t.Fatalf("%v, %v", snapshot, err)
	}
	if got := strings.Join(requests, ", "); got != "GET refsservice=git-upload-pack" {
		t.Errorf("requests: %s", got)
	}
}

// Packs do not pile up: after many pushes there are few, and everything can be read.
func TestPacksAreCombined(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	repo := gittest.NewRepo(t)
	dir := t.TempDir()
	m := open(t, gitwriter.Config{URL: repo.URL(), Directory: dir})
	for n := range 40 {
		if _, err := m.Update(t.Context(), commits(write("x", map[string]string{fmt.Sprintf("d%d/f", n%7): fmt.Sprint(n)}))); err != nil {
			t.Fatal(err)
		}
	}
	packs := matches(t, dir, "mirror-*.git/objects/pack/*.pack")
	if len(packs) > 32 {
		t.Errorf("%d packs", len(packs))
	}
	snapshot, err := m.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := range 7 {
		if data, err := snapshot.ReadFile(fmt.Sprintf("d%d/f", n)); err != nil || len(data) == 0 {
			t.Errorf("d%d: %q, %v", n, data, err)
		}
	}
	if mirrors, _ := filepath.Glob(filepath.Join(dir, "mirror-*.git")); len(mirrors) != 1 {
		t.Errorf("%d generations: %v", len(mirrors), mirrors)
	}
	gittest.Run(t, matches(t, dir, "mirror-*.git")[0], "fsck", "--strict")
}

// FR-100: what is transferred depends neither on the length of the history nor, after
// the first fetch, on the size of the repository.
func TestFR100TransfersOnlyWhatIsNew(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	repo := gittest.NewRepo(t)
	clone := repo.Clone("main")
	files := map[string]string{}
	for n := range 300 {
		files[fmt.Sprintf("gen/%d/f", n)] = strings.Repeat(fmt.Sprint(n), 100)
	}
	clone.Write(files)
	clone.CommitAndPush("many files")
	for n := range 30 {
		clone.Git("commit", "--quiet", "--allow-empty", "-m", fmt.Sprint(n))
	}
	clone.CommitAndPush("last")
	dir := t.TempDir()
	m := open(t, gitwriter.Config{URL: repo.HTTP("", ""), Directory: dir})
	if _, err := m.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	mirror := matches(t, dir, "mirror-*.git")[0]
	if n := gittest.Run(t, mirror, "rev-list", "--count", "mirror"); n != "1" {
		t.Errorf("first fetch brought %s commits", n)
	}
	clone.Write(map[string]string{"gen/7/f": "changed"})
	clone.CommitAndPush("one file")
	if _, err := m.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := matches(t, dir, "mirror-*.git"); len(again) != 1 || again[0] != mirror {
		t.Fatalf("a new mirror was made: %v", again)
	}
	small := 0
	for _, pack := range matches(t, mirror, "objects/pack/*.pack") {
		if objects := strings.Count(gittest.Run(t, mirror, "verify-pack", "-v", pack), "\n"); objects < 10 {
			small++
		}
	}
	if small != 1 {
		t.Errorf("%d small packs", small)
	}
	gittest.Run(t, mirror, "fsck", "--strict")
}

// FR-35: Azure DevOps answers 400 to a fetch without multi_ack.
func TestFR35ServerThatDemandsMultiAck(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{"a": "1\n"})
	backend := gittest.HTTPHandler(t, filepath.Dir(repo.Dir), "", "")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "upload-pack") {
			body := &bytes.Buffer{}
			_, _ = body.ReadFrom(r.Body)
			if first, _, _ := strings.Cut(body.String(), "\n"); !strings.Contains(first, "multi_ack") {
				http.Error(w, "multi_ack is required", http.StatusBadRequest)
				return
			}
			r.Body = http.MaxBytesReader(w, readCloser{body}, 1<<20)
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	var log bytes.Buffer
	warnings := &slog.HandlerOptions{Level: slog.LevelWarn}
	m := open(t, gitwriter.Config{URL: server.URL + "/repo.git", Logger: slog.New(slog.NewTextHandler(&log, warnings))})
	for n := range 2 {
		if _, err := m.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		repo.Commit("main", "theirs", map[string]string{"a": fmt.Sprint(n)})
		if _, err := m.Update(t.Context(), commits(write("x", map[string]string{"b": fmt.Sprint(n)}))); err != nil {
			t.Fatal(err)
		}
	}
	if log.Len() > 0 {
		t.Errorf("fetches fell back to a new mirror: %s", log.String())
	}
}

type readCloser struct{ *bytes.Buffer }

func (readCloser) Close() error { return nil }

// A server that knows neither shallow clones nor anything else optional.
func TestServerWithoutCapabilities(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{"a": "1\n"})
	backend := gittest.HTTPHandler(t, filepath.Dir(repo.Dir), "", "")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			backend.ServeHTTP(w, r)
			return
		}
		recorder := httptest.NewRecorder()
		backend.ServeHTTP(recorder, r)
		w.Header().Set("Content-Type", recorder.Header().Get("Content-Type"))
		_, _ = w.Write(withoutCapabilities(recorder.Body.Bytes()))
	}))
	t.Cleanup(server.Close)
	m := open(t, gitwriter.Config{URL: server.URL + "/repo.git"})
	for n := range 3 {
		repo.Commit("main", "theirs", map[string]string{"a": fmt.Sprint(n)})
		if _, err := m.Update(t.Context(), commits(write("x", map[string]string{"b": fmt.Sprint(n)}))); err != nil {
			t.Fatal(err)
		}
	}
}

// withoutCapabilities cuts the list that follows a NUL on the first line of branches.
func withoutCapabilities(list []byte) []byte {
	nul := bytes.IndexByte(list, 0)
	end := nul + bytes.IndexByte(list[nul:], '\n')
	start := bytes.LastIndexByte(list[:nul], '\n') + 1
	if bytes.HasPrefix(list[start:], []byte("0000")) {
		start += 4
	}
	line := string(list[start+4:nul]) + "\x00"
	return []byte(string(list[:start]) + fmt.Sprintf("%04x", len(line)+5) + line + string(list[end:]))
}

func TestSHA256RepositoryIsAClearError(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sha256.git")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := gittest.Try(dir, "init", "--bare", "--object-format=sha256", "."); err != nil {
		t.Skipf("this git makes no SHA-256 repositories: %s", out)
	}
	gittest.Run(t, dir, "config", "http.receivepack", "true")
	for _, url := range []string{"file://" + dir, gittest.HTTPServer(t, filepath.Dir(dir), "", "") + "/sha256.git"} {
		// Of an empty repository some versions of git say it only when asked to push.
		_, err := open(t, gitwriter.Config{URL: url}).Update(t.Context(), commits(write("x", map[string]string{"a": "1"})))
		if !errors.Is(err, gitwriter.ErrSHA256) {
			t.Errorf("empty, %s: %v", url, err)
		}
	}
	tree := gittest.Run(t, dir, "hash-object", "-t", "tree", "-w", os.DevNull)
	gittest.Run(t, dir, "update-ref", "refs/heads/main", gittest.Run(t, dir, "commit-tree", "-m", "x", tree))
	if _, err := open(t, gitwriter.Config{URL: "file://" + dir}).Fetch(t.Context()); !errors.Is(err, gitwriter.ErrSHA256) {
		t.Errorf("with a commit: %v", err)
	}
}
