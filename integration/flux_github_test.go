// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"

	"resourceset.example/renderer/integration/cluster"
	"resourceset.example/renderer/internal/forgetest"
)

const (
	previews   = "podinfo-preview"     // namespace of the example
	deployable = "deploy/flux-preview" // label of the example
)

// gitHub is the example with what it is written for, as far as a GitHub can be had on
// loopback: the API is a fake of the documented shape, and the test calls the webhook
// as GitHub does.
func (f *fleet) gitHub(t *testing.T) {
	const token = "github_pat_11READONLY0123456789"
	w := newWorld(t)
	github := forgetest.NewGitHub()
	t.Cleanup(github.Close)
	github.RequireToken(token)
	repo := github.Repo("stefanprodan/podinfo")
	w.write("secrets/"+previews+"/github-token-readonly/password", token)
	w.write("secrets/"+previews+"/receiver-token/token", hookToken)
	must(t, f.CreateNamespace(t.Context(), previews))
	const url = "https://github.com/stefanprodan/podinfo"
	w.repo.Commit("main", "Define the preview environments", map[string]string{
		definitions + "/provider.yaml":    seed(t, "preview-environments/provider.yaml", url, repo.WebURL()),
		definitions + "/receiver.yaml":    seed(t, "preview-environments/receiver.yaml"),
		definitions + "/resourceset.yaml": seed(t, "preview-environments/resourceset.yaml"),
		definitions + "/alert.yaml":       seed(t, "preview-environments/alert.yaml"),
	})
	r := w.renderer("renderer")
	run := r.start()
	run.ready()
	sync := &cluster.Sync{Name: "github", URL: r.url, Branch: "main", Path: r.target}
	f.follow(t, sync)
	f.applied(t, sync, w.repo.Head("main"))

	first, second := int64(repo.Open(forgetest.PR{Branch: "feat/footer"})), int64(repo.Open(forgetest.PR{Branch: "fix/header"}))
	repo.Label(int(first), deployable)
	run.calledByGitHub()
	before := f.names(t, helmAPI, "HelmRelease", previews, name(first))
	repo.Label(int(second), deployable)
	sha := forgetest.SHA("pushed")
	repo.Push(int(first), sha)
	run.calledByGitHub()
	both := f.names(t, helmAPI, "HelmRelease", previews, name(first), name(second))
	same(t, before[name(first)], both[name(first)])
	eventually(t, "the push is in the cluster", func() bool {
		o, err := f.Get(t.Context(), cluster.Ref{APIVersion: sourceAPI, Kind: "GitRepository", Namespace: previews, Name: name(first)})
		return err == nil && o != nil && text(o, "spec", "ref", "commit") == sha
	})
	repo.Close(int(first))
	run.calledByGitHub()
	after := f.names(t, helmAPI, "HelmRelease", previews, name(second))
	same(t, both[name(second)], after[name(second)])
	f.names(t, sourceAPI, "GitRepository", previews, name(second))
}

func name(number int64) string { return fmt.Sprintf("podinfo-%d", number) }

// calledByGitHub calls the example's Receiver with a signature.
func (s *service) calledByGitHub() {
	s.t.Helper()
	path := sha256.Sum256([]byte(hookToken + "github-receiver" + previews)) // as Flux computes it
	body := []byte(`{"action":"synchronize"}`)
	mac := hmac.New(sha256.New, []byte(hookToken))
	mac.Write(body)
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.address()+"/hook/"+hex.EncodeToString(path[:]), bytes.NewReader(body))
	must(s.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", "pull_request")
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	must(s.t, err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.t.Errorf("the hook answers %s", resp.Status)
	}
}
