// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"resourceset.example/renderer/internal/gittest"
)

var (
	benchLarge  = flag.Bool("large", false, "benchmark on 300,000 files, too")
	benchRounds = flag.Int("rounds", 15, "changes that each side makes, taking turns")
)

// BenchmarkWriter measures against git, side by side, on repositories as they are after
// rendering for many input sets.
func BenchmarkWriter(b *testing.B) {
	sizes := []int{3_000, 30_000}
	if *benchLarge {
		sizes = append(sizes, 300_000)
	}
	repos := make([]*gittest.Repo, len(sizes))
	for i, files := range sizes {
		repos[i] = newLargeRepo(b, files, perSet)
		b.Run(fmt.Sprintf("first-fetch/%d", files), func(b *testing.B) { benchFirstFetch(b, repos[i]) })
	}
	for i, files := range sizes {
		for _, transport := range []string{"file", "http"} {
			b.Run(fmt.Sprintf("push/%s/%d", transport, files), func(b *testing.B) { benchPush(b, repos[i], transport) })
		}
	}
	if *benchLarge {
		// A server walks all folders before it takes a push: with fewer, its share is smaller.
		repo := newLargeRepo(b, 300_000, perLargeSet)
		for _, transport := range []string{"file", "http"} {
			b.Run(fmt.Sprintf("push/%s/300000-in-large-sets", transport), func(b *testing.B) { benchPush(b, repo, transport) })
		}
	}
	b.Run("own-share", func(b *testing.B) { benchOwnShare(b, sizes, repos) })
}

// benchPush changes one input set of one ResourceSet (two manifests,
// kustomization.yaml and inputs.lock) and pushes that, in turns: with Update; with
// `git add -A && git commit && git push` in a warm work tree; and with `git push` of a
// commit that is ready.
func benchPush(b *testing.B, repo *gittest.Repo, transport string) {
	ours, theirs := copyOf(b, repo), copyOf(b, repo)
	url := func(r *gittest.Repo) string {
		if transport == "http" {
			return r.HTTP("", "")
		}
		return r.URL()
	}
	m := benchMirror(b, url(ours))
	work := newWorkTree(b, theirs, url(theirs))
	var update, cli, push []time.Duration
	for round := range *benchRounds + 1 {
		one, other := benchChange(2*round), benchChange(2*round+1)
		added := timed(func() { mustUpdate(b, m, one) })
		whole := timed(func() {
			work.commit(b, one)
			work.git(b, "push", "--quiet", "origin", "HEAD:main")
		})
		work.commit(b, other)
		ready := timed(func() { work.git(b, "push", "--quiet", "origin", "HEAD:main") })
		if round > 0 { // the first one warms the caches of all
			update, cli, push = append(update, added), append(cli, whole), append(push, ready)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(median(update)), "update-ms")
	b.ReportMetric(ms(median(cli)), "git-add-commit-push-ms")
	b.ReportMetric(ms(median(push)), "git-push-ms")
	b.ReportMetric(times(cli, update), "times-faster-than-git")
	b.ReportMetric(times(update, push), "of-git-push")
}

// benchOwnShare is what a change costs beside the server, with one change on top of
// the other: trees, commit, pack, and taking the pack into the mirror, where packs are
// combined now and then. It must not grow with the repository.
func benchOwnShare(b *testing.B, sizes []int, repos []*gittest.Repo) {
	const rounds = 150
	mirrors, took := make([]*Mirror, len(sizes)), make([][]time.Duration, len(sizes))
	for i := range sizes {
		mirrors[i] = benchMirror(b, repos[i].URL())
		if _, err := mirrors[i].Fetch(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	for n := range rounds {
		for i, m := range mirrors {
			took[i] = append(took[i], timed(func() { changeLocally(b, m, benchChange(n)) }))
			if err := m.maintain(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, files := range sizes {
		b.ReportMetric(ms(median(took[i])), fmt.Sprintf("ms-at-%d", files))
	}
	b.ReportMetric(times(took[len(took)-1], took[0]), fmt.Sprintf("of-%d", sizes[0]))
}

// changeLocally is Update without a server.
func changeLocally(b *testing.B, m *Mirror, c Commit) {
	p, err := m.propose(b.Context(), m.snapshot, []Commit{c})
	if err != nil {
		b.Fatal(err)
	}
	pack, err := p.objects.pack()
	if err != nil {
		b.Fatal(err)
	}
	if err := m.keepPushed(p, pack); err != nil {
		b.Fatal(err)
	}
}

// benchFirstFetch compares the first start with `git clone --depth 1 --bare`.
func benchFirstFetch(b *testing.B, repo *gittest.Repo) {
	const rounds = 3
	var clone, fetch []time.Duration
	var most uint64
	for range rounds {
		clone = append(clone, timed(func() {
			gittest.Run(b, b.TempDir(), "clone", "--quiet", "--bare", "--depth", "1", repo.URL(), "x.git")
		}))
		m := benchMirror(b, repo.URL())
		peak := watchHeap()
		fetch = append(fetch, timed(func() {
			if _, err := m.Fetch(b.Context()); err != nil {
				b.Fatal(err)
			}
		}))
		most = max(most, peak())
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(most)/(1<<20), "peak-heap-MB")
	b.ReportMetric(ms(median(fetch)), "fetch-ms")
	b.ReportMetric(ms(median(clone)), "git-clone-ms")
	b.ReportMetric(times(fetch, clone), "of-git-clone")
}

// BenchmarkContention is 8 writers with 25 changes each, to different folders of one
// branch over smart HTTP.
func BenchmarkContention(b *testing.B) {
	const writers, changes = 8, 25
	repo := newLargeRepo(b, 3_000, perSet)
	url := repo.HTTP("", "")
	start := time.Now()
	var mu sync.Mutex
	var took []time.Duration
	attempts := 0
	var wg sync.WaitGroup
	for w := range writers {
		m := benchMirror(b, url)
		wg.Go(func() {
			for n := range changes {
				c := Commit{Message: fmt.Sprintf("writer %d change %d", w, n), Author: benchAuthor,
					Write: map[string][]byte{fmt.Sprintf("generated/w%d/file.yaml", w): fmt.Append(nil, n)}}
				var result Result
				last := timed(func() { result = mustUpdate(b, m, c) })
				mu.Lock()
				took = append(took, last)
				attempts += result.Attempts
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	all := time.Since(start)
	wantEachOnce(b, repo, writers, changes)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(percentile(took, 50)), "p50-ms")
	b.ReportMetric(ms(percentile(took, 99)), "p99-ms")
	b.ReportMetric(all.Seconds(), "s-for-all")
	b.ReportMetric(float64(attempts)/float64(len(took)), "attempts/change")
}

// wantEachOnce checks that every change is in the history once and that the last of each
// writer is what the branch holds.
func wantEachOnce(b *testing.B, repo *gittest.Repo, writers, changes int) {
	b.Helper()
	var want []string
	for w := range writers {
		for n := range changes {
			want = append(want, fmt.Sprintf("writer %d change %d", w, n))
		}
		if got := repo.Read("main", fmt.Sprintf("generated/w%d/file.yaml", w)); got != fmt.Sprint(changes-1) {
			b.Errorf("writer %d: the file holds %q", w, got)
		}
	}
	got := strings.Split(repo.Git("log", "--first-parent", "--format=%s", "main"), "\n")
	got = slices.DeleteFunc(got, func(subject string) bool { return subject == "base" })
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		b.Errorf("%d changes landed in place of %d", len(got), len(want))
	}
}
