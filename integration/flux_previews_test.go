// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/integration/cluster"
	"resourceset.example/renderer/integration/forge"
)

// A preview is the example with pull requests on a real forge: the application's
// repository, the one that renderer reads and writes, and people who work in both.
type preview struct {
	*fleet
	t     *testing.T
	forge *forge.Forge
	app   *forge.Repository
	defs  *forge.Repository
	label int64
	setup *setup
	sync  *cluster.Sync
}

// previewEnvironments opens, changes and merges pull requests; what is in the cluster
// follows, called by the forge's own webhook. Nothing else would tell renderer within
// the time of the test: the example polls every ten minutes.
func (f *fleet) previewEnvironments(t *testing.T) {
	p := newPreview(t, f)
	run := p.start()

	first := p.propose("feat/footer", "A footer")
	began := time.Now()
	p.mark(first)
	footer := p.environments(first)
	t.Logf("in the cluster %s after the label", time.Since(began).Round(time.Millisecond))
	p.shows(first, "feat/footer")
	p.saysWebhook()

	t.Log("a push updates the environment in place")
	sha, err := p.app.Commit("feat/footer", "Move the footer", map[string]string{"ui/footer.html": "<footer/>"})
	must(t, err)
	began = time.Now()
	p.at(first, sha)
	t.Logf("in the cluster %s after the push", time.Since(began).Round(time.Millisecond))

	t.Log("a second one leaves the first alone")
	second := p.propose("fix/header", "A header")
	p.mark(second)
	both := p.environments(first, second)
	same(t, footer[name(first)], both[name(first)])
	p.fetches(second)

	t.Log("the forge is down for a while: nothing goes")
	p.forge.Kill()
	eventually(t, "renderer and Flux have found that out", func() bool {
		o, err := p.Get(t.Context(), p.sync.Repository())
		if err != nil || o == nil {
			return false
		}
		status, _, _ := cluster.ReadyWhy(o)
		return status == "False" && strings.Contains(run.logged(), "source repository: ")
	})
	same(t, both[name(second)], p.environments(first, second)[name(second)])
	must(t, p.forge.Again(t.Context()))
	third := p.propose("chore/deps", "Newer modules")
	p.mark(third)
	p.environments(first, second, third)

	t.Log("a merge prunes its environment, and no other")
	p.merge(first)
	after := p.environments(second, third)
	same(t, both[name(second)], after[name(second)])

	t.Log("merged while nobody listens: the next start finds it")
	if code := run.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.merge(second)
	p.start()
	p.environments(third)
}

func newPreview(t *testing.T, f *fleet) *preview {
	t.Helper()
	p := &preview{fleet: f, t: t, forge: newForge(t)}
	dev, err := p.forge.NewUser(t.Context(), "stefanprodan")
	must(t, err)
	p.app, err = dev.NewRepository("podinfo")
	must(t, err)
	p.defs, err = dev.NewRepository("fleet")
	must(t, err)
	p.label, err = p.app.Label(deployable)
	must(t, err)
	read, err := dev.Token("read", "read:repository")
	must(t, err)
	write, err := dev.Token("write", "write:repository")
	must(t, err)

	w := newWorld(t)
	const github = "https://github.com/stefanprodan/podinfo"
	p.setup = w.renderer("renderer")
	p.setup.url, p.setup.auth = p.defs.CloneURL(), "flux-system/git-credentials"
	p.setup.extra = "events: [{url: " + f.EventsURL() + "}]\n"
	for name, value := range map[string]string{
		"flux-system/git-credentials/username":       dev.Name,
		"flux-system/git-credentials/password":       write,
		previews + "/github-token-readonly/username": dev.Name,
		previews + "/github-token-readonly/password": read,
		previews + "/receiver-token/token":           hookToken,
	} {
		w.write("secrets/"+name, value)
	}
	_, err = p.defs.Commit("main", "Define the preview environments", map[string]string{
		definitions + "/provider.yaml":    seed(t, "preview-environments/provider.yaml", github, p.app.URL(), "GitHubPullRequest", "GiteaPullRequest"),
		definitions + "/receiver.yaml":    seed(t, "preview-environments/receiver.yaml"),
		definitions + "/resourceset.yaml": seed(t, "preview-environments/resourceset.yaml", github, p.app.CloneURL()),
		definitions + "/alert.yaml":       seed(t, "preview-environments/alert.yaml"),
	})
	must(t, err)

	must(t, f.CreateNamespace(t.Context(), previews))
	must(t, f.Apply(t.Context(), fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: github-token-readonly, namespace: %s}
stringData: {username: %q, password: %q}
`, previews, dev.Name, read)))
	p.sync = &cluster.Sync{Name: "previews", URL: p.defs.CloneURL(), Branch: "main", Path: generated, Username: dev.Name, Password: read}
	return p
}

// start runs renderer, and tells the forge and Flux of it.
func (p *preview) start() *service {
	p.t.Helper()
	run := p.setup.start()
	run.ready()
	sum := sha256.Sum256([]byte(hookToken + "github-receiver" + previews)) // as Flux computes it
	must(p.t, p.app.Hook(run.address()+"/hook/"+hex.EncodeToString(sum[:]), hookToken))
	if o, err := p.Get(p.t.Context(), p.sync.Kustomization()); err != nil {
		p.t.Fatal(err)
	} else if o == nil {
		p.follow(p.t, p.sync)
	}
	return run
}

func (p *preview) propose(branch, title string) int64 {
	p.t.Helper()
	_, err := p.app.Commit(branch, title, map[string]string{"docs/" + strings.ReplaceAll(branch, "/", "-") + ".md": title})
	must(p.t, err)
	number, err := p.app.Propose(branch, title)
	must(p.t, err)
	return number
}

func (p *preview) mark(number int64) {
	p.t.Helper()
	must(p.t, p.app.Mark(number, p.label))
}

// merge waits for the forge to find out that there is no conflict.
func (p *preview) merge(number int64) {
	p.t.Helper()
	var err error
	if !within(patience, func() bool { err = p.app.Merge(number); return err == nil }) {
		p.t.Fatal(err)
	}
}

// environments waits until the cluster has exactly those of these pull requests, and
// returns their HelmReleases.
func (p *preview) environments(numbers ...int64) map[string]kubeObject {
	p.t.Helper()
	var want []string
	for _, n := range numbers {
		want = append(want, name(n))
	}
	releases := p.names(p.t, helmAPI, "HelmRelease", previews, want...)
	p.names(p.t, sourceAPI, "GitRepository", previews, want...)
	return releases
}

// shows compares an environment with the pull request.
func (p *preview) shows(number int64, branch string) {
	p.t.Helper()
	sha, err := p.app.Head(branch)
	must(p.t, err)
	p.at(number, sha)
	o, err := p.Get(p.t.Context(), cluster.Ref{APIVersion: helmAPI, Kind: "HelmRelease", Namespace: previews, Name: name(number)})
	must(p.t, err)
	notes := o.GetAnnotations()
	if got := notes["event.toolkit.fluxcd.io/branch"]; got != strings.ReplaceAll(branch, "/", "-") {
		p.t.Errorf("branch: %q", got)
	}
	if got := notes["event.toolkit.fluxcd.io/author"]; got != p.app.Owner.Name {
		p.t.Errorf("author: %q", got)
	}
}

// at waits until an environment is at a commit.
func (p *preview) at(number int64, sha string) {
	p.t.Helper()
	eventually(p.t, name(number)+" at "+sha, func() bool {
		o, err := p.Get(p.t.Context(), cluster.Ref{APIVersion: helmAPI, Kind: "HelmRelease", Namespace: previews, Name: name(number)})
		return err == nil && o != nil && text(o, "spec", "values", "image", "tag") == sha
	})
	eventually(p.t, "the source of "+name(number)+" at "+sha, func() bool { // Flux applies them one after the other
		o, err := p.Get(p.t.Context(), cluster.Ref{APIVersion: sourceAPI, Kind: "GitRepository", Namespace: previews, Name: name(number)})
		return err == nil && o != nil && text(o, "spec", "ref", "commit") == sha
	})
}

// fetches waits until Flux has fetched the pull request's commit from the forge.
func (p *preview) fetches(number int64) {
	p.t.Helper()
	eventually(p.t, "an artifact of "+name(number), func() bool {
		o, err := p.Get(p.t.Context(), cluster.Ref{APIVersion: sourceAPI, Kind: "GitRepository", Namespace: previews, Name: name(number)})
		return err == nil && o != nil && text(o, "spec", "ref", "commit") != "" &&
			strings.HasSuffix(text(o, "status", "artifact", "revision"), text(o, "spec", "ref", "commit"))
	})
}

// saysWebhook checks that the last commit names its cause.
func (p *preview) saysWebhook() {
	p.t.Helper()
	head, err := p.defs.Head("main")
	must(p.t, err)
	c, _, err := p.defs.Owner.GetSingleCommit(p.defs.Owner.Name, p.defs.Name, head)
	must(p.t, err)
	mustContain(p.t, "the commit", c.RepoCommit.Message, "\nTrigger: webhook", "ResourceSet: "+previews+"/podinfo")
}
