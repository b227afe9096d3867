// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/forgetest"
)

// What the first seed names.
const (
	podinfo      = "stefanprodan/podinfo"
	previewLabel = "deploy/flux-preview"
	readToken    = "github_pat_11READONLY0123456789"
	hookToken    = "receiver-token-0123456789"
)

// newPreviews is the first seed, verbatim, with GitHub as its network.
func newPreviews(t testing.TB) (*fleet, *forgetest.GitHub, *forgetest.Repo) {
	t.Helper()
	f := newFleet(t)
	github := forgetest.NewGitHub()
	t.Cleanup(github.Close)
	github.RequireToken(readToken)
	f.internet.serve("api.github.com", f.public, false, publicGitHub(github))
	f.secret("podinfo-preview", "github-token-readonly", map[string]string{"username": "flux", "password": readToken})
	f.secret("podinfo-preview", "receiver-token", map[string]string{"token": hookToken})
	files := map[string]string{}
	for _, name := range []string{"provider", "receiver", "resourceset", "alert"} {
		files[name+".yaml"] = seed(t, "preview-environments/"+name+".yaml")
	}
	f.define(files)
	return f, github, github.Repo(podinfo)
}

// previewDir is the folder of the first seed's ResourceSet.
const previewDir = "podinfo-preview/podinfo"

// previewFiles are the manifests of one pull request.
func previewFiles(number int) (helmRelease, gitRepository string) {
	folder := fmt.Sprintf("%s/podinfo-pull-requests-%d/podinfo-preview_podinfo-%d_", previewDir, number, number)
	return folder + "helm.toolkit.fluxcd.io_HelmRelease.yaml", folder + "source.toolkit.fluxcd.io_GitRepository.yaml"
}

// treeOf is the list of generated files for these pull requests, in Git's order.
func treeOf(numbers ...int) []string {
	files := []string{"kustomization.yaml", previewDir + "/inputs.lock", previewDir + "/kustomization.yaml"}
	for _, n := range numbers {
		hr, repo := previewFiles(n)
		files = append(files, hr, repo)
	}
	return files
}

// openMany opens 250 pull requests, three pages of them. Numbers 9 (a branch with a
// name that needs care), 120 and 231 have the label; so have 10 and 121, from forks.
func openMany(repo *forgetest.Repo) {
	for n := 1; n <= 250; n++ {
		pr := forgetest.PR{Labels: []string{"bug"}}
		switch n {
		case 9:
			pr = forgetest.PR{Branch: "feat/UI_footer", SHA: forgetest.SHA("footer"), Author: "dependabot[bot]",
				Title: "Footer", Labels: []string{"bug", previewLabel}}
		case 120, 231:
			pr.Labels = append(pr.Labels, previewLabel)
		case 10:
			pr = forgetest.PR{Labels: []string{previewLabel}, Fork: "stranger/podinfo"}
		case 121:
			pr = forgetest.PR{Labels: []string{previewLabel}, ForkDeleted: true}
		}
		repo.Open(pr)
	}
}

// TestPreviewSeed plays the first seed with --once: pull requests come, change and
// go, on three pages of a busy repository.
func TestPreviewSeed(t *testing.T) {
	t.Parallel()
	f, github, repo := newPreviews(t)

	t.Log("no pull request: an empty list that kustomize builds")
	f.once(0)
	f.wantFiles(treeOf()...)
	mustContain(t, "kustomization.yaml", f.repo.Read("main", generated+"/"+previewDir+"/kustomization.yaml"), "resources: []")
	if got := f.built(); len(got) != 0 {
		t.Errorf("built %v out of nothing", got)
	}
	f.quiet(0)

	t.Log("open: three with the label among 250")
	openMany(repo)
	github.Forget()
	r := f.once(0)
	checkGitHubRequests(t, github.Requests())
	mustContain(t, "stdout", r.stdout, "podinfo-preview/podinfo: 3 added, 0 updated, 0 removed")
	f.wantFiles(treeOf(120, 231, 9)...)
	checkPreview(f, 9, forgetest.SHA("footer"), "feat-ui_footer", "dependabot[bot]")
	checkPreview(f, 231, forgetest.SHA(podinfo+"#231"), "feat-231", "octocat")
	if diff := cmp.Diff([]string{
		"HelmRelease/podinfo-preview/podinfo-120", "GitRepository/podinfo-preview/podinfo-120",
		"HelmRelease/podinfo-preview/podinfo-231", "GitRepository/podinfo-preview/podinfo-231",
		"HelmRelease/podinfo-preview/podinfo-9", "GitRepository/podinfo-preview/podinfo-9",
	}, f.built()); diff != "" {
		t.Errorf("kustomize builds (-want +got):\n%s", diff)
	}
	f.quiet(0)

	t.Log("nothing that a template reads: another title, a new commit without the label")
	repo.Retitle(9, "Footer, second try")
	repo.Push(50, forgetest.SHA("unlabelled"))
	f.quiet(0)

	t.Log("push")
	repo.Push(9, forgetest.SHA("footer 2"))
	f.once(0)
	checkPreview(f, 9, forgetest.SHA("footer 2"), "feat-ui_footer", "dependabot[bot]")
	hr, source := previewFiles(9)
	wantChanges(f, "M "+previewDir+"/inputs.lock", "M "+hr, "M "+source)
	wantMessage(f, fmt.Sprintf(`podinfo-preview/podinfo: update 9

9  sha %.7s → %.7s
`, forgetest.SHA("footer"), forgetest.SHA("footer 2")), "Input-Updated: podinfo-pull-requests-9")

	t.Log("label removed, another one given, one closed")
	repo.Unlabel(9, previewLabel)
	repo.Label(50, previewLabel)
	repo.Close(231)
	f.once(0)
	f.wantFiles(treeOf(120, 50)...)
	wantMessage(f, fmt.Sprintf(`podinfo-preview/podinfo: add 50, remove 9, 231

50   feat/50  %.7s  added by GitHubPullRequest podinfo-pull-requests
9    gone from GitHubPullRequest podinfo-pull-requests
231  gone from GitHubPullRequest podinfo-pull-requests
`, forgetest.SHA("unlabelled")),
		"Input-Added: podinfo-pull-requests-50",
		"Input-Removed: podinfo-pull-requests-9", "Input-Removed: podinfo-pull-requests-231")

	t.Log("the last ones closed: the folder stays, and what is in it builds")
	repo.Close(120)
	f.once(0)
	repo.Close(50)
	f.once(0)
	f.wantFiles(treeOf()...)
	if got := f.built(); len(got) != 0 {
		t.Errorf("built %v after the last pull request", got)
	}
	f.quiet(0)
}

// TestRule13_PreviewSeedLimit: at the limit of 100, who was there is not evicted by
// a newcomer, and the cut is said.
func TestRule13_PreviewSeedLimit(t *testing.T) {
	t.Parallel()
	f, _, repo := newPreviews(t)
	for range 100 {
		repo.Open(forgetest.PR{Labels: []string{previewLabel}})
	}
	f.once(0)
	repo.Open(forgetest.PR{Labels: []string{previewLabel}})
	r := f.quiet(0)
	mustContain(t, "stderr", r.stderr, "101", "100", "ResourceSetInputProvider podinfo-preview/podinfo-pull-requests")
	if n := len(f.built()); n != 200 {
		t.Errorf("%d objects, want 200", n)
	}
	repo.Close(7)
	f.once(0)
	mustContain(t, "subject", f.message("main"), "podinfo-preview/podinfo: add 101, remove 7\n")
}

// checkGitHubRequests: every page of open pull requests was read once, at the public
// API, with the token. Asking whether one moved meanwhile costs no rate limit.
func checkGitHubRequests(t testing.TB, requests []*http.Request) {
	t.Helper()
	var pages []string
	for _, r := range requests {
		page := r.URL.Query().Get("page")
		if page == "" {
			page = "1"
		}
		if r.Header.Get("If-None-Match") == "" {
			pages = append(pages, page)
		}
		if r.Host != "api.github.com" || r.TLS == nil {
			t.Errorf("a request went to %s (TLS: %t)", r.Host, r.TLS != nil)
		}
		if got := r.Header.Get("Authorization"); got != "Bearer "+readToken {
			t.Errorf("Authorization of %s is %q", r.URL, got)
		}
		if !strings.HasPrefix(r.Header.Get("User-Agent"), "renderer/") {
			t.Errorf("User-Agent is %q", r.Header.Get("User-Agent"))
		}
	}
	if diff := cmp.Diff([]string{"1", "2", "3"}, pages); diff != "" {
		t.Errorf("pages read (-want +got):\n%s", diff)
	}
	if len(requests) > 0 && requests[0].URL.Path != "/api/v3/repos/"+podinfo+"/pulls" {
		t.Errorf("asked for %s", requests[0].URL.Path)
	}
}

// checkPreview compares what the seed says of one pull request's objects.
func checkPreview(f *fleet, number int, sha, branch, author string) {
	t := f.t
	t.Helper()
	name := fmt.Sprintf("podinfo-%d", number)
	hrFile, repoFile := previewFiles(number)
	repo := f.manifest(repoFile)
	wantField(t, repo, "metadata|name", name)
	wantField(t, repo, "spec|url", "https://github.com/"+podinfo)
	wantField(t, repo, "spec|ref|commit", sha)
	wantField(t, repo, "spec|secretRef|name", "github-token-readonly")
	hr := f.manifest(hrFile)
	wantField(t, hr, "metadata|name", name)
	wantField(t, hr, "metadata|namespace", "podinfo-preview")
	wantField(t, hr, "metadata|annotations", map[string]any{
		"event.toolkit.fluxcd.io/preview-url": "https://" + name + ".example.com",
		"event.toolkit.fluxcd.io/branch":      branch,
		"event.toolkit.fluxcd.io/author":      author,
	})
	wantField(t, hr, "metadata|labels", map[string]any{
		"resourceset.fluxcd.controlplane.io/name":      "podinfo",
		"resourceset.fluxcd.controlplane.io/namespace": "podinfo-preview",
	})
	wantField(t, hr, "spec|releaseName", name)
	wantField(t, hr, "spec|chart|spec|sourceRef", map[string]any{"kind": "GitRepository", "name": name})
	wantField(t, hr, "spec|values|image|tag", sha)
	wantField(t, hr, "spec|values|ingress|hosts|host", name+".example.com")
}

// wantChanges compares what the last commit touched.
func wantChanges(f *fleet, want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.changes()); diff != "" {
		f.t.Errorf("files in the commit (-want +got):\n%s", diff)
	}
}

// wantMessage compares the last commit's message: what people read, and its
// trailers, of which those of every commit are filled in.
func wantMessage(f *fleet, text string, inputs ...string) {
	f.t.Helper()
	message := f.message("main")
	if got, _, _ := strings.Cut(message, "\nResourceSet: "); got != text {
		f.t.Errorf("message (-want +got):\n%s", cmp.Diff(text, got))
	}
	trailers := f.trailers("main")
	var own []string
	for _, line := range trailers {
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "ResourceSet", "Trigger":
		case "Source-Revision":
			if value != "main@sha1:"+f.repo.Git("rev-parse", "main^") {
				f.t.Errorf("%s is not the commit before", line)
			}
		case "Inputs-Digest":
			if len(value) != len("sha256:")+64 {
				f.t.Errorf("odd trailer %q", line)
			}
		default:
			own = append(own, line)
		}
	}
	if diff := cmp.Diff(inputs, own); diff != "" {
		f.t.Errorf("trailers (-want +got):\n%s", diff)
	}
	if len(trailers) != len(inputs)+4 {
		f.t.Errorf("trailers: %q", trailers)
	}
}
