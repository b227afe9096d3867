// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"resourceset.example/renderer/integration/forge"
	"resourceset.example/renderer/internal/gittest"
)

const (
	// Both are more than the 10 items that this Gitea gives at a time, whatever it is
	// asked for (FR-04).
	proposals = 12
	many      = 33         // branches, and tags
	workshop  = "workshop" // who owns the repository
)

// An input is one input set as `renderer inputs -o json` prints it.
type input = map[string]any

// A workbench is a repository on a real Gitea with more of everything than fits on a
// page, and the built program to ask for it.
type workbench struct {
	t     *testing.T
	forge *forge.Forge
	repo  *forge.Repository
	base  string // the commit that branches and tags were made at
	w     *world
}

// TestGitea tries the three providers for Gitea on a real one: fields, filters, labels,
// pages, forks, and answers that must not be taken for an empty list.
func TestGitea(t *testing.T) {
	b := newWorkbench(t)
	t.Run("PullRequests", b.pullRequests)
	t.Run("Branches", b.branches)
	t.Run("Tags", b.tags)
	t.Run("Refusals", b.refusals)
}

func newWorkbench(t *testing.T) *workbench {
	t.Helper()
	b := &workbench{t: t, forge: newForge(t), w: newWorld(t)}
	owner, err := b.forge.NewUser(t.Context(), workshop)
	must(t, err)
	b.repo, err = owner.NewRepository("app")
	must(t, err)
	token, err := owner.Token("read", "read:repository")
	must(t, err)
	b.w.write("tokens/apps/gitea/password", token)
	b.w.write("tokens/apps/gitea/username", owner.Name)
	b.w.write("tokens/apps/expired/password", strings.Repeat("0123456789", 4))
	b.push()
	return b
}

// push fills the repository in one go: branches with a commit each to propose, others
// at main's, and tags.
func (b *workbench) push() {
	b.t.Helper()
	token, err := b.repo.Owner.Token("push", "write:repository")
	must(b.t, err)
	dir := filepath.Join(b.w.dir, "workbench")
	address := strings.Replace(b.repo.CloneURL(), "://", "://"+workshop+":"+token+"@", 1)
	gittest.Run(b.t, "", "clone", "--quiet", address, dir)
	git := func(args ...string) {
		b.t.Helper()
		gittest.Run(b.t, dir, append([]string{"-c", "user.name=" + workshop, "-c", "user.email=" + workshop + "@example.com"}, args...)...)
	}
	for n := range proposals {
		git("switch", "--quiet", "--create", fmt.Sprintf("feat/%02d", n), "main")
		git("commit", "--quiet", "--allow-empty", "--message", "Start")
		must(b.t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.md", n)), []byte("work\n"), 0o644))
		git("add", ".")
		git("commit", "--quiet", "--message", "Work")
	}
	for n := range many {
		git("branch", fmt.Sprintf("release/%02d", n), "main")
		git("tag", fmt.Sprintf("v0.%d.0", n), "main")
	}
	git("tag", "--annotate", "--message", "an annotated one", "v1.2.0", "main")
	git("tag", "v2.0.0-rc.1", "main")
	git("tag", "nightly", "main")
	git("push", "--quiet", "origin", "--all")
	git("push", "--quiet", "origin", "--tags")
	b.base = strings.TrimSpace(gittest.Run(b.t, dir, "rev-parse", "main"))
}

// ask is `renderer inputs` for one provider.
func (b *workbench) ask(t *testing.T, secret, kind, filter string) (result, []input) {
	t.Helper()
	b.w.write("provider.yaml", fmt.Sprintf(`apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSetInputProvider
metadata: {name: app, namespace: apps}
spec:
  type: %s
  url: %s
  secretRef: {name: %s}
  filter: %s
`, kind, b.repo.URL(), secret, filter))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := b.w.renderer("renderer").command(ctx, "inputs", "-f", filepath.Join(b.w.dir, "provider.yaml"),
		"--secrets", filepath.Join(b.w.dir, "tokens"), "-o", "json")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return result{code: exit.ExitCode(), said: string(exit.Stderr)}, nil
	}
	must(t, err)
	var doc struct {
		Providers []struct{ Inputs []input } `json:"providers"`
	}
	must(t, json.Unmarshal(out, &doc))
	if len(doc.Providers) != 1 {
		t.Fatalf("%d providers:\n%s", len(doc.Providers), out)
	}
	return result{}, doc.Providers[0].Inputs
}

// exports is what a provider exports, without a fault.
func (b *workbench) exports(t *testing.T, kind, filter string) []input {
	t.Helper()
	r, inputs := b.ask(t, "gitea", kind, filter)
	if r.code != 0 {
		t.Fatalf("%s %s: exit code %d\n%s", kind, filter, r.code, r.said)
	}
	return inputs
}

// column is one field of all inputs.
func column(inputs []input, field string) []string {
	values := make([]string, len(inputs))
	for i, in := range inputs {
		values[i] = fmt.Sprint(in[field])
	}
	return values
}

func sameList(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (b *workbench) pullRequests(t *testing.T) {
	owner := b.repo.Owner
	label, err := b.repo.Label("deploy/preview")
	must(t, err)
	numbers := map[string]int64{}
	var ids []string
	for n := range proposals {
		branch := fmt.Sprintf("feat/%02d", n)
		title := "Change " + fmt.Sprint(n)
		if n == 7 {
			title = "WIP: not yet"
		}
		numbers[branch], err = b.repo.Propose(branch, title)
		must(t, err)
		ids = append(ids, fmt.Sprint(numbers[branch]))
	}
	fork := b.fork(t)

	all := b.exports(t, "GiteaPullRequest", "{}")
	sameList(t, "all, oldest first, without the fork's", column(all, "id"), ids)
	one := all[7]
	sha, err := b.repo.Head("feat/07")
	must(t, err)
	want := input{
		"id": fmt.Sprint(numbers["feat/07"]), "sha": sha, "branch": "feat/07", "targetBranch": "main", "author": workshop,
		"title": "WIP: not yet", "draft": true, "fork": false, "labels": []any{},
		"url": fmt.Sprintf("%s/pulls/%d", b.repo.URL(), numbers["feat/07"]),
	}
	for field, value := range want {
		if fmt.Sprint(one[field]) != fmt.Sprint(value) {
			t.Errorf("%s: %v, want %v", field, one[field], value)
		}
	}
	for _, field := range []string{"createdAt", "updatedAt"} {
		at, err := time.Parse(time.RFC3339, fmt.Sprint(one[field]))
		if err != nil || time.Since(at).Abs() > time.Hour {
			t.Errorf("%s: %v", field, one[field])
		}
	}
	t.Logf("fields: %q", slices.Sorted(maps.Keys(one)))

	t.Log("labels, filters, limits")
	must(t, b.repo.Mark(numbers["feat/07"], label))
	must(t, b.repo.Mark(numbers["feat/11"], label)) // on the second page
	sameList(t, "with the label", column(b.exports(t, "GiteaPullRequest", `{labels: [deploy/preview]}`), "branch"), []string{"feat/07", "feat/11"})
	sameList(t, "and no draft", column(b.exports(t, "GiteaPullRequest", `{labels: [deploy/preview], draft: false}`), "branch"), []string{"feat/11"})
	sameList(t, "by branch", column(b.exports(t, "GiteaPullRequest", `{includeBranch: "^feat/1", excludeBranch: "1$"}`), "branch"), []string{"feat/10"})
	sameList(t, "by author", column(b.exports(t, "GiteaPullRequest", `{author: somebody}`), "branch"), []string{})
	if n := len(b.exports(t, "GiteaPullRequest", `{limit: 5}`)); n != 5 {
		t.Errorf("%d of at most 5", n)
	}

	t.Log("merged and closed ones are gone")
	var merged error
	if !within(patience, func() bool { merged = b.repo.Merge(numbers["feat/00"]); return merged == nil }) {
		t.Fatal(merged)
	}
	closed := gitea.StateClosed
	_, _, err = owner.EditPullRequest(owner.Name, b.repo.Name, numbers["feat/01"], gitea.EditPullRequestOption{State: &closed})
	must(t, err)
	sameList(t, "open ones", column(b.exports(t, "GiteaPullRequest", "{}"), "id"), ids[2:])
	for _, in := range b.exports(t, "GiteaPullRequest", `{fork: true}`) {
		if in["id"] != fmt.Sprint(fork) || in["fork"] != true {
			t.Errorf("a fork: %v", in)
		}
	}
}

// fork opens a pull request from somebody else's fork.
func (b *workbench) fork(t *testing.T) int64 {
	t.Helper()
	owner := b.repo.Owner
	guest, err := b.forge.NewUser(t.Context(), "guest")
	must(t, err)
	may := gitea.AccessModeRead
	_, err = owner.AddCollaborator(owner.Name, b.repo.Name, guest.Name, gitea.AddCollaboratorOption{Permission: &may})
	must(t, err)
	_, _, err = guest.CreateFork(owner.Name, b.repo.Name, gitea.CreateForkOption{})
	must(t, err)
	theirs := &forge.Repository{Owner: guest, Name: b.repo.Name}
	_, err = theirs.Commit("evil", "Work", map[string]string{"evil.md": "x"})
	must(t, err)
	pr, _, err := guest.CreatePullRequest(owner.Name, b.repo.Name, gitea.CreatePullRequestOption{Head: guest.Name + ":evil", Base: "main", Title: "From a fork"})
	must(t, err)
	return pr.Index
}

func (b *workbench) branches(t *testing.T) {
	inputs := b.exports(t, "GiteaBranch", `{includeBranch: ^release/}`)
	var want []string
	for n := range many {
		want = append(want, fmt.Sprintf("release/%02d", n))
	}
	got := column(inputs, "branch")
	slices.Sort(got)
	sameList(t, "branches", got, want)
	for _, in := range inputs {
		if in["sha"] != b.base {
			t.Errorf("%v is at %v, want %s", in["branch"], in["sha"], b.base)
		}
	}
	head, err := b.repo.Head("main") // has moved
	must(t, err)
	sameList(t, "one", column(b.exports(t, "GiteaBranch", `{includeBranch: "^main$"}`), "sha"), []string{head})
}

func (b *workbench) tags(t *testing.T) {
	if n := len(b.exports(t, "GiteaTag", "{}")); n != many+3 {
		t.Errorf("%d tags, want %d", n, many+3)
	}
	newest := b.exports(t, "GiteaTag", `{semver: ">=0.1.0", limit: 2}`)
	sameList(t, "newest", column(newest, "tag"), []string{"v1.2.0", fmt.Sprintf("v0.%d.0", many-1)})
	sameList(t, "their commits", column(newest, "sha"), []string{b.base, b.base})
	sameList(t, "with candidates", column(b.exports(t, "GiteaTag", `{semver: ">=1.0.0-0"}`), "tag"), []string{"v2.0.0-rc.1", "v1.2.0"})
}

// refusals are answers of a real server that are no lists.
func (b *workbench) refusals(t *testing.T) {
	for _, kind := range []string{"GiteaPullRequest", "GiteaBranch", "GiteaTag"} {
		r, _ := b.ask(t, "expired", kind, "{}")
		if r.code != 1 {
			t.Errorf("%s with a token that is none: exit code %d", kind, r.code)
		}
		mustContain(t, kind, r.said, "error: ResourceSetInputProvider apps/app", "hint: ")
		if strings.Contains(r.said, strings.Repeat("0123456789", 4)) {
			t.Errorf("the token is in\n%s", r.said)
		}
	}
	token, err := b.stranger(t)
	must(t, err)
	b.w.write("tokens/apps/stranger/password", token)
	r, _ := b.ask(t, "stranger", "GiteaBranch", "{}")
	if r.code != 1 {
		t.Errorf("a repository that the token does not see: exit code %d", r.code)
	}
	mustContain(t, "not found", r.said, "error: ResourceSetInputProvider apps/app", "hint: ")

	t.Log("a server that is down")
	b.forge.Kill()
	if r, _ := b.ask(t, "gitea", "GiteaTag", "{}"); r.code != 1 {
		t.Errorf("exit code %d", r.code)
	}
	must(t, b.forge.Again(t.Context()))
	b.exports(t, "GiteaTag", "{}")
}

// stranger is the token of somebody who may not see the repository.
func (b *workbench) stranger(t *testing.T) (string, error) {
	u, err := b.forge.NewUser(t.Context(), "stranger")
	if err != nil {
		return "", err
	}
	return u.Token("read", "read:repository")
}
