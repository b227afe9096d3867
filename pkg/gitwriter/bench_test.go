// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"resourceset.example/renderer/internal/gittest"
)

var (
	benchLarge  = flag.Bool("large", false, "benchmark on 300,000 files, too")
	benchRounds = flag.Int("rounds", 7, "changes that each side makes, taking turns")
)

const (
	setsPerFolder  = 149 // input sets of one ResourceSet: with two files each and two more, 300 files
	filesPerFolder = 2*setsPerFolder + 2
)

func benchSizes() []int {
	if *benchLarge {
		return []int{3_000, 30_000, 300_000}
	}
	return []int{3_000, 30_000}
}

// BenchmarkPush changes one input set of one ResourceSet (two manifests,
// kustomization.yaml and inputs.lock) and pushes that, in turns: with Update; with
// `git add -A && git commit && git push` in a warm work tree; and with `git push` of a
// commit that is ready.
func BenchmarkPush(b *testing.B) {
	for _, transport := range []string{"file", "http"} {
		for _, files := range benchSizes() {
			b.Run(fmt.Sprintf("%s/%d", transport, files), func(b *testing.B) { benchPush(b, transport, files) })
		}
	}
}

func benchPush(b *testing.B, transport string, files int) {
	ours, theirs, ready := newLargeRepo(b, files), newLargeRepo(b, files), newLargeRepo(b, files)
	url := func(r *gittest.Repo) string {
		if transport == "http" {
			return r.HTTP("", "")
		}
		return r.URL()
	}
	m := benchMirror(b, url(ours))
	work, commitWork := newWorkTree(b, theirs, url(theirs)), newWorkTree(b, ready, url(ready))
	var update, cli, push []time.Duration
	for round := range *benchRounds + 1 {
		change := benchChange(round)
		times := [3]time.Duration{
			timed(func() { mustUpdate(b, m, change) }),
			timed(func() {
				work.write(b, change)
				work.git(b, "add", "-A")
				work.git(b, "commit", "--quiet", "-m", "change")
				work.git(b, "push", "--quiet", "origin", "HEAD:main")
			}),
		}
		commitWork.write(b, change)
		commitWork.git(b, "add", "-A")
		commitWork.git(b, "commit", "--quiet", "-m", "change")
		times[2] = timed(func() { commitWork.git(b, "push", "--quiet", "origin", "HEAD:main") })
		if round > 0 { // the first one warms the caches of all
			update, cli, push = append(update, times[0]), append(cli, times[1]), append(push, times[2])
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(median(update)), "update-ms")
	b.ReportMetric(ms(median(cli)), "git-add-commit-push-ms")
	b.ReportMetric(ms(median(push)), "git-push-ms")
	b.ReportMetric(float64(median(cli))/float64(median(update)), "times-faster-than-git")
	b.ReportMetric(float64(median(update))/float64(median(push)), "of-git-push")
}

// BenchmarkOwnShare is what Update does by itself: trees, commit, pack. It must not
// grow with the repository.
func BenchmarkOwnShare(b *testing.B) {
	for _, files := range benchSizes() {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			m := benchMirror(b, newLargeRepo(b, files).URL())
			base, err := m.Fetch(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				p, err := m.propose(b.Context(), base, []Commit{benchChange(n)})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := p.objects.pack(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFirstFetch compares the first start with `git clone --depth 1 --bare`.
func BenchmarkFirstFetch(b *testing.B) {
	for _, files := range benchSizes() {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			repo := newLargeRepo(b, files)
			clone := timed(func() {
				gittest.Run(b, b.TempDir(), "clone", "--quiet", "--bare", "--depth", "1", repo.URL(), "x.git")
			})
			m := benchMirror(b, repo.URL())
			peak := watchHeap()
			fetch := timed(func() {
				if _, err := m.Fetch(b.Context()); err != nil {
					b.Fatal(err)
				}
			})
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(peak())/(1<<20), "peak-heap-MB")
			b.ReportMetric(ms(fetch), "fetch-ms")
			b.ReportMetric(float64(fetch)/float64(clone), "of-git-clone")
		})
	}
}

// BenchmarkContention is 8 writers with 25 changes each, to different folders of one
// branch over smart HTTP.
func BenchmarkContention(b *testing.B) {
	const writers, changes = 8, 25
	repo := newLargeRepo(b, 3_000)
	url := repo.HTTP("", "")
	var mu sync.Mutex
	var times []time.Duration
	attempts := 0
	var wg sync.WaitGroup
	for w := range writers {
		m := benchMirror(b, url)
		wg.Go(func() {
			for n := range changes {
				c := Commit{Message: fmt.Sprintf("writer %d change %d", w, n), Author: benchAuthor,
					Write: map[string][]byte{fmt.Sprintf("generated/w%d/file.yaml", w): fmt.Append(nil, n)}}
				var result Result
				took := timed(func() { result = mustUpdate(b, m, c) })
				mu.Lock()
				times = append(times, took)
				attempts += result.Attempts
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if n := repo.Git("rev-list", "--count", "main"); n != fmt.Sprint(writers*changes+1) {
		b.Errorf("%s commits", n)
	}
	slices.Sort(times)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(times[len(times)/2]), "p50-ms")
	b.ReportMetric(ms(times[len(times)*99/100]), "p99-ms")
	b.ReportMetric(float64(attempts)/float64(len(times)), "attempts/change")
}

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

// newLargeRepo makes a repository as it is after rendering for that many input sets.
func newLargeRepo(b *testing.B, files int) *gittest.Repo {
	b.Helper()
	repo := gittest.NewRepo(b)
	c := Commit{Message: "base", Author: benchAuthor, Write: make(map[string][]byte, files)}
	for folder := range files / filesPerFolder {
		dir := fmt.Sprintf("generated/ns-%d/rset-%d", folder/100, folder%100)
		c.Write[dir+"/kustomization.yaml"] = []byte(benchFile(folder, "kustomization", 200))
		c.Write[dir+"/inputs.lock"] = []byte(benchFile(folder, "inputs", 400))
		for set := range setsPerFolder {
			c.Write[fmt.Sprintf("%s/set-%d/release.yaml", dir, set)] = []byte(benchFile(folder*1000+set, "release.yaml", 12))
			c.Write[fmt.Sprintf("%s/set-%d/source.yaml", dir, set)] = []byte(benchFile(folder*1000+set, "source.yaml", 12))
		}
	}
	mustUpdate(b, benchMirror(b, repo.URL()), c)
	return repo
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

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// watchHeap samples the heap until the returned function is called, which gives the peak.
func watchHeap() func() uint64 {
	stop, peak := make(chan struct{}), make(chan uint64)
	runtime.GC()
	go func() {
		var most uint64
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			most = max(most, stats.HeapInuse)
			select {
			case <-stop:
				peak <- most
				return
			case <-ticker.C:
			}
		}
	}()
	return func() uint64 { close(stop); return <-peak }
}
