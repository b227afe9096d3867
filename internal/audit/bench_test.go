// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/expand"
)

const benchTarget = "clusters/preview/generated"

// importHistory makes a branch of so many commits of ours, one changed input set
// each, over ten ResourceSets of twenty sets, by git fast-import. Every fifth
// commit is somebody else's and elsewhere.
func importHistory(t testing.TB, repo *gittest.Repo, commits int) {
	t.Helper()
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Env = repo.Dir, gittest.Env()
	pipe, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(pipe)
	locks := make([]*expand.Lock, 10)
	for i := range locks {
		locks[i] = benchLock(i)
	}
	for n := range commits {
		file := func(path string, data []byte) {
			fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n%s\n", path, len(data), data)
		}
		lock := locks[n%len(locks)]
		set := &lock.Sets[n/len(locks)%len(lock.Sets)]
		message := fmt.Sprintf("%s: update %s\n\nResourceSet: %s\nSource-Revision: main@sha1:%040d\nInputs-Digest: sha256:0\nInput-Updated: %s\nTrigger: schedule\n",
			lock.ResourceSet, set.ID, lock.ResourceSet, n, set.Name)
		if n%5 == 4 {
			message = "Change something else"
		}
		fmt.Fprintf(w, "commit refs/heads/imported\ncommitter renderer <r@example.com> %d +0000\ndata %d\n%s\n", 1_700_000_000+n, len(message), message)
		if n%5 == 4 {
			file(fmt.Sprintf("apps/app-%d/values.yaml", n%300), fmt.Appendf(nil, "n: %d\n", n))
			continue
		}
		manifest := fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app-%s\n  namespace: apps\ndata:\n  n: \"%d\"\n", set.ID, n)
		name := fmt.Sprintf("apps_app-%s__ConfigMap.yaml", set.ID)
		set.Inputs["sha"] = fmt.Sprintf("%040d", n)
		set.Files[name] = expand.BlobHash(manifest)
		file(benchTarget+"/"+lock.ResourceSet+"/"+set.Name+"/"+name, manifest)
		file(benchTarget+"/"+lock.ResourceSet+"/"+lockName, lock.Encode())
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	pipe.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

func benchLock(n int) *expand.Lock {
	lock := &expand.Lock{ResourceSet: fmt.Sprintf("apps/set-%d", n), Kustomization: expand.BlobHash(nil)}
	for i := range 20 {
		id := fmt.Sprintf("%d%02d", n, i)
		lock.Sets = append(lock.Sets, expand.LockedSet{
			Name: "prs-" + id, ID: id, Provider: "prs",
			Inputs: api.Input{"id": id, "sha": "", "branch": "feature-" + id, "tenant": "tenant-" + id},
			Files:  map[string]string{fmt.Sprintf("apps_app-%s__ConfigMap.yaml", id): expand.BlobHash(nil)},
		})
	}
	return lock
}

// Issue 3.8: a timeline of 10,000 commits in under two seconds, in a repository as
// it is written and as `git gc` leaves it.
func BenchmarkHistory10000(b *testing.B) {
	repo := gittest.NewRepo(b)
	importHistory(b, repo, 10_000)
	all := func(b *testing.B) { benchHistory(b, repo, Filter{}) }
	b.Run("all", all)
	b.Run("resourceset", func(b *testing.B) { benchHistory(b, repo, Filter{ResourceSet: "apps/set-3"}) })
	b.Run("input", func(b *testing.B) { benchHistory(b, repo, Filter{Input: "305"}) })
	repo.Git("gc", "--quiet")
	b.Run("all-after-gc", all)
}

func benchHistory(b *testing.B, repo *gittest.Repo, filter Filter) {
	const rounds = 5
	var times, used []time.Duration
	var found int
	for range rounds {
		began, before := time.Now(), processTime(b)
		r, err := Open(repo.Dir, "imported")
		if err != nil {
			b.Fatal(err)
		}
		events, err := r.History(b.Context(), benchTarget, filter)
		if err != nil || len(events) == 0 {
			b.Fatal(len(events), err)
		}
		times, used, found = append(times, time.Since(began)), append(used, processTime(b)-before), len(events)
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(times)
	slices.Sort(used)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(found), "events")
	b.ReportMetric(times[rounds/2].Seconds(), "s-median")
	b.ReportMetric(used[rounds/2].Seconds(), "cpu-s-median") // the machine may be busy
}

// processTime is the time that this process has spent computing.
func processTime(t testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
