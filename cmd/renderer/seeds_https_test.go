// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"path/filepath"
	"testing"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/internal/gittest"
)

// A Git server of one's own: reached through the proxy of the environment, with a
// certificate of a private authority, which asks for a client certificate and a token.
func TestGitOverHTTPSThroughProxy(t *testing.T) {
	t.Parallel()
	f, orchestrator := newTenants(t, verbatim())
	ca, err := forgetest.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := ca.Issue("renderer")
	if err != nil {
		t.Fatal(err)
	}
	const token = "a-token-for-git-over-https"
	git := gittest.HTTPHandler(t, filepath.Dir(f.repo.Dir), "", "")
	f.internet.serve("git.example.com", ca, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		git.ServeHTTP(w, r)
	}))
	f.url = "https://git.example.com/" + filepath.Base(f.repo.Dir)
	f.auth = "flux-system/git"
	credentials := map[string]string{
		"bearerToken": token, "ca.crt": string(ca.PEM()), "tls.crt": string(cert), "tls.key": string(key)}
	f.secret("flux-system", "git", credentials)

	f.once(0)
	wantTenants(f, "tenant1", "tenant2")
	orchestrator.Update("tenant", "tenant2", "version", "2.0.0")
	f.once(0)
	checkTenant(f, "tenant2", "2.0.0", "feature1,feature2")
	f.quiet(0)

	// Without the client certificate, and without the authority, nothing is written.
	for _, missing := range []string{"tls.crt", "ca.crt"} {
		partial := map[string]string{"bearerToken": token}
		if missing != "ca.crt" {
			partial["ca.crt"] = credentials["ca.crt"]
		}
		f.secret("flux-system", "git", partial)
		r := f.quiet(1)
		mustContain(t, "stderr without "+missing, r.stderr, "git.example.com")
	}
	f.secret("flux-system", "git", credentials)
	f.quiet(0)
}
