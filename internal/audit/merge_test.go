// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// reset moves the branch, and with it what the next pass begins with.
func (w *world) reset(commit string) {
	w.stop()
	w.repo.Git("update-ref", "refs/heads/main", commit)
}

// inOrder is a pass in which nothing may fail or be held, and that has nothing to do.
func (w *world) inOrder() {
	w.t.Helper()
	head := w.repo.Head("main")
	if w.pass() != head {
		w.t.Fatal("the pass made a commit")
	}
	if report := w.loop.Once(context.Background()); !report.OK() {
		w.t.Fatal(report.Err())
	}
}

// A merge by somebody that drops a commit of ours leaves no mark in its own changes:
// its folder is that of one of its parents. It is found, with who and what.
func TestVerifyFindsMergeThatDropsOurCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.rendered()
	w.tenants("red=2", "blue", "green")
	ours := w.rendered()
	clone := w.repo.Clone("main")
	clone.Git("checkout", "--quiet", base)
	clone.Git("commit", "--quiet", "--allow-empty", "--message", "Work on the side")
	for name, parents := range map[string][]string{"theirs first": {"HEAD", ours}, "ours first": {ours, "HEAD"}} {
		merge := clone.Git("commit-tree", "HEAD^{tree}", "-p", parents[0], "-p", parents[1], "-m", "Merge to the older state")
		clone.Git("push", "--quiet", "origin", merge+":refs/heads/"+strings.Fields(name)[0])
		w.reset(merge)
		report := w.verify(Verification{})
		w.finding(report, merge, Altered, folder, ours[:12], "Somebody Else")
		w.status(report, ours, Proved)
		events, _ := w.history(Filter{ResourceSet: "apps/app", Input: "green"})
		if e := events[0]; e.Commit != merge || e.Kind != Reverted || e.Reverts != ours || !slices.Contains(e.Inputs, "tenants-red") {
			t.Errorf("%s: history: %+v", name, e)
		}
		// What we render on top of it is proved again.
		w.tenants("red=3", "blue", "green=3")
		next := w.rendered()
		w.status(w.verify(Verification{Since: merge}), next, Proved)
		w.tenants("red=2", "blue", "green")
	}
}

// The other way round nothing is dropped: main is merged into a branch that knows
// nothing of our last commit, and that branch becomes main.
func TestVerifyProvesSideBranchAsFirstParent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.rendered()
	w.tenants("red=2", "blue")
	ours := w.rendered()
	clone := w.repo.Clone("main")
	clone.Git("checkout", "--quiet", base)
	clone.Git("commit", "--quiet", "--allow-empty", "--message", "Work on the side")
	clone.Git("merge", "--quiet", "--no-edit", ours)
	clone.Git("push", "--quiet", "origin", "HEAD:main")
	w.proved(2)
	w.inOrder()
	w.tenants("red", "blue") // as the side branch had it
	w.rendered()
	w.proved(3)
}

// Branches with proposals of ours, one for each ResourceSet, are merged in another
// order than they were made in.
func TestVerifyProvesProposalsMergedOutOfOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	more := strings.NewReplacer("name: app\n", "name: more\n", `"app-`, `"more-`, "name: all", "name: every").Replace(appFile)
	w.define(map[string]string{"apps/more.yaml": more})
	base := w.rendered()
	w.tenants("red=2", "blue")
	two := w.rendered()
	one := w.repo.Git("rev-parse", two+"^")
	clone := w.repo.Clone("main")
	clone.Git("checkout", "--quiet", "--detach", base)
	clone.Git("cherry-pick", two) // on the same base as the other one
	second := clone.Git("rev-parse", "HEAD")
	clone.Git("checkout", "--quiet", "--detach", base)
	clone.Git("merge", "--quiet", "--no-ff", "--no-edit", second)
	clone.Git("merge", "--quiet", "--no-ff", "--no-edit", one)
	clone.Git("push", "--quiet", "origin", "HEAD:refs/heads/side")
	w.reset(clone.Git("rev-parse", "HEAD"))
	w.proved(5) // with the merge that holds both
	w.inOrder()
	w.tenants("red=3", "blue")
	w.rendered()
	w.proved(7)
}

// An older proposal is merged after a newer one of the same ResourceSet. To leave the
// newer one in force is right; to take it back is not.
func TestVerifyOlderProposalOfTheSameSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.rendered()
	w.tenants("red=2", "blue")
	older := w.rendered()
	w.reset(base)
	w.define(map[string]string{"apps/note.txt": "a later revision\n"})
	w.tenants("red=3", "blue")
	newer := w.rendered()
	clone := w.repo.Clone("main")
	clone.Git("fetch", "--quiet", "origin", older)
	merged := func(first, second string) string {
		merge := clone.Git("commit-tree", first+"^{tree}", "-p", first, "-p", second, "-m", "Merge")
		clone.Git("push", "--quiet", "origin", merge+":refs/heads/side-"+first)
		w.reset(merge)
		return merge
	}
	merged(newer, older)
	w.proved(3)
	merge := merged(older, newer)
	w.finding(w.verify(Verification{}), merge, Altered, "takes it back", newer[:12])
}
