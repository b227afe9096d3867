// SPDX-License-Identifier: Apache-2.0

package azuredevops

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

const (
	testToken = "azd0-t0k3n/of+the test"
	pageSize  = 8
)

// web starts a server with one repository.
func web(t *testing.T) (*forgetest.AzureDevOps, *forgetest.Repo, provider.Config) {
	t.Helper()
	server := forgetest.NewAzureDevOps()
	t.Cleanup(server.Close)
	server.LimitPages(pageSize)
	return server, server.Repo("acme/My Project/web"), provider.Config{
		Object: &api.ResourceSetInputProvider{
			Meta: api.Meta{Name: "web", Namespace: "apps"},
			Spec: api.InputProviderSpec{URL: server.URL + "/acme/My%20Project/_git/web"},
		},
		UserAgent: "renderer/test", RetryWait: time.Millisecond,
	}
}

func newPulls(t *testing.T, cfg provider.Config) *PullRequests {
	t.Helper()
	p, err := NewPullRequests(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func page(r *http.Request) int {
	from, _ := strconv.Atoi(r.URL.Query().Get("$skip"))
	if token := r.URL.Query().Get("continuationToken"); token != "" {
		from, _ = strconv.Atoi(strings.TrimPrefix(token, "from "))
	}
	return from/pageSize + 1
}

func TestContract(t *testing.T) {
	kinds := []providertest.Kind{
		providertest.Requests(pageSize, NewPullRequests), providertest.Branches(pageSize, NewBranches), providertest.Tags(pageSize, NewTags),
	}
	// The first one has a label, as somewhere one has, so that nobody is asked for his.
	kinds[0].Add = func(r *forgetest.Repo, _ int) { r.Open(forgetest.PR{Labels: []string{"deploy"}}) }
	for i := range kinds {
		kinds[i].PageOf = page
	}
	providertest.Contracts(t, "password", func(t *testing.T) (providertest.Server, *forgetest.Repo, provider.Config) {
		server, repo, cfg := web(t)
		server.RequireToken(testToken)
		cfg.Secret = provider.Secret{"password": []byte(testToken), "username": []byte("flux")}
		return server, repo, cfg
	}, kinds...)
}

func TestFields(t *testing.T) {
	server, repo, cfg := web(t)
	repo.Open(forgetest.PR{
		Branch: "feat/ui-footer", SHA: "bf5d6e01cf802734853f6f3417b237e3ad0ba35d", Title: `feat(ui): "Add" footer`,
		Author: "Ada L.", Labels: []string{"enhancement", "deploy/flux-preview"}, Draft: true, Target: "release/6.x",
	})
	repo.Open(forgetest.PR{Ghost: true, SHA: "6063e25000000000000000000000000000000000"}) // FR-21: stays a text
	got := providertest.Fetch(t, newPulls(t, cfg), nil).Inputs
	want := api.Input{
		"id": "1", "sha": "bf5d6e01cf802734853f6f3417b237e3ad0ba35d", "branch": "feat/ui-footer", "targetBranch": "release/6.x",
		"title": `feat(ui): "Add" footer`, "author": "Ada L.", "labels": []any{"deploy/flux-preview", "enhancement"},
		"url": server.URL + "/acme/My%20Project/_git/web/pullrequest/1", "draft": true, "fork": false, "createdAt": "2026-01-05T09:01:00Z",
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got[1]["author"] != "ghost" || got[1]["sha"] != "6063e25000000000000000000000000000000000" {
		t.Errorf("got %v", got[1])
	}
	if a, b := slices.Sorted(maps.Keys(got[0])), slices.Sorted(maps.Keys(got[1])); !slices.Equal(a, b) {
		t.Errorf("fields %v and %v differ", a, b)
	}
	if asked := server.Calls(); asked != 3 {
		t.Errorf("%d requests, want two pages and the first one again", asked)
	}
	server.Forget()
	if p := newPulls(t, cfg); providertest.Fetch(t, p, nil).Matched == 2 {
		server.Forget()
		providertest.Fetch(t, p, nil)
		if asked := server.Calls(); asked != 2 {
			t.Errorf("%d requests for a list that stands still, want 2", asked)
		}
	}
}

// FR-84: a fork is one by its repository, however its branch is called.
func TestRule11_Forks(t *testing.T) {
	_, repo, cfg := web(t)
	repo.Open(forgetest.PR{Branch: "main"})
	repo.Open(forgetest.PR{Branch: "main", Fork: "stranger/p/web"})
	result := providertest.Fetch(t, newPulls(t, cfg), nil)
	if providertest.Texts(result, "id") != "1" || result.Forks != 1 {
		t.Errorf("got %q, %d forks", providertest.Texts(result, "id"), result.Forks)
	}
	cfg.Object.Annotations = map[string]string{api.AnnotationAllowForks: "true"}
	result = providertest.Fetch(t, newPulls(t, cfg), nil)
	if providertest.Texts(result, "id") != "1 2" || providertest.Texts(result, "fork") != "false true" {
		t.Errorf("allowed: got %v", result.Inputs)
	}
}

// FR-03: a sign-in page is a refused credential, however it comes.
func TestFR03_SignIn(t *testing.T) {
	for name, fault := range map[string]forgetest.Fault{
		"status 203":         forgetest.SignIn(),
		"redirect on a host": forgetest.Redirect("/_signin?realm=dev.azure.com"),
		"redirect elsewhere": forgetest.Redirect("https://spsprodweu4.vssps.visualstudio.com/_signin?realm=dev.azure.com"),
		"redirect to Entra":  forgetest.Redirect("https://login.microsoftonline.com/common/oauth2/authorize"),
		"status 401":         forgetest.Answer(http.StatusUnauthorized, "", ""),
	} {
		t.Run(name, func(t *testing.T) {
			server, repo, cfg := web(t)
			cfg.Secret = provider.Secret{"password": []byte(testToken)}
			repo.Open(forgetest.PR{})
			p := newPulls(t, cfg)
			before := providertest.Fetch(t, p, nil)
			server.Break(fault)
			result, err := p.Fetch(t.Context(), before.Inputs)
			if provider.ReasonOf(err) != provider.Auth || result.Inputs != nil {
				t.Errorf("got %v, %v", result.Inputs, err)
			}
		})
	}
	t.Run("200 and HTML", func(t *testing.T) {
		server, _, cfg := web(t)
		server.Break(forgetest.Page())
		if _, err := newPulls(t, cfg).Fetch(t.Context(), nil); provider.ReasonOf(err) != provider.Implausible {
			t.Errorf("got %v", err)
		}
	})
}

// FR-02: a server that keeps labels out of lists is asked for each one's, and when
// one of these requests fails, so does the fetch.
func TestRule01_Labels(t *testing.T) {
	server, repo, cfg := web(t)
	server.HideLabels = true
	repo.Open(forgetest.PR{Labels: []string{"deploy"}})
	repo.Open(forgetest.PR{Labels: []string{"deploy", "x"}})
	repo.Open(forgetest.PR{})
	cfg.Object.Spec.Filter.Labels = []string{"deploy"}
	p := newPulls(t, cfg)
	before := providertest.Fetch(t, p, nil)
	if providertest.Texts(before, "id") != "1 2" || providertest.Texts(before, "labels") != "[deploy] [deploy x]" {
		t.Errorf("got %v", before.Inputs)
	}
	for name, fault := range map[string]forgetest.Fault{
		"down": forgetest.Status(http.StatusServiceUnavailable, "later"), "gone": forgetest.Status(http.StatusNotFound, "no"),
		"null": forgetest.JSON("null"), "no names": forgetest.JSON(`{"value":[{}],"count":1}`), "cut": forgetest.JSON(`{"value":[],"count":1}`),
		"sign-in": forgetest.SignIn(),
	} {
		server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasSuffix(r.URL.Path, "/pullRequests/2/labels") {
				fault(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		})
		result, err := p.Fetch(t.Context(), before.Inputs)
		if err == nil || result.Inputs != nil || !strings.Contains(err.Error(), "labels of pull request 2") {
			t.Errorf("%s: got %v, %v", name, result.Inputs, err)
		}
	}
}

// Labels that are asked for one by one are asked for once a pass.
func TestLabelsAreSharedInAPass(t *testing.T) {
	server, repo, cfg := web(t)
	server.HideLabels = true
	for _, labels := range [][]string{{"deploy"}, {"deploy", "x"}, nil} {
		repo.Open(forgetest.PR{Labels: labels})
	}
	cfg.Object.Spec.Filter.Labels = []string{"deploy"}
	p := newPulls(t, cfg)
	providertest.Fetch(t, p, nil) // and the first reading of a list, which is verified
	server.Forget()
	ctx := provider.WithPass(t.Context())
	for range 2 {
		if result, err := p.Fetch(ctx, nil); err != nil || providertest.Texts(result, "id") != "1 2" {
			t.Errorf("got %v, %v", result.Inputs, err)
		}
	}
	if asked := server.Calls(); asked != 5 { // two pages and three pull requests, once a pass
		t.Errorf("%d requests in one pass", asked)
	}
	// A list that has the labels of one has those of all.
	server.HideLabels = false
	server.Forget()
	if got := providertest.Texts(providertest.Fetch(t, p, nil), "id"); got != "1 2" || slices.ContainsFunc(server.Requests(), func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/labels") }) {
		t.Errorf("got %q", got)
	}
}

// A list that moves while it is read is read again (rule 1, FR-05): the newest come
// first, so that one that opens moves all.
func TestRule01_ListMoves(t *testing.T) {
	for name, change := range map[string]func(*forgetest.Repo){
		"one opens":            func(r *forgetest.Repo) { r.Open(forgetest.PR{Labels: []string{"x"}}) },
		"one closes on page 1": func(r *forgetest.Repo) { r.Close(14) },
		"one closes on page 2": func(r *forgetest.Repo) { r.Close(2) },
	} {
		t.Run(name, func(t *testing.T) {
			server, repo, cfg := web(t)
			for range 15 {
				repo.Open(forgetest.PR{Labels: []string{"x"}})
			}
			changed := false
			server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				next.ServeHTTP(w, r)
				if page(r) == 1 && !changed {
					changed = true
					change(repo)
				}
			})
			moving := providertest.Fetch(t, newPulls(t, cfg), nil)
			server.Heal()
			if still := providertest.Fetch(t, newPulls(t, cfg), nil); providertest.Texts(moving, "id") != providertest.Texts(still, "id") {
				t.Errorf("got  %s\nwant %s", providertest.Texts(moving, "id"), providertest.Texts(still, "id"))
			}
		})
	}
}

// An answer that is not the whole of its page is none (rule 1, FR-07).
func TestRule01_Pages(t *testing.T) {
	for name, body := range map[string]string{
		"count is another": `{"value":[],"count":3}`,
		"no count":         `{"value":[]}`,
		"no value":         `{"count":0}`,
		"bare list":        `[]`,
		"another ref":      `{"value":[{"name":"refs/pull/1/merge","objectId":"a"}],"count":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			server, _, cfg := web(t)
			server.Break(forgetest.JSON(body))
			branches, err := NewBranches(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := branches.Fetch(t.Context(), nil); provider.ReasonOf(err) != provider.Implausible {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("the same page for ever", func(t *testing.T) {
		server, _, cfg := web(t)
		server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			w.Header().Set("X-Ms-Continuationtoken", "again")
			forgetest.JSON(`{"value":[{"name":"refs/heads/a","objectId":"b"}],"count":1}`)(w, r, next)
		})
		branches, err := NewBranches(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := branches.Fetch(t.Context(), nil); provider.ReasonOf(err) != provider.Implausible || server.Calls() > 20 {
			t.Errorf("got %v after %d requests", err, server.Calls())
		}
	})
}

func TestRefs(t *testing.T) {
	server, repo, cfg := web(t)
	// FR-10: two names with one checksum.
	repo.SetBranch("fix/cbc", forgetest.SHA("cccc"))
	repo.SetBranch("fix/bdb", forgetest.SHA("bbbb"))
	repo.SetBranch("main", forgetest.SHA("aaaa"))
	repo.SetTag("v1.2.0", forgetest.SHA("dddd")) // annotated: its commit counts
	repo.SetTag("1.10.0", forgetest.SHA("eeee"))
	cfg.Object.Spec.Filter = api.Filter{ExcludeBranch: "^main$"}
	branches, err := NewBranches(cfg)
	if err != nil {
		t.Fatal(err)
	}
	want := []api.Input{
		{"id": "178979487", "branch": "fix/bdb", "sha": forgetest.SHA("bbbb")},
		{"id": "178979487", "branch": "fix/cbc", "sha": forgetest.SHA("cccc")},
	}
	if diff := cmp.Diff(want, providertest.Fetch(t, branches, nil).Inputs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cfg.Object.Spec.Filter = api.Filter{Semver: ">=1.0.0"}
	tags, err := NewTags(cfg)
	if err != nil {
		t.Fatal(err)
	}
	result := providertest.Fetch(t, tags, nil)
	if providertest.Texts(result, "tag") != "1.10.0 v1.2.0" || providertest.Texts(result, "sha") != forgetest.SHA("eeee")+" "+forgetest.SHA("dddd") {
		t.Errorf("got %v", result.Inputs)
	}
	if asked := server.Calls(); asked != 2 {
		t.Errorf("%d requests, want 2", asked)
	}
}

// FR-101: providers on one repository share a listing.
func TestSharedListing(t *testing.T) {
	server, repo, cfg := web(t)
	repo.Open(forgetest.PR{Labels: []string{"a"}})
	repo.Open(forgetest.PR{Labels: []string{"b"}})
	cfg.Shared = &provider.Shared{}
	ctx := provider.WithPass(t.Context())
	var all []*PullRequests
	for _, label := range []string{"a", "b", "b"} {
		own := cfg
		own.Object = &api.ResourceSetInputProvider{Spec: cfg.Object.Spec}
		own.Object.Spec.Filter.Labels = []string{label}
		all = append(all, newPulls(t, own))
	}
	for i, p := range all {
		if result, err := p.Fetch(ctx, nil); err != nil || providertest.Texts(result, "id") != []string{"1", "2", "2"}[i] {
			t.Errorf("got %v, %v", result.Inputs, err)
		}
	}
	if asked := server.Calls(); asked != 3 {
		t.Errorf("%d requests for three providers", asked)
	}
}

func TestSkip(t *testing.T) {
	_, repo, cfg := web(t)
	cfg.Object.Spec.Skip.Labels = []string{"pause"}
	repo.Open(forgetest.PR{SHA: forgetest.SHA("aaaa")})
	p := newPulls(t, cfg)
	before := providertest.Fetch(t, p, nil)
	repo.Push(1, forgetest.SHA("bbbb"))
	repo.Label(1, "pause")
	if got := providertest.Fetch(t, p, nil, before.Inputs...); providertest.Texts(got, "sha") != forgetest.SHA("aaaa") || got.Frozen != 1 {
		t.Errorf("got %v", got.Inputs)
	}
}

func FuzzList(f *testing.F) {
	for _, seed := range []string{
		`{"value":[{"pullRequestId":1,"status":"active","title":"t","isDraft":true,"creationDate":"2026-01-01T00:00:00.1Z","sourceRefName":"refs/heads/a","targetRefName":"refs/heads/b","lastMergeSourceCommit":{"commitId":"c"},"forkSource":{},"labels":[{"name":"l","active":true}]}],"count":1}`,
		`{"value":[{"name":"refs/tags/v1","objectId":"a","peeledObjectId":"b"}],"count":1}`, `{"value":[{"name":"l"}],"count":1}`, `null`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if labels, err := decodeLabels(body); err == nil && slices.Contains(labels, "") {
			t.Errorf("labels %q", labels)
		}
		raw, err := values(body, "things")
		if err != nil {
			return
		}
		for _, item := range raw {
			if pull, key, err := decodePull(item); err == nil && (key != pull.ID || pull.Branch == "" || pull.SHA == "" || pull.TargetBranch == "" || slices.Contains(pull.Labels, "")) {
				t.Errorf("read %+v", pull)
			}
			if ref, key, err := decodeRef(item, "refs/tags/"); err == nil && (key != ref.Name || key == "" || ref.SHA == "") {
				t.Errorf("read %+v", ref)
			}
		}
	})
}

func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{
		"https://dev.azure.com/a/b/_git/c", "https://a.visualstudio.com/_git/c", "https://h/tfs/a/b/_git/c", "git@ssh.dev.azure.com:v3/a/b/c", "http://h/../_git/%2e%2e",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		repo, err := parseURL(raw)
		if err != nil {
			return
		}
		if !strings.HasPrefix(repo.api.Path, repo.base.Path) || strings.Contains(repo.api.Path, "/../") || repo.api.User != nil || repo.api.RawQuery != "" {
			t.Errorf("%q: got %s", raw, repo.api)
		}
		if host := (&url.URL{Host: repo.api.Host}).Hostname(); repo.cloud && host != "dev.azure.com" && !strings.HasSuffix(strings.ToLower(host), ".visualstudio.com") && !strings.EqualFold(host, "dev.azure.com") {
			t.Errorf("%q is taken for Azure DevOps Services", raw)
		}
	})
}
