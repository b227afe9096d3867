// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/internal/forgetest"
)

func TestPullRequestFromOpeningToMerge(t *testing.T) {
	for forge, style := range map[string]string{"github": "merge", "gitlab": "squash", "gitea": "rebase"} {
		t.Run(forge, func(t *testing.T) {
			t.Parallel()
			w := newRequestWorld(t, forge)
			main := w.repo.Head("main")
			report := w.ok()
			r := w.is("apps/app", 1, "open")
			if w.repo.Head("main") != main || len(report.Commits) != 0 || len(report.Requests) != 1 || report.Requests[0].Action != "opened" {
				t.Fatalf("the report is %+v", report)
			}
			if r.Title != "apps/app: add red, blue" || !slices.Equal(r.Labels, []string{"generated"}) ||
				!strings.Contains(r.Body, "| added | `blue` |") || !strings.Contains(r.Body, "Input-Added: tenants-red") ||
				!strings.Contains(r.Body, "Files: 5 new, 0 changed, 0 deleted.") {
				t.Errorf("the request says: %s\n%s\n%v", r.Title, r.Body, r.Labels)
			}
			if files := w.repo.Git("diff", "--name-only", "main", w.branch("apps/app")); strings.Count(files, "\n") != 4 || !strings.Contains(files, "clusters/generated/apps/app/tenants-red/") {
				t.Errorf("the branch has %s", files)
			}
			w.forge.Forget()
			w.quiet("a second pass")
			if n := w.forge.Calls(); n != 0 {
				t.Errorf("a pass without changes asked the forge %d times", n)
			}
			w.restart()
			w.elsewhere()
			w.quiet("another process, and somebody else's commit")

			w.tenants("red=2.0", "blue")
			w.ok()
			updated := w.is("apps/app", 1, "open")
			if updated.SHA == r.SHA || updated.Body == r.Body || w.repo.Git("rev-parse", w.branch("apps/app")+"^") != w.repo.Head("main") {
				t.Errorf("the request did not follow the inputs: %+v", updated)
			}

			w.merge("apps/app", style)
			report = w.ok()
			if w.has("red", "blue"); len(w.branches()) != 0 {
				t.Errorf("the branch was not cleaned up: %v", w.branches())
			}
			w.is("apps/app", 1, "merged")
			w.quiet("after the merge")
			w.restart()
			w.quiet("after the merge, in another process")
			_ = report

			w.tenants("red=3.0", "blue")
			w.ok()
			if r := w.is("apps/app", 2, "open"); r.Title != "apps/app: update red" {
				t.Errorf("the next request is called %s", r.Title)
			}
		})
	}
}

func TestNothingLeftToProposeClosesTheRequest(t *testing.T) {
	t.Parallel()
	w := newRequestWorld(t, "github")
	w.ok()
	w.merge("apps/app", "merge")
	w.ok()
	w.tenants("red")
	w.ok()
	w.is("apps/app", 2, "open")
	w.restart()
	w.tenants("red", "blue")
	report := w.ok()
	r := w.is("apps/app", 2, "closed")
	if len(r.Comments) != 1 || !strings.Contains(r.Comments[0], "nothing left to propose for `apps/app`") {
		t.Errorf("comments: %q", r.Comments)
	}
	if len(w.branches()) != 0 || len(report.Requests) != 1 || report.Requests[0].Action != "closed" {
		t.Errorf("branches %v, report %+v", w.branches(), report.Requests)
	}
	w.quiet("after closing")

	// By hand on the target branch: the request has nothing to add.
	w.tenants("red")
	w.ok()
	w.is("apps/app", 3, "open")
	clone := w.repo.Clone("main")
	clone.Git("merge", "--quiet", "--squash", "origin/"+w.branch("apps/app"))
	clone.CommitAndPush("By hand")
	w.ok()
	if r := w.is("apps/app", 3, "closed"); !strings.Contains(r.Comments[0], "has all of it already") {
		t.Errorf("comments: %q", r.Comments)
	}
}

func TestRule07_ClosedByAPersonIsANo(t *testing.T) {
	t.Parallel()
	w := newRequestWorld(t, "github")
	w.ok()
	w.hosted.Close(1)
	report := w.quiet("after the no")
	if !report.OK() {
		t.Errorf("a no is no failure: %v", report.Err())
	}
	w.restart()
	w.repo.Git("update-ref", "-d", "refs/heads/"+w.branch("apps/app"))
	w.elsewhere()
	report = w.quiet("after the no, without the branch, in another process")
	if len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0].Error(), "#1 proposed this and was closed without merging") {
		t.Errorf("warnings: %v", report.Warnings)
	}
	w.hosted.Describe(1, "somebody wrote something else here") // the commit's trailers say it, too
	w.restart()
	w.quiet("after the no, without the mark")

	w.tenants("red", "blue", "green")
	w.ok()
	w.is("apps/app", 2, "open")
}

// A merged change that somebody reverts is not proposed again.
func TestRule07_RevertedMergeIsANo(t *testing.T) {
	t.Parallel()
	w := newRequestWorld(t, "github")
	w.ok()
	w.merge("apps/app", "squash")
	w.ok()
	w.tenants("red")
	w.ok()
	w.merge("apps/app", "merge")
	w.ok()
	clone := w.repo.Clone("main")
	clone.Git("revert", "--no-edit", "-m", "1", "HEAD")
	clone.Git("push", "--quiet", "origin", "HEAD:main")
	w.has("red", "blue")
	report := w.once()
	if r := w.request("apps/app"); r.Number != 2 {
		t.Fatalf("it was proposed again: %+v", r)
	}
	if text := report.Err(); text == nil && len(report.Warnings) == 0 {
		t.Error("nobody is told")
	}
}

func TestRequestIsRebuiltWhenTheBaseChangesOurFolders(t *testing.T) {
	t.Parallel()
	w := newRequestWorld(t, "github")
	w.define(map[string]string{"other.yaml": inlineSet("other")})
	w.ok()
	app, other := w.is("apps/app", 1, "open"), w.is("apps/other", 2, "open")
	if files := w.repo.Git("show", w.branch("apps/other")+":clusters/generated/kustomization.yaml"); strings.Contains(files, "apps/app") {
		t.Errorf("a branch lists what only another one has:\n%s", files)
	}
	w.merge("apps/other", "merge")
	w.ok()
	// Both change the list of ResourceSets, so the first would conflict now.
	if r := w.is("apps/app", 1, "open"); r.SHA == app.SHA {
		t.Error("the request was not rebuilt on the new list")
	}
	if r := w.is("apps/other", 2, "merged"); r.SHA != other.SHA {
		t.Error("the merged one moved")
	}
	if list := w.repo.Git("show", w.branch("apps/app")+":clusters/generated/kustomization.yaml"); !strings.Contains(list, "apps/app") || !strings.Contains(list, "apps/other") {
		t.Errorf("the list is\n%s", list)
	}
	w.merge("apps/app", "merge")
	w.ok()
	w.has("red", "blue")
}

// The API being down keeps no branch from being pushed and no ResourceSet from going
// on. It is reported, and tried again after a while.
func TestRule04_ForgeDown(t *testing.T) {
	t.Parallel()
	w := newRequestWorld(t, "gitlab")
	w.define(map[string]string{"other.yaml": inlineSet("other")})
	w.forge.Break(forgetest.Status(http.StatusServiceUnavailable, "down"))
	report := w.once()
	w.problem(report, "pull request of "+w.branch("apps/app"), "503", "the branch is pushed all the same")
	w.problem(report, "pull request of "+w.branch("apps/other"))
	if got := w.branches(); !slices.Equal(got, []string{"renderer/apps/app", "renderer/apps/other"}) {
		t.Fatalf("branches: %v", got)
	}
	w.tenants("red=2.0", "blue")
	before := w.repo.Head(w.branch("apps/app"))
	w.once()
	if w.repo.Head(w.branch("apps/app")) == before {
		t.Error("the branch does not follow while the forge is down")
	}
	if due := w.r.delivery.nextDue(w.clock.Now()); due.IsZero() {
		t.Error("no further attempt is planned")
	}
	w.forge.Forget()
	w.clock.Advance(-w.clock.Now().Sub(w.r.delivery.branches[strings.TrimPrefix(w.branch("apps/app"), "renderer/")].due) - 2*time.Hour)
	if report = w.pass(request{trigger: TriggerSchedule}); w.forge.Calls() != 0 || report.OK() {
		t.Errorf("the forge was asked %d times before it was due; problems %v", w.forge.Calls(), report.Err())
	}

	// A refused branch does not stop the other one either.
	w.forge.Heal()
	w.repo.Hook("pre-receive", "while read old new ref; do case $ref in *apps/app-*) echo not this one >&2; exit 1;; esac; done")
	w.tenants("red=3.0", "blue")
	report = w.once()
	w.problem(report, "pull request of "+w.branch("apps/app"), "not this one")
	w.is("apps/other", 1, "open")
	w.repo.Hook("pre-receive", "exit 0")
	w.ok()
	w.is("apps/app", 2, "open")
}

func TestOneRequestForAll(t *testing.T) {
	t.Parallel()
	w := newRequestWorld(t, "gitea", ", per: all")
	w.define(map[string]string{"other.yaml": inlineSet("other")})
	w.ok()
	r := w.is("all", 1, "open")
	if r.Title != "update 2 ResourceSets: apps/app, apps/other" || !strings.Contains(r.Body, "### ResourceSet `apps/app`") || !strings.Contains(r.Body, "### ResourceSet `apps/other`") {
		t.Errorf("the request says %s\n%s", r.Title, r.Body)
	}
	if got := w.repo.Git("log", "--format=%s", "main.."+w.branch("all")); got != "apps/other: add other-one, other-two, other-three\napps/app: add red, blue" {
		t.Errorf("commits of the branch:\n%s", got)
	}
	w.merge("all", "rebase")
	w.ok()
	w.has("red", "blue")
	if len(w.branches()) != 0 {
		t.Errorf("branches: %v", w.branches())
	}
	w.quiet("after the merge")
}

// Who pushes to our branch does not lose it. Merging the target branch into it, as
// forges offer with a button, is nobody's work.
func TestRule06_PeoplesCommitsOnOurBranchAreKept(t *testing.T) {
	t.Parallel()
	w := newRequestWorld(t, "github")
	w.ok()
	w.merge("apps/app", "merge")
	w.ok()
	w.tenants("red", "blue", "green")
	w.ok()
	branch := w.branch("apps/app")
	w.elsewhere()
	clone := w.repo.Clone(branch)
	clone.Git("merge", "--quiet", "-m", "Merge branch 'main'", "origin/main")
	clone.Git("push", "--quiet", "origin", "HEAD:"+branch)
	w.restart()
	w.quiet("the branch was updated by its button")
	w.tenants("red=2.0", "blue")
	w.ok()
	if parents := w.repo.Git("log", "-1", "--format=%P", branch); strings.Contains(parents, " ") {
		t.Error("the branch was not rebuilt")
	}

	w.repo.Commit(branch, "Make it better", map[string]string{"clusters/generated/apps/app/NOTES": "note\n"})
	w.quiet("somebody's commit, nothing new")
	w.tenants("red=3.0", "blue")
	report := w.quiet("somebody's commit, and something new")
	w.problem(report, branch+" has commits that are not renderer's", "delete the branch")
	w.tenants("red", "blue")
	report = w.quiet("somebody's commit, and nothing to propose")
	if len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0].Error(), "somebody else's commits") {
		t.Errorf("warnings: %v", report.Warnings)
	}
	w.tenants("red=3.0", "blue")
	w.repo.Git("update-ref", "-d", "refs/heads/"+branch)
	w.ok()
	w.is("apps/app", 3, "open")

	// An amended commit keeps our trailers, and is theirs all the same.
	clone = w.repo.Clone(branch)
	clone.Write(map[string]string{"clusters/generated/apps/app/NOTES": "note\n"})
	clone.Git("add", "-A")
	clone.Git("commit", "--quiet", "--amend", "--no-edit")
	clone.Git("push", "--quiet", "--force", "origin", "HEAD:"+branch)
	w.tenants("red=4.0", "blue")
	w.problem(w.quiet("an amended commit"), "not renderer's")
}

// What is known from inputs.lock alone is older than an open request may be.
func TestRule02_ColdStartLeavesOpenRequestsAlone(t *testing.T) {
	t.Parallel()
	w := newRequestWorld(t, "github")
	w.ok()
	w.merge("apps/app", "merge")
	w.ok()
	w.tenants("red", "blue", "green")
	w.ok()
	w.is("apps/app", 2, "open")
	w.restart()
	w.orchestrator.Break(forgetest.Status(http.StatusBadGateway, "down"))
	w.problem(w.quiet("the provider is down after a restart"), "apps/tenants")
	w.is("apps/app", 2, "open")
	w.define(map[string]string{"app.yaml": strings.Replace(appSet, "      data:\n", "      data:\n        added: \"yes\"\n", 1)})
	w.quiet("and the template changes")
	w.orchestrator.Heal()
	w.ok()
	if r := w.is("apps/app", 2, "open"); !strings.Contains(r.Body, "rendered anew from a changed definition") {
		t.Errorf("the request says\n%s", r.Body)
	}
}

// Nobody closes a request because a definition cannot be read, a ResourceSet fails or
// is switched off.
func TestRule03_RequestsOutliveFaults(t *testing.T) {
	t.Parallel()
	w := newRequestWorld(t, "github")
	w.ok()
	w.define(map[string]string{"app.yaml": "kind: [", "tenants.yaml": w.provider("tenants")})
	w.quiet("a definition that cannot be read")
	w.define(map[string]string{"app.yaml": strings.Replace(appSet, "<< inputs.version | quote >>", "<< if >>", 1)})
	w.quiet("a template that fails")
	w.define(map[string]string{"app.yaml": strings.Replace(appSet, "kind: ResourceSet\nmetadata:\n", "kind: ResourceSet\nmetadata:\n  annotations: {fluxcd.controlplane.io/reconcile: disabled}\n", 1)})
	w.quiet("a ResourceSet that is switched off")
	w.is("apps/app", 1, "open")
	w.define(map[string]string{"app.yaml": "", "other.yaml": inlineSet("other")})
	w.ok()
	if r := w.is("apps/app", 1, "closed"); !strings.Contains(r.Comments[0], "not defined any more") {
		t.Errorf("comments: %q", r.Comments)
	}
	w.is("apps/other", 2, "open")
}

// An approved removal stays approved until it is merged, and is used up then.
func TestRule05_ApprovalHoldsUntilTheMerge(t *testing.T) {
	t.Parallel()
	w := newRequestWorld(t, "github")
	w.ok()
	w.merge("apps/app", "merge")
	w.ok()
	w.tenants()
	w.problem(w.quiet("a removal that is held back"), "held back")
	approve(t, w.world)
	w.ok()
	r := w.is("apps/app", 2, "open")
	if !strings.Contains(r.Body, "| removed | `red` |") {
		t.Errorf("the request says\n%s", r.Body)
	}
	w.restart()
	w.quiet("the removal waits in another process")
	if err := os.RemoveAll(filepath.Join(w.cfg.State.Directory, "held")); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.problem(w.quiet("the approval is lost"), "held back")
	approve(t, w.world)
	w.ok()
	w.merge("apps/app", "merge")
	w.ok()
	w.has()
	if left, _ := filepath.Glob(filepath.Join(w.cfg.State.Directory, "held", approvedName, "*")); len(left) != 0 {
		t.Errorf("the approval is still there: %v", left)
	}
}

// approve releases the only removal that is held.
func approve(t *testing.T, w *world) {
	t.Helper()
	held := OpenHeld(w.cfg.State.Directory)
	plans, err := held.Plans()
	if err != nil || len(plans) != 1 {
		t.Fatalf("held: %+v, %v", plans, err)
	}
	if err := held.Approve(plans[0].Digest, "tester", w.clock.Now()); err != nil {
		t.Fatal(err)
	}
}

// The secret may be a GitHub App's; its tokens are made for the API as for Git.
func TestPullRequestAsGitHubApp(t *testing.T) {
	t.Parallel()
	w := newRequestWorld(t, "github")
	app, err := w.forge.(*forgetest.GitHub).InstallApp("org")
	if err != nil {
		t.Fatal(err)
	}
	w.secret("flux-system", "forge", "token", "")
	w.secret("flux-system", "forge", "githubAppID", fmt.Sprint(app.ID))
	w.secret("flux-system", "forge", "githubAppInstallationID", fmt.Sprint(app.InstallationID))
	w.secret("flux-system", "forge", "githubAppPrivateKey", string(app.PrivateKey))
	w.ok()
	w.is("apps/app", 1, "open")
	if app.Minted() != 1 {
		t.Errorf("%d tokens were made", app.Minted())
	}
}

// Without a token the branches are pushed, and it is said what is missing.
func TestPullRequestWithoutToken(t *testing.T) {
	t.Parallel()
	w := newRequestWorld(t, "github")
	w.secret("flux-system", "forge", "token", "")
	w.problem(w.once(), "has no API token", "target.pullRequest.secret")
	if len(w.branches()) != 1 {
		t.Errorf("branches: %v", w.branches())
	}
	w.secret("flux-system", "forge", "token", forgeToken)
	w.ok()
	w.is("apps/app", 1, "open")
}
