// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/internal/gittest"
)

const forgeToken = "forge-s3cret-token"

// A requestWorld is a world that delivers by pull requests: its repository is served
// over HTTP, and a forge stands beside it.
type requestWorld struct {
	*world
	forge interface {
		Break(forgetest.Fault)
		Heal()
		Forget()
		Calls() int
	}
	hosted *forgetest.Repo
	pushes string // file to which the server writes what is pushed over HTTP
}

// newRequestWorld starts like newWorld. More settings of target.pullRequest and target
// can be given.
func newRequestWorld(t *testing.T, forge string, settings ...string) *requestWorld {
	t.Helper()
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	w := &requestWorld{world: newWorld(t)}
	var url string
	switch forge {
	case "gitlab":
		s := forgetest.NewGitLab()
		t.Cleanup(s.Close)
		s.RequireToken(forgeToken)
		w.forge, w.hosted, url = s, s.Repo("org/fleet"), s.URL
	case "gitea":
		s := forgetest.NewGitea()
		t.Cleanup(s.Close)
		s.RequireToken(forgeToken)
		w.forge, w.hosted, url = s, s.Repo("org/fleet"), s.URL
	default:
		s := forgetest.NewGitHub()
		t.Cleanup(s.Close)
		s.RequireToken(forgeToken)
		w.forge, w.hosted, url = s, s.Repo("org/fleet"), s.URL
	}
	w.hosted.Host(w.repo.Dir)
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "org"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(w.repo.Dir, filepath.Join(root, "org", "fleet.git")); err != nil {
		t.Fatal(err)
	}
	w.repo.Config("receive.denyNonFastForwards", "false") // so that only renderer keeps itself from it
	w.pushes = filepath.Join(root, "pushes")
	w.repo.Hook("post-receive", `[ -z "$GATEWAY_INTERFACE" ] || cat >> '`+w.pushes+`'`)
	w.secret("flux-system", "forge", "token", forgeToken+"\n")
	w.cfg = w.config(fmt.Sprintf(`
source: {url: %q, path: ./clusters}
target:
  path: ./clusters/generated
  mode: pull-request
  labels: [generated]
  pullRequest: {forge: %s, baseURL: %q, secret: flux-system/forge%s}
secrets: {directory: %q}
state: {directory: %q}
`, gittest.HTTPServer(t, root, "", "")+"/org/fleet.git", forge, url, strings.Join(settings, ""), w.secrets, t.TempDir()))
	t.Cleanup(w.check)
	return w
}

// check is what holds in every story: renderer pushes to its own branches only, and
// the token stays where it belongs.
func (w *requestWorld) check() {
	for _, line := range w.pushed() {
		if fields := strings.Fields(line); !strings.HasPrefix(fields[2], "refs/heads/renderer/") {
			w.t.Errorf("renderer pushed to %s", fields[2])
		}
	}
	if strings.Contains(w.log.String(), forgeToken) {
		w.t.Error("the token is in the log")
	}
	for _, r := range w.hosted.Requests() {
		if strings.Contains(fmt.Sprint(r), forgeToken) {
			w.t.Errorf("the token is in #%d", r.Number)
		}
	}
}

func (w *requestWorld) pushed() []string {
	data, err := os.ReadFile(w.pushes)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// branches are renderer's own ones, by name without the digest at the end.
func (w *requestWorld) branches() []string {
	w.t.Helper()
	var names []string
	for name := range strings.Lines(w.repo.Git("for-each-ref", "--format=%(refname:short)", "refs/heads/renderer/")) {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name[:len(name)-len("-12345678")])
		}
	}
	return names
}

func (w *requestWorld) branch(name string) string {
	return "renderer/" + name + "-" + branchScope("main", "clusters/generated")
}

// request is the newest one of a branch.
func (w *requestWorld) request(name string) forgetest.Request {
	w.t.Helper()
	var found forgetest.Request
	for _, r := range w.hosted.Requests() {
		if r.Branch == w.branch(name) {
			found = r
		}
	}
	return found
}

// is fails the test unless the newest request of a branch has that number and state.
func (w *requestWorld) is(name string, number int, state string) forgetest.Request {
	w.t.Helper()
	r := w.request(name)
	if r.Number != number || r.State != state {
		w.t.Fatalf("%s has #%d %s, want #%d %s; all: %+v", name, r.Number, r.State, number, state, w.hosted.Requests())
	}
	return r
}

// quiet is a pass that neither pushes anything nor writes to the forge.
func (w *requestWorld) quiet(what string) *Report {
	w.t.Helper()
	before, requests := w.repo.Git("for-each-ref"), fmt.Sprint(w.hosted.Requests())
	report := w.once()
	if after := w.repo.Git("for-each-ref"); after != before {
		w.t.Fatalf("%s: branches moved:\n%s\n%s", what, before, after)
	}
	if after := fmt.Sprint(w.hosted.Requests()); after != requests {
		w.t.Fatalf("%s: requests changed:\n%s\n%s", what, requests, after)
	}
	return report
}

// merge does what a person does with a request's button.
func (w *requestWorld) merge(name, style string) {
	w.t.Helper()
	r := w.request(name)
	commit := func(tree, message string, parents ...string) {
		args := []string{"commit-tree", tree, "-m", message}
		for _, p := range parents {
			args = append(args, "-p", p)
		}
		w.repo.Git("update-ref", "refs/heads/main", w.repo.Git(args...))
	}
	switch style {
	case "merge":
		commit(w.repo.Git("merge-tree", "--write-tree", "main", r.Branch), fmt.Sprintf("Merge pull request #%d", r.Number), "main", r.Branch)
	case "squash":
		commit(w.repo.Git("merge-tree", "--write-tree", "main", r.Branch), fmt.Sprintf("%s (#%d)", r.Title, r.Number), "main")
	case "rebase": // of several commits only where main has not moved
		commits := strings.Fields(w.repo.Git("rev-list", "--reverse", "main.."+r.Branch))
		for _, hash := range commits {
			tree := w.repo.Git("rev-parse", hash+"^{tree}")
			if w.repo.Git("rev-parse", hash+"^") != w.repo.Head("main") && hash == commits[0] {
				tree = w.repo.Git("merge-tree", "--write-tree", "main", hash)
			}
			commit(tree, w.repo.Git("log", "-1", "--format=%B", hash), "main")
		}
	}
	w.hosted.Merged(r.Number)
}

// elsewhere commits something to the target branch that is none of our business.
func (w *requestWorld) elsewhere() {
	w.repo.Commit("main", "Something else", map[string]string{"docs/" + forgetest.SHA(w.repo.Head("main"))[:8]: "x\n"})
}
