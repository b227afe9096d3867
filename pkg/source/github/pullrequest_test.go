// SPDX-License-Identifier: Apache-2.0

package github

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

const testToken = "ghp_t0k3n/of+the test"

// podinfo starts a server with the repository of the seed.
func podinfo(t *testing.T) (*forgetest.GitHub, *forgetest.Repo, provider.Config) {
	t.Helper()
	gh := forgetest.NewGitHub()
	t.Cleanup(gh.Close)
	repo := gh.Repo("stefanprodan/podinfo")
	return gh, repo, provider.Config{
		Object: &api.ResourceSetInputProvider{
			Meta: api.Meta{Name: "podinfo-pull-requests", Namespace: "podinfo-preview"},
			Spec: api.InputProviderSpec{Type: api.TypeGitHubPullRequest, URL: repo.WebURL()},
		},
		UserAgent: "renderer/test",
		RetryWait: time.Millisecond,
	}
}

func TestContract(t *testing.T) {
	const pageSize = 8
	providertest.Contracts(t, "password", func(t *testing.T) (providertest.Server, *forgetest.Repo, provider.Config) {
		gh, repo, cfg := podinfo(t)
		gh.LimitPages(pageSize)
		gh.RequireToken(testToken)
		cfg.Secret = provider.Secret{"password": []byte(testToken), "username": []byte("flux")}
		return gh, repo, cfg
	}, providertest.Requests(pageSize, NewPullRequests), providertest.Branches(pageSize, NewBranches), providertest.Tags(pageSize, NewTags))
}

func TestTokenKey(t *testing.T) {
	gh, repo, cfg := podinfo(t)
	gh.RequireToken(testToken)
	repo.Open(forgetest.PR{})
	cfg.Secret = provider.Secret{"token": []byte(testToken + "\n")}
	if got := providertest.Texts(providertest.Fetch(t, newPullRequests(t, cfg), nil), "id"); got != "1" {
		t.Errorf("got %q", got)
	}
}

func newPullRequests(t *testing.T, cfg provider.Config) *PullRequests {
	t.Helper()
	p, err := NewPullRequests(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFields(t *testing.T) {
	gh, repo, cfg := podinfo(t)
	repo.Open(forgetest.PR{
		Branch: "feat/ui-footer", SHA: "bf5d6e01cf802734853f6f3417b237e3ad0ba35d", Title: `feat(ui): "Add" footer`,
		Author: "stefanprodan", Labels: []string{"enhancement", "deploy/flux-preview"}, Draft: true, Target: "release/6.x",
	})
	repo.Open(forgetest.PR{Ghost: true, SHA: "6063e25000000000000000000000000000000000"}) // FR-21: stays a text
	got := providertest.Fetch(t, newPullRequests(t, cfg), nil).Inputs
	want := api.Input{
		"id": "1", "sha": "bf5d6e01cf802734853f6f3417b237e3ad0ba35d", "branch": "feat/ui-footer", "targetBranch": "release/6.x",
		"title": `feat(ui): "Add" footer`, "author": "stefanprodan", "labels": []any{"deploy/flux-preview", "enhancement"},
		"url": gh.URL + "/stefanprodan/podinfo/pull/1", "draft": true, "fork": false,
		"createdAt": "2026-01-05T09:01:00Z", "updatedAt": "2026-01-05T09:01:00Z",
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
	request := gh.Requests()[0]
	if request.URL.Path != "/api/v3/repos/stefanprodan/podinfo/pulls" || request.UserAgent() != "renderer/test" {
		t.Errorf("asked %s as %s", request.URL, request.UserAgent())
	}
	if query := request.URL.Query(); query.Get("sort") != "created" || query.Get("direction") != "asc" || query.Get("state") != "open" {
		t.Errorf("asked for %v: the order has to be one that updates do not change (FR-05)", query)
	}
}

func TestFilters(t *testing.T) {
	_, repo, cfg := podinfo(t)
	repo.Open(forgetest.PR{Branch: "feat/a", Labels: []string{"deploy", "x"}})
	repo.Open(forgetest.PR{Branch: "feat/b", Labels: []string{"deploy"}})
	repo.Open(forgetest.PR{Branch: "fix/c", Labels: []string{"Deploy", "x"}})
	repo.Open(forgetest.PR{Branch: "feat/d"})
	for name, test := range map[string]struct {
		filter api.Filter
		want   string
	}{
		"none":            {api.Filter{}, "1 2 3 4"},
		"one label":       {api.Filter{Labels: []string{"deploy"}}, "1 2"},
		"all labels":      {api.Filter{Labels: []string{"x", "deploy"}}, "1"},
		"include":         {api.Filter{IncludeBranch: "^feat/"}, "1 2 4"},
		"exclude":         {api.Filter{ExcludeBranch: "/[ab]$"}, "3 4"},
		"both":            {api.Filter{IncludeBranch: "feat", ExcludeBranch: "b"}, "1 4"},
		"nothing matches": {api.Filter{Labels: []string{"no"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Object.Spec.Filter = test.filter
			if got := providertest.Texts(providertest.Fetch(t, newPullRequests(t, cfg), nil), "id"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// FR-84: a fork is one by its repository, however its branch is called.
func TestRule11_Forks(t *testing.T) {
	_, repo, cfg := podinfo(t)
	repo.Open(forgetest.PR{Branch: "main"})
	repo.Open(forgetest.PR{Branch: "main", Fork: "stranger/podinfo"})
	repo.Open(forgetest.PR{Branch: "main", ForkDeleted: true})
	repo.Open(forgetest.PR{Branch: "other", Fork: "stranger/podinfo"})
	cfg.Object.Spec.Filter.IncludeBranch = "^main$"

	result := providertest.Fetch(t, newPullRequests(t, cfg), nil)
	if providertest.Texts(result, "id") != "1" || result.Forks != 2 || result.Matched != 1 {
		t.Errorf("got %q, %d forks, %d matched; want 1, 2, 1", providertest.Texts(result, "id"), result.Forks, result.Matched)
	}
	// Also where one was exported before.
	if result := providertest.Fetch(t, newPullRequests(t, cfg), nil, []api.Input{{"id": "2"}}...); providertest.Texts(result, "id") != "1" {
		t.Errorf("got %q", providertest.Texts(result, "id"))
	}
	cfg.Object.Annotations = map[string]string{api.AnnotationAllowForks: "yes"}
	if result := providertest.Fetch(t, newPullRequests(t, cfg), nil); providertest.Texts(result, "id") != "1" {
		t.Errorf("with another value than true: got %q", providertest.Texts(result, "id"))
	}
	cfg.Object.Annotations[api.AnnotationAllowForks] = "true"
	result = providertest.Fetch(t, newPullRequests(t, cfg), nil)
	if providertest.Texts(result, "id") != "1 2 3" || result.Forks != 0 {
		t.Fatalf("allowed: got %q, %d forks", providertest.Texts(result, "id"), result.Forks)
	}
	for i, fork := range []bool{false, true, true} {
		if result.Inputs[i]["fork"] != fork {
			t.Errorf("pull request %d has fork %v", i+1, result.Inputs[i]["fork"])
		}
	}
}

// FR-09: what a label freezes keeps its values, also when all that is known of
// them is what inputs.lock recorded.
func TestSkip(t *testing.T) {
	_, repo, cfg := podinfo(t)
	cfg.Object.Spec.Skip.Labels = []string{"pause", "!ci/passed"}
	repo.Open(forgetest.PR{SHA: forgetest.SHA("aaaa"), Labels: []string{"ci/passed"}})
	repo.Open(forgetest.PR{SHA: forgetest.SHA("bbbb"), Labels: []string{"ci/passed"}})
	repo.Open(forgetest.PR{SHA: forgetest.SHA("cccc")})
	p := newPullRequests(t, cfg)
	first := providertest.Fetch(t, p, nil)
	if providertest.Texts(first, "id") != "1 2" || first.Held != 1 {
		t.Fatalf("got %q, %d held back: a new item that is frozen does not appear", providertest.Texts(first, "id"), first.Held)
	}
	repo.Push(1, forgetest.SHA("a222"))
	repo.Unlabel(1, "ci/passed")
	repo.Push(2, forgetest.SHA("b222"))
	repo.Label(2, "pause")
	frozen := providertest.Fetch(t, p, nil, first.Inputs...)
	if frozen.Inputs[0]["sha"] != forgetest.SHA("aaaa") || frozen.Inputs[1]["sha"] != forgetest.SHA("bbbb") || frozen.Frozen != 2 {
		t.Errorf("got %v: want the old commits", frozen.Inputs)
	}
	if diff := cmp.Diff(first.Inputs, frozen.Inputs); diff != "" {
		t.Errorf("frozen items changed (-before +after):\n%s", diff)
	}
	fromLock := []api.Input{
		{"id": "1", "provider": map[string]any{"name": "podinfo-pull-requests"}, "sha": forgetest.SHA("aaaa")},
		{"id": "2", "provider": map[string]any{"name": "podinfo-pull-requests"}},
	}
	restarted := providertest.Fetch(t, newPullRequests(t, cfg), nil, fromLock...)
	if got := restarted.Inputs[0]; got["sha"] != forgetest.SHA("aaaa") || got["provider"] != nil || got["title"] != "Change 1" {
		t.Errorf("got %v", got)
	}
	if got, ok := restarted.Inputs[1]["sha"]; ok {
		t.Errorf("sha %v, although what it was is not known: never the new one", got)
	}
	repo.Label(1, "ci/passed")
	repo.Close(2)
	if thawed := providertest.Fetch(t, p, nil, frozen.Inputs...); providertest.Texts(thawed, "id") != "1" || thawed.Inputs[0]["sha"] != forgetest.SHA("a222") {
		t.Errorf("got %v: want 1 at its new commit, and 2 gone", thawed.Inputs)
	}
}

// A list that moves while it is read is read again (rule 1, FR-05).
func TestRule01_ListMoves(t *testing.T) {
	for name, change := range map[string]func(*forgetest.Repo){
		"one closes on page 1":           func(r *forgetest.Repo) { r.Close(5) },
		"the last of page 1 closes":      func(r *forgetest.Repo) { r.Close(10) },
		"a closed one opens again":       func(r *forgetest.Repo) { r.Reopen(2) },
		"many close, page 2 gets empty":  func(r *forgetest.Repo) { closeAll(r, 6, 16) },
		"one is updated":                 func(r *forgetest.Repo) { r.Push(11, forgetest.SHA("dddd")) },
		"one opens":                      func(r *forgetest.Repo) { r.Open(forgetest.PR{}) },
		"one closes and another opens":   func(r *forgetest.Repo) { r.Close(3); r.Open(forgetest.PR{}) },
		"one on page 2, already in view": func(r *forgetest.Repo) { r.Close(13) },
	} {
		t.Run(name, func(t *testing.T) {
			gh, repo, cfg := twoPages(t)
			repo.Close(2)
			gh.Break(forgetest.After(1, func() { change(repo) }))
			moving := providertest.Fetch(t, newPullRequests(t, cfg), nil)
			gh.Heal()
			still := providertest.Fetch(t, newPullRequests(t, cfg), nil)
			if providertest.Texts(moving, "id") != providertest.Texts(still, "id") {
				t.Errorf("got  %s\nwant %s", providertest.Texts(moving, "id"), providertest.Texts(still, "id"))
			}
		})
	}
	t.Run("without end", func(t *testing.T) {
		gh, repo, cfg := twoPages(t)
		gone := 0
		gh.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			gone++
			repo.Close(gone)
			repo.Open(forgetest.PR{})
			next.ServeHTTP(w, r)
		})
		if _, err := newPullRequests(t, cfg).Fetch(t.Context(), nil); provider.ReasonOf(err) != provider.Implausible {
			t.Errorf("got %v", err)
		}
		if gone > 4*listing.MaxReads {
			t.Errorf("%d requests", gone)
		}
	})
}

// twoPages starts a server with 15 open pull requests in pages of 10.
func twoPages(t *testing.T) (*forgetest.GitHub, *forgetest.Repo, provider.Config) {
	t.Helper()
	gh, repo, cfg := podinfo(t)
	gh.LimitPages(10)
	for range 15 {
		repo.Open(forgetest.PR{})
	}
	return gh, repo, cfg
}

func closeAll(r *forgetest.Repo, from, to int) {
	for number := from; number < to; number++ {
		r.Close(number)
	}
}

// A list that does not end, or not as lists end, is no list (FR-07).
func TestRule01_Pages(t *testing.T) {
	link := func(target string) func(*http.Request) string {
		return func(r *http.Request) string {
			return fmt.Sprintf(`<%s>; rel="next"`, strings.ReplaceAll(target, "SELF", r.URL.RequestURI()))
		}
	}
	counting := 0
	for name, test := range map[string]struct {
		fault forgetest.Fault
		want  provider.Reason
		words string
	}{
		"a page leads to itself":  {forgetest.Link(link("SELF")), provider.Implausible, "page 1 leads back to page 1"},
		"page 2 leads to page 1":  {forgetest.OnPage(2, forgetest.Link(link("/api/v3/repos/stefanprodan/podinfo/pulls?state=open&sort=created&direction=asc&per_page=100"))), provider.Implausible, "page 2 leads back to page 1"},
		"the next one elsewhere":  {forgetest.Link(link("https://evil.example/page2")), provider.Redirected, "evil.example"},
		"the next is no address":  {forgetest.Link(link("http://[::1")), provider.Implausible, "page 1"},
		"offset too large":        {forgetest.OnPage(2, forgetest.Status(405, "Offset pagination has a maximum allowed offset")), provider.Implausible, "page 2"},
		"an empty page in a list": {forgetest.OnPage(2, forgetest.Link(link("/api/v3/repos/x/y/pulls?page=3"))), provider.Implausible, "page"},
		"new pages for ever": {func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			counting++
			w.Header().Set("Link", fmt.Sprintf(`</api/v3/x?page=%d>; rel="next"`, counting))
			forgetest.JSON(fmt.Sprintf(`[{"number":%d,"state":"open","head":{"ref":"a","sha":"b"},"base":{"ref":"m","repo":{"full_name":"a/b"}},"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}]`, counting))(w, r, nil)
		}, provider.Implausible, "does not end"},
	} {
		t.Run(name, func(t *testing.T) {
			gh, _, cfg := twoPages(t)
			fault := test.fault
			if strings.HasPrefix(name, "an empty") {
				fault = forgetest.OnPage(2, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
					w.Header().Set("Link", `</api/v3/x?page=3>; rel="next"`)
					forgetest.JSON("[]")(w, r, next)
				})
			}
			gh.Break(fault)
			_, err := newPullRequests(t, cfg).Fetch(t.Context(), nil)
			if provider.ReasonOf(err) != test.want || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %v; want reason %s and %q", err, test.want, test.words)
			}
			if asked := len(gh.Requests()); asked > listing.MaxPages+1 {
				t.Errorf("%d requests", asked)
			}
		})
	}
}

// FR-04: pages shorter than asked for are not the last ones.
func TestShortPages(t *testing.T) {
	gh, repo, cfg := podinfo(t)
	gh.LimitPages(30)
	for range 75 {
		repo.Open(forgetest.PR{})
	}
	if got := providertest.Fetch(t, newPullRequests(t, cfg), nil); len(got.Inputs) != 75 {
		t.Errorf("%d inputs, want 75", len(got.Inputs))
	}
}

// An item that lacks what it must have fails the list; it is not left out.
func TestRule01_Items(t *testing.T) {
	whole := func() map[string]any {
		return map[string]any{
			"number": 1, "state": "open", "head": map[string]any{"ref": "a", "sha": "b", "repo": map[string]any{"id": 1}},
			"base":       map[string]any{"ref": "main", "repo": map[string]any{"id": 1, "full_name": "a/b"}},
			"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
		}
	}
	for name, spoil := range map[string]func(map[string]any){
		"number":    func(m map[string]any) { delete(m, "number") },
		"zero":      func(m map[string]any) { m["number"] = 0 },
		"text":      func(m map[string]any) { m["number"] = "one" },
		"state":     func(m map[string]any) { delete(m, "state") },
		"head":      func(m map[string]any) { m["head"] = nil },
		"sha":       func(m map[string]any) { delete(m["head"].(map[string]any), "sha") },
		"ref":       func(m map[string]any) { m["head"].(map[string]any)["ref"] = "" },
		"base":      func(m map[string]any) { delete(m, "base") },
		"created":   func(m map[string]any) { delete(m, "created_at") },
		"updated":   func(m map[string]any) { delete(m, "updated_at") },
		"label":     func(m map[string]any) { m["labels"] = []any{map[string]any{"name": ""}} },
		"no label":  func(m map[string]any) { m["labels"] = []any{nil} },
		"base.repo": func(m map[string]any) { delete(m["base"].(map[string]any), "repo") },
	} {
		t.Run(name, func(t *testing.T) {
			data, _ := json.Marshal(whole())
			if _, _, err := decodePullRequest(data); err != nil {
				t.Fatal(err)
			}
			spoiled := whole()
			spoil(spoiled)
			data, _ = json.Marshal(spoiled)
			if pr, _, err := decodePullRequest(data); err == nil {
				t.Errorf("got %+v, want an error", pr)
			}
		})
	}
}

// A closed pull request that a server lists all the same is not exported.
func TestStateIsChecked(t *testing.T) {
	gh, repo, cfg := podinfo(t)
	repo.Open(forgetest.PR{})
	repo.Open(forgetest.PR{})
	repo.Close(1)
	gh.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		query := r.URL.Query()
		query.Set("state", "all")
		r.URL.RawQuery = query.Encode()
		next.ServeHTTP(w, r)
	})
	if got := providertest.Texts(providertest.Fetch(t, newPullRequests(t, cfg), nil), "id"); got != "2" {
		t.Errorf("got %q, want 2", got)
	}
}

// What a token lacks is said where GitHub says it.
func TestForbiddenHints(t *testing.T) {
	gh, _, cfg := podinfo(t)
	for header, value := range map[string][2]string{
		"X-Accepted-GitHub-Permissions": {"pull_requests=read", "needs the permission pull_requests=read"},
		"X-GitHub-SSO":                  {"required; url=https://github.com/orgs/acme/sso", "single sign-on"},
		"X-Nothing":                     {"", "lacks a permission"},
	} {
		gh.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			w.Header().Set(header, value[0])
			forgetest.Status(http.StatusForbidden, "Resource not accessible by personal access token")(w, r, next)
		})
		_, err := newPullRequests(t, cfg).Fetch(t.Context(), nil)
		var known *provider.Error
		if !errors.As(err, &known) || known.Reason != provider.Auth || !strings.Contains(known.Hint, value[1]) {
			t.Errorf("%s: got %v, want a hint with %q", header, err, value[1])
		}
	}
}

// FR-101: an unchanged list costs no rate limit.
func TestConditionalRequests(t *testing.T) {
	gh, repo, cfg := podinfo(t)
	gh.LimitPages(10)
	for range 25 {
		repo.Open(forgetest.PR{})
	}
	p := newPullRequests(t, cfg)
	first := providertest.Fetch(t, p, nil)
	if spent := gh.Spent(); spent != 3 {
		t.Errorf("the first fetch cost %d, want 3: one a page", spent)
	}
	for range 3 {
		if diff := cmp.Diff(first, providertest.Fetch(t, p, nil, first.Inputs...)); diff != "" {
			t.Fatalf("(-first +again):\n%s", diff)
		}
	}
	if spent := gh.Spent(); spent != 3 {
		t.Errorf("three more fetches cost %d", spent-3)
	}
	repo.Push(25, forgetest.SHA("eeee"))
	if got := providertest.Fetch(t, p, nil, first.Inputs...).Inputs[24]["sha"]; got != forgetest.SHA("eeee") {
		t.Errorf("got %v: a change on the last page was missed", got)
	}
	if spent := gh.Spent(); spent != 4 {
		t.Errorf("one changed page cost %d", spent-3)
	}
}

// Whatever a server sends, a page is a list in which every item is whole, or an error.
func FuzzPage(f *testing.F) {
	for _, body := range []string{
		"[]", "null", "{}", "", "[null]", `[{"number":1}]`, "<html>",
		`[{"number":1,"state":"open","head":{"ref":"a","sha":"b","repo":null},"base":{"ref":"m","repo":{"full_name":"a/b"}},"labels":[{"name":"x"}],"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}]`,
	} {
		f.Add([]byte(body))
	}
	f.Add([]byte(`[{"name":"main","commit":{"sha":"b"}},{"name":"","commit":null}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, decode := range []listing.Decode[provider.Ref]{decodeBranch, decodeTag} {
			if p, err := listing.Array(body, "refs", notARepository, decode); err == nil {
				for i, ref := range p.Items {
					if ref.Name == "" || ref.SHA == "" || p.Keys[i] != ref.Name {
						t.Fatalf("%q: item %d is %+v", body, i, ref)
					}
				}
			}
		}
		p, err := listing.Array(body, "pull requests", notARepository, decodePullRequest)
		if err != nil {
			if provider.ReasonOf(err) != provider.Implausible {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		var all []any
		if err := json.Unmarshal(body, &all); err != nil || all == nil || len(all) != len(p.Items) {
			t.Fatalf("took %q for a list of %d", body, len(p.Items))
		}
		for i, pr := range p.Items {
			if id, err := strconv.Atoi(p.Keys[i]); err != nil || pr.ID != p.Keys[i] || id < 1 || pr.SHA == "" || pr.Branch == "" {
				t.Fatalf("%q: item %d is %+v", body, i, pr)
			}
		}
	})
}

// Rule 1: a page without a successor is no end when the first one named a later page.
func TestRule01_FewerPagesThanSaid(t *testing.T) {
	gh, repo, cfg := podinfo(t)
	gh.LimitPages(10)
	for range 25 {
		repo.Open(forgetest.PR{})
	}
	gh.Break(forgetest.OnPage(2, forgetest.Link(func(*http.Request) string { return "" })))
	_, err := newPullRequests(t, cfg).Fetch(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "page 2 of 3") {
		t.Errorf("got %v", err)
	}
}
