// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/internal/gittest"
)

const gitPassword = "git-password-0123456789"

// TestRule06_CompetingPusher plays the second seed over the network, while somebody
// else pushes to the same branch between renderer's look at it and its push. Theirs
// stays, ours lands on top, in the same pass.
func TestRule06_CompetingPusher(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(f *fleet, orchestrator *forgetest.Orchestrator) (compete func(push func())){
		// The competitor comes when our push has seen the old head and is on its way.
		"http with basic auth": func(f *fleet, _ *forgetest.Orchestrator) func(func()) {
			front := &pushFront{next: gittest.HTTPHandler(f.t, filepath.Dir(f.repo.Dir), "renderer", gitPassword)}
			server := httptest.NewServer(front)
			f.t.Cleanup(server.Close)
			f.url = server.URL + "/" + filepath.Base(f.repo.Dir)
			f.auth = "flux-system/git"
			f.secret("flux-system", "git", map[string]string{"username": "renderer", "password": gitPassword})
			return front.before
		},
		// The competitor comes when we have seen the head and ask the orchestrator.
		"ssh with key and known_hosts": func(f *fleet, orchestrator *forgetest.Orchestrator) func(func()) {
			server := gittest.SSHServer(f.t)
			f.url = server.URL + f.repo.Dir
			f.auth = "flux-system/git"
			f.secret("flux-system", "git", map[string]string{
				"identity": string(server.Identity), "known_hosts": string(server.KnownHosts)})
			return func(push func()) { orchestrator.Break(meanwhile(push)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, orchestrator := newTenants(t, verbatim())
			compete := connect(f, orchestrator)
			f.once(0)
			wantTenants(f, "tenant1", "tenant2")

			t.Log("files of others beside ours")
			hr, _ := tenantFiles("tenant1")
			folder := strings.TrimSuffix(hr, "/apps_app1-tenant1_helm.toolkit.fluxcd.io_HelmRelease.yaml")
			foreign := map[string]string{
				"README.md":                          "# Fleet\n",
				generated + "/OWNERS":                "platform\n",
				generated + "/" + folder + "/notes":  "call them first\n",
				"clusters/production/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps}\n",
			}
			f.repo.Commit("main", "Notes", foreign)
			f.quiet(0)

			t.Log("a push in between")
			clone := f.repo.Clone("main")
			clone.Write(map[string]string{"CHANGELOG.md": "one\n"})
			orchestrator.Update("tenant", "tenant2", "version", "2.0.0")
			compete(func() { clone.CommitAndPush("Log") })
			r := f.once(0)
			orchestrator.Heal()
			checkTenant(f, "tenant2", "2.0.0", "feature1,feature2")
			if got := f.repo.Git("log", "-2", "--format=%s", "main"); got != "apps/app1: update tenant2\nLog" {
				t.Errorf("the last two commits:\n%s", got)
			}
			mustContain(t, "stdout", r.stdout, "apps/app1: 0 added, 1 updated, 0 removed")

			t.Log("a tenant goes; what others put into its folder stays")
			orchestrator.Remove("tenant", "tenant1")
			f.once(0)
			foreign["CHANGELOG.md"] = "one\n"
			for file, content := range foreign {
				if got := f.repo.Read("main", file); got != content {
					t.Errorf("%s is %q now", file, got)
				}
			}
			if n := len(f.built()); n != 2 {
				t.Errorf("kustomize builds %d objects, want 2", n)
			}
			f.quiet(0)
		})
	}
}

// A pushFront does something once, before the server gets the next push.
type pushFront struct {
	next http.Handler
	mu   sync.Mutex
	do   func()
}

func (p *pushFront) before(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.do = do
}

func (p *pushFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
		p.mu.Lock()
		do := p.do
		p.do = nil
		p.mu.Unlock()
		if do != nil {
			do()
		}
	}
	p.next.ServeHTTP(w, r)
}

// meanwhile does something once, when a request comes in, and has it answered.
func meanwhile(fn func()) forgetest.Fault {
	do := sync.OnceFunc(fn)
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		do()
		next.ServeHTTP(w, r)
	}
}

// TestGitCredentialsAreWrong: a server that does not let renderer in is a failure
// that names the repository and the secret, and never the password.
func TestGitCredentialsAreWrong(t *testing.T) {
	t.Parallel()
	f, _ := newTenants(t, verbatim())
	f.url = f.repo.HTTP("renderer", gitPassword)
	f.auth = "flux-system/git"
	f.secret("flux-system", "git", map[string]string{"username": "renderer", "password": "an-old-password-0123456789"})
	r := f.quiet(1)
	mustContain(t, "stderr", r.stderr, "renderer: error: ", "repo.git", "renderer: hint: ")
}
