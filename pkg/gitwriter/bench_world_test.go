// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/internal/gittest"
)

const (
	filesPerFolder = 300 // of one ResourceSet, two of them beside those of the input sets
	foldersPerName = 10  // ResourceSets of one namespace
	perSet         = 2   // manifests of an input set: a HelmRelease and its source
	perLargeSet    = 10  // a small application
)

var benchAuthor = Signature{Name: "renderer", Email: "renderer@example.com"}

func benchMirror(b *testing.B, url string) *Mirror {
	b.Helper()
	m, err := Open(Config{URL: url, Directory: filepath.Join(b.TempDir(), "mirror")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { m.Close() })
	return m
}

func mustUpdate(b *testing.B, m *Mirror, c Commit) Result {
	result, err := m.Update(b.Context(), func(context.Context, *Snapshot) ([]Commit, error) { return []Commit{c}, nil })
	if err != nil || len(result.Commits) != 1 {
		b.Errorf("%+v, %v", result, err)
	}
	return result
}

// benchChange is a new sha in one input set.
func benchChange(n int) Commit {
	dir := "generated/ns-0/rset-1/"
	c := Commit{Message: "ns-0/rset-1: update 7", Author: benchAuthor, Write: map[string][]byte{
		dir + "kustomization.yaml": []byte(benchFile(n, "kustomization", 200)),
		dir + "inputs.lock":        []byte(benchFile(n, "inputs", 400)),
	}}
	for _, name := range []string{"release.yaml", "source.yaml"} {
		c.Write[dir+"set-7/"+name] = []byte(benchFile(n, name, 12))
	}
	return c
}

func benchFile(n int, name string, lines int) string {
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "  - key-%d: %s value %d of revision %x\n", i, name, i*7, n*31)
	}
	return text.String()
}

// newLargeRepo makes a repository as it is after rendering for many input sets, each of
// which has that many manifests.
func newLargeRepo(b *testing.B, files, perSet int) *gittest.Repo {
	b.Helper()
	repo := gittest.NewRepo(b)
	c := Commit{Message: "base", Author: benchAuthor, Write: make(map[string][]byte, files)}
	for folder := range files / filesPerFolder {
		dir := fmt.Sprintf("generated/ns-%d/rset-%d", folder/foldersPerName, folder%foldersPerName)
		c.Write[dir+"/kustomization.yaml"] = []byte(benchFile(folder, "kustomization", 200))
		c.Write[dir+"/inputs.lock"] = []byte(benchFile(folder, "inputs", 400))
		for n := range filesPerFolder - 2 {
			set, name := n/perSet, [2]string{"release.yaml", "source.yaml"}[n%2]
			if n%perSet > 1 {
				name = fmt.Sprintf("object-%d.yaml", n%perSet)
			}
			c.Write[fmt.Sprintf("%s/set-%d/%s", dir, set, name)] = []byte(benchFile(folder*1000+n, name, 12))
		}
	}
	mustUpdate(b, benchMirror(b, repo.URL()), c)
	repo.Git("repack", "-a", "-d", "-q", "--window=0") // one pack, as a server keeps it
	return repo
}

// copyOf is another repository with the same content. Its packs are the same files.
func copyOf(b *testing.B, repo *gittest.Repo) *gittest.Repo {
	b.Helper()
	other := gittest.NewRepo(b)
	packs, err := filepath.Glob(filepath.Join(repo.Dir, "objects", "pack", "pack-*"))
	if err != nil || len(packs) == 0 {
		b.Fatal(packs, err)
	}
	dir := filepath.Join(other.Dir, "objects", "pack")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	for _, pack := range packs {
		if err := os.Link(pack, filepath.Join(dir, filepath.Base(pack))); err != nil {
			b.Fatal(err)
		}
	}
	other.Git("update-ref", "refs/heads/main", repo.Head("main"))
	return other
}

type workTree struct{ dir string }

func newWorkTree(b *testing.B, repo *gittest.Repo, url string) workTree {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "work")
	gittest.Run(b, "", "clone", "--quiet", "--depth", "1", repo.URL(), dir)
	w := workTree{dir}
	w.git(b, "remote", "set-url", "origin", url)
	w.git(b, "config", "gc.auto", "0")
	return w
}

func (w workTree) git(b *testing.B, args ...string) {
	b.Helper()
	gittest.Run(b, w.dir, args...)
}

func (w workTree) commit(b *testing.B, c Commit) {
	b.Helper()
	w.write(b, c)
	w.git(b, "add", "-A")
	w.git(b, "commit", "--quiet", "-m", "change")
}

func (w workTree) write(b *testing.B, c Commit) {
	b.Helper()
	for path, data := range c.Write {
		if err := os.WriteFile(filepath.Join(w.dir, path), data, 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func median(times []time.Duration) time.Duration { return percentile(times, 50) }

func percentile(times []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

// times are the two sides of a comparison.
func times(a, b []time.Duration) float64 { return float64(median(a)) / float64(median(b)) }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// watchHeap samples the heap until the returned function is called, which gives how
// far it grew at most.
func watchHeap() func() uint64 {
	stop, peak := make(chan struct{}), make(chan uint64)
	debug.FreeOSMemory()
	before := heapInUse()
	go func() {
		most := before
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			most = max(most, heapInUse())
			select {
			case <-stop:
				peak <- most - before
				return
			case <-ticker.C:
			}
		}
	}()
	return func() uint64 { close(stop); return <-peak }
}

// heapInUse is the memory of objects, dead ones included until they are collected.
func heapInUse() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
