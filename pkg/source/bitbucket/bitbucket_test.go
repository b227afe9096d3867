// SPDX-License-Identifier: Apache-2.0

package bitbucket

import (
	"encoding/json"
	"errors"
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
	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

const (
	testToken = "ATCTT_t0k3n/of+the test"
	pageSize  = 8
)

// A flavour is one of the two Bitbuckets, with a repository that has nothing yet.
type flavour struct {
	server *forgetest.Bitbucket
	repo   *forgetest.Repo
	parsed *repository
	cfg    provider.Config
	pageOf func(*http.Request) int
}

func start(t *testing.T, cloud bool) flavour {
	t.Helper()
	f := flavour{server: forgetest.NewBitbucketServer()}
	spec := "/projects/APP/repos/web"
	if cloud {
		f.server = forgetest.NewBitbucketCloud()
		spec = "/app/web"
	}
	t.Cleanup(f.server.Close)
	f.server.LimitPages(pageSize)
	f.repo = f.server.Repo("APP/web")
	f.cfg = provider.Config{
		Object: &api.ResourceSetInputProvider{
			Meta: api.Meta{Name: "web", Namespace: "apps"},
			Spec: api.InputProviderSpec{URL: f.server.URL + spec},
		},
		UserAgent: "renderer/test", RetryWait: time.Millisecond,
	}
	base, err := url.Parse(f.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if !cloud {
		if f.parsed, err = parseURL(f.cfg.Object.Spec.URL); err != nil {
			t.Fatal(err)
		}
		f.pageOf = func(r *http.Request) int {
			start, _ := strconv.Atoi(r.URL.Query().Get("start"))
			return start/pageSize + 1
		}
		return f
	}
	if f.parsed, err = parseURL("https://bitbucket.org/APP/web"); err != nil {
		t.Fatal(err)
	}
	f.pageOf = func(r *http.Request) int {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		if strings.Contains(r.URL.Path, "/commit/") {
			return 0 // no page of a list
		}
		return max(page, 1)
	}
	move := func(u *url.URL) *url.URL {
		moved := *u
		moved.Scheme, moved.Host = base.Scheme, base.Host
		return &moved
	}
	f.parsed.root, f.parsed.api = move(f.parsed.root), move(f.parsed.api)
	return f
}

// both runs a test for each flavour.
func both(t *testing.T, test func(t *testing.T, cloud bool)) {
	t.Run("cloud", func(t *testing.T) { test(t, true) })
	t.Run("server", func(t *testing.T) { test(t, false) })
}

func (f flavour) pulls(t *testing.T) *PullRequests {
	t.Helper()
	p, err := newPullRequests(f.cfg, f.parsed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestContract(t *testing.T) {
	both(t, func(t *testing.T, cloud bool) {
		var f flavour
		kinds := []providertest.Kind{providertest.Requests(pageSize, func(cfg provider.Config) (*PullRequests, error) {
			return newPullRequests(cfg, f.parsed)
		})}
		if cloud { // branches and tags are read by the same code
			kinds = append(kinds, providertest.Tags(pageSize, func(cfg provider.Config) (*listing.Refs, error) { return newTags(cfg, f.parsed) }))
		} else {
			kinds = append(kinds, providertest.Branches(pageSize, func(cfg provider.Config) (*listing.Refs, error) { return newBranches(cfg, f.parsed) }))
		}
		for i := range kinds {
			kinds[i].PageOf = func(r *http.Request) int { return f.pageOf(r) }
		}
		providertest.Contracts(t, "token", func(t *testing.T) (providertest.Server, *forgetest.Repo, provider.Config) {
			f = start(t, cloud)
			f.server.RequireToken(testToken)
			f.cfg.Secret = provider.Secret{"token": []byte(testToken)}
			return lists{f.server}, f.repo, f.cfg
		}, kinds...)
	})
}

// lists counts only requests of lists, for the contract knows of no others.
type lists struct{ *forgetest.Bitbucket }

func (l lists) Requests() []*http.Request {
	return slices.DeleteFunc(l.Bitbucket.Requests(), func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/commit/") })
}

func TestFields(t *testing.T) {
	both(t, func(t *testing.T, cloud bool) {
		f := start(t, cloud)
		sha := "bf5d6e01cf802734853f6f3417b237e3ad0ba35d"
		f.repo.Open(forgetest.PR{
			Branch: "feat/ui-footer", SHA: sha, Title: `feat(ui): "Add" footer`, Author: "ada", Draft: true, Target: "release/6.x",
		})
		f.repo.Open(forgetest.PR{Ghost: true, SHA: "6063e25000000000000000000000000000000000"}) // FR-21: stays a text
		got := providertest.Fetch(t, f.pulls(t), nil).Inputs
		page := f.server.URL + "/projects/APP/repos/web/pull-requests/1"
		if cloud {
			page = "https://bitbucket.org/APP/web/pull-requests/1"
		}
		want := api.Input{
			"id": "1", "sha": sha, "branch": "feat/ui-footer", "targetBranch": "release/6.x", "title": `feat(ui): "Add" footer`,
			"author": "ada", "labels": []any{}, "url": page, "draft": true, "fork": false,
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
	})
}

// FR-84: a fork is one by its repository, however its branch is called.
func TestRule11_Forks(t *testing.T) {
	both(t, func(t *testing.T, cloud bool) {
		f := start(t, cloud)
		f.repo.Open(forgetest.PR{Branch: "main"})
		f.repo.Open(forgetest.PR{Branch: "main", Fork: "stranger/web"})
		f.repo.Open(forgetest.PR{Branch: "main", ForkDeleted: true})
		result := providertest.Fetch(t, f.pulls(t), nil)
		if providertest.Texts(result, "id") != "1" || result.Forks != 2 {
			t.Errorf("got %q, %d forks", providertest.Texts(result, "id"), result.Forks)
		}
		f.cfg.Object.Annotations = map[string]string{api.AnnotationAllowForks: "true"}
		if cloud { // what is gone on Cloud has no commit
			if _, err := f.pulls(t).Fetch(t.Context(), nil); provider.ReasonOf(err) != provider.Implausible || !strings.Contains(err.Error(), "pull request 3") {
				t.Errorf("got %v", err)
			}
			f.repo.Close(3)
		}
		result = providertest.Fetch(t, f.pulls(t), nil)
		if !strings.HasPrefix(providertest.Texts(result, "id"), "1 2") || result.Forks != 0 || !strings.HasPrefix(providertest.Texts(result, "fork"), "false true") {
			t.Errorf("allowed: got %q, %q, %d forks", providertest.Texts(result, "id"), providertest.Texts(result, "fork"), result.Forks)
		}
		if sha := result.Inputs[1]["sha"].(string); !provider.IsCommit(sha) {
			t.Errorf("the fork's commit is %q", sha)
		}
	})
}

// FR-02: a commit that cannot be asked for fails the fetch; one that is known is
// not asked for again.
func TestRule01_ShortCommits(t *testing.T) {
	f := start(t, true)
	for range 3 {
		f.repo.Open(forgetest.PR{})
	}
	onCommit := func(fault forgetest.Fault) forgetest.Fault {
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.Contains(r.URL.Path, "/commit/"+forgetest.SHA("APP/web#2")[:12]) {
				fault(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		}
	}
	p := f.pulls(t)
	for name, fault := range map[string]forgetest.Fault{
		"down":           forgetest.Status(http.StatusServiceUnavailable, "later"),
		"gone":           forgetest.Status(http.StatusNotFound, "no"),
		"null":           forgetest.JSON("null"),
		"another commit": forgetest.JSON(`{"hash":"` + forgetest.SHA("other") + `"}`),
		"short again":    forgetest.JSON(`{"hash":"` + forgetest.SHA("APP/web#2")[:12] + `"}`),
		"page":           forgetest.Page(),
	} {
		f.server.Break(onCommit(fault))
		result, err := p.Fetch(t.Context(), nil)
		if err == nil || result.Inputs != nil || !strings.Contains(err.Error(), "pull request 2") {
			t.Errorf("%s: got %v, %v", name, result.Inputs, err)
		}
	}
	f.server.Heal()
	want := []string{forgetest.SHA("APP/web#1"), forgetest.SHA("APP/web#2"), forgetest.SHA("APP/web#3")}
	for range 2 {
		f.server.Forget()
		if got := providertest.Texts(providertest.Fetch(t, p, nil), "sha"); got != strings.Join(want, " ") {
			t.Errorf("got %s", got)
		}
	}
	if asked := f.server.Calls(); asked != 1 {
		t.Errorf("%d requests for a list that did not change, want 1", asked)
	}
	f.repo.Push(2, forgetest.SHA("pushed"))
	f.server.Forget()
	if got := providertest.Texts(providertest.Fetch(t, p, nil), "sha"); !strings.Contains(got, forgetest.SHA("pushed")) || f.server.Calls() != 2 {
		t.Errorf("got %s with %d requests", got, f.server.Calls())
	}
}

// A list that moves while it is read is read again (rule 1, FR-05), and one that
// stands still is not verified twice.
func TestRule01_ListMoves(t *testing.T) {
	both(t, func(t *testing.T, cloud bool) {
		f := start(t, cloud)
		for range 12 {
			f.repo.Open(forgetest.PR{})
		}
		moved := false
		f.server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(w, r)
			if f.pageOf(r) == 1 && !moved {
				moved = true
				f.repo.Close(5) // moves 9 to page 1
			}
		})
		p := f.pulls(t)
		if got := providertest.Texts(providertest.Fetch(t, p, nil), "id"); got != "1 2 3 4 6 7 8 9 10 11 12" {
			t.Errorf("got %q", got)
		}
		f.server.Heal()
		f.server.Forget()
		providertest.Fetch(t, p, nil)
		if asked := f.server.Calls(); asked != 2 {
			t.Errorf("%d requests for two pages that did not change", asked)
		}
	})
}

// A page that is not the end says so in a way that leads on, or is no page (FR-07).
func TestRule01_Pages(t *testing.T) {
	for name, test := range map[string]struct {
		cloud  bool
		body   string
		reason provider.Reason
	}{
		"cloud: itself":          {true, `{"values":[],"next":"SELF"}`, provider.Implausible},
		"cloud: elsewhere":       {true, `{"values":[],"next":"https://evil.example/2.0/"}`, provider.Redirected},
		"cloud: no address":      {true, `{"values":[],"next":"http://[::1"}`, provider.Implausible},
		"cloud: no values":       {true, `{"pagelen":50}`, provider.Implausible},
		"server: no end":         {false, `{"values":[]}`, provider.Implausible},
		"server: not the last":   {false, `{"values":[],"isLastPage":false}`, provider.Implausible},
		"server: backwards":      {false, `{"values":[],"isLastPage":false,"start":8,"nextPageStart":8}`, provider.Implausible},
		"server: empty and more": {false, `{"values":[],"isLastPage":false,"start":0,"nextPageStart":8}`, provider.Implausible},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, test.cloud)
			f.server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				forgetest.JSON(strings.ReplaceAll(test.body, "SELF", f.server.URL+r.URL.RequestURI()))(w, r, next)
			})
			if _, err := f.pulls(t).Fetch(t.Context(), nil); provider.ReasonOf(err) != test.reason {
				t.Errorf("got %v, want reason %s", err, test.reason)
			}
		})
	}
}

func TestConditionalRequests(t *testing.T) {
	f := start(t, true)
	f.server.ETags = true
	for range 12 {
		f.repo.Open(forgetest.PR{})
	}
	p := f.pulls(t)
	before := providertest.Fetch(t, p, nil)
	f.server.Forget()
	if diff := cmp.Diff(before, providertest.Fetch(t, p, nil, before.Inputs...)); diff != "" {
		t.Error(diff)
	}
	for _, r := range f.server.Requests() {
		if r.Header.Get("If-None-Match") == "" {
			t.Errorf("%s was asked without its validator", r.URL)
		}
	}
}

func TestRefs(t *testing.T) {
	both(t, func(t *testing.T, cloud bool) {
		f := start(t, cloud)
		// FR-10: two names with one checksum.
		f.repo.SetBranch("fix/cbc", forgetest.SHA("cccc"))
		f.repo.SetBranch("fix/bdb", forgetest.SHA("bbbb"))
		f.repo.SetBranch("main", forgetest.SHA("aaaa"))
		f.cfg.Object.Spec.Filter = api.Filter{ExcludeBranch: "^main$"}
		branches, err := newBranches(f.cfg, f.parsed)
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
		f.repo.SetTag("v1.2.0", forgetest.SHA("dddd")) // annotated: its commit counts
		f.repo.SetTag("1.10.0", forgetest.SHA("eeee"))
		f.repo.SetTag("nightly", forgetest.SHA("ffff"))
		f.cfg.Object.Spec.Filter = api.Filter{Semver: ">=1.0.0"}
		tags, err := newTags(f.cfg, f.parsed)
		if err != nil {
			t.Fatal(err)
		}
		result := providertest.Fetch(t, tags, nil)
		if providertest.Texts(result, "tag") != "1.10.0 v1.2.0" || providertest.Texts(result, "sha") != forgetest.SHA("eeee")+" "+forgetest.SHA("dddd") {
			t.Errorf("got %v", result.Inputs)
		}
	})
}

func TestCredentials(t *testing.T) {
	for name, test := range map[string]struct {
		secret provider.Secret
		want   string // of the header, empty for a config error
	}{
		"token":              {provider.Secret{"token": []byte("t0k\n")}, "Bearer t0k"},
		"password alone":     {provider.Secret{"password": []byte("t0k")}, "Bearer t0k"},
		"Git's way":          {provider.Secret{"username": []byte("x-token-auth"), "password": []byte("t0k")}, "Bearer t0k"},
		"basic":              {provider.Secret{"username": []byte("ada"), "password": []byte("pw")}, "Basic YWRhOnB3"},
		"username alone":     {provider.Secret{"username": []byte("ada")}, ""},
		"token before basic": {provider.Secret{"token": []byte("t0k"), "username": []byte("ada"), "password": []byte("pw")}, "Bearer t0k"},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, false)
			f.cfg.Secret = test.secret
			p, err := newPullRequests(f.cfg, f.parsed)
			if test.want == "" {
				if provider.ReasonOf(err) != provider.Misconfigured {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			providertest.Fetch(t, p, nil)
			if got := f.server.Requests()[0].Header.Get("Authorization"); got != test.want {
				t.Errorf("sent %q", got)
			}
		})
	}
}

// What would never match is not ignored: it would export all, or nothing.
func TestLabelsAreRefused(t *testing.T) {
	f := start(t, true)
	f.cfg.Object.Spec.Filter.Labels = []string{"deploy"}
	if _, err := newPullRequests(f.cfg, f.parsed); provider.ReasonOf(err) != provider.Misconfigured {
		t.Errorf("filter: got %v", err)
	}
	f.cfg.Object.Spec.Filter.Labels, f.cfg.Object.Spec.Skip.Labels = nil, []string{"!ci"}
	if _, err := newPullRequests(f.cfg, f.parsed); provider.ReasonOf(err) != provider.Misconfigured {
		t.Errorf("skip: got %v", err)
	}
}

// FR-101: providers on one repository share a listing.
func TestSharedListing(t *testing.T) {
	both(t, func(t *testing.T, cloud bool) {
		f := start(t, cloud)
		f.repo.Open(forgetest.PR{Branch: "a"})
		f.cfg.Shared = &provider.Shared{}
		ctx := provider.WithPass(t.Context())
		var all []*PullRequests
		for range 3 {
			all = append(all, f.pulls(t))
		}
		for _, p := range all {
			if result, err := p.Fetch(ctx, nil); err != nil || providertest.Texts(result, "branch") != "a" {
				t.Errorf("got %v, %v", result.Inputs, err)
			}
		}
		want := 1
		if cloud {
			want = 2 // and the commit
		}
		if f.server.Calls() != want {
			t.Errorf("%d requests for three providers, want %d", f.server.Calls(), want)
		}
	})
}

func TestParseURL(t *testing.T) {
	const cloud = "https://api.bitbucket.org/2.0/repositories/acme/app/"
	for raw, want := range map[string]string{
		"https://bitbucket.org/acme/app":                               cloud,
		"https://bitbucket.org/acme/app.git":                           cloud, // FR-15
		"https://www.bitbucket.org/acme/app/":                          cloud,
		"https://git.corp.example/projects/APP/repos/web":              "https://git.corp.example/rest/api/1.0/projects/APP/repos/web/",
		"https://git.corp.example/projects/APP/repos/web/browse":       "https://git.corp.example/rest/api/1.0/projects/APP/repos/web/",
		"https://git.corp.example/users/ada/repos/web":                 "https://git.corp.example/rest/api/1.0/projects/~ada/repos/web/",
		"https://git.corp.example:8443/scm/app/web.git":                "https://git.corp.example:8443/rest/api/1.0/projects/app/repos/web/",
		"http://git.corp.example/bitbucket/dev/projects/APP/repos/w.x": "http://git.corp.example/bitbucket/dev/rest/api/1.0/projects/APP/repos/w.x/",
	} {
		got, err := parseURL(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		} else if got.api.String() != want {
			t.Errorf("%s: got %s, want %s", raw, got.api, want)
		}
	}
	for raw, hint := range map[string]string{
		"https://bitbucket.org/acme":                   "https://bitbucket.org/WORKSPACE/REPOSITORY",
		"https://bitbucket.org/acme/app/src/main/":     "https://bitbucket.org/acme/app",
		"https://bitbucket.org/../app":                 "https://bitbucket.org/WORKSPACE/REPOSITORY",
		"https://git.corp.example/acme/app":            "https://git.corp.example/projects/KEY/repos/NAME",
		"https://git.corp.example/projects/APP":        "https://git.corp.example/projects/KEY/repos/NAME",
		"git@bitbucket.org:acme/app.git":               "https://bitbucket.org/acme/app",
		"ssh://git@git.corp.example:7999/APP/web.git":  "https://git.corp.example/projects/APP/repos/web",
		"ssh://git@git.corp.example:7999/~ada/web.git": "https://git.corp.example/users/ada/repos/web",
		"https://ada:t0k3n@bitbucket.org/acme/app":     "spec.secretRef",
		"bitbucket.org/acme/app":                       "https://host/path",

		"https://api.bitbucket.org/2.0/repositories/acme/app/pullrequests":      "write https://bitbucket.org/acme/app,",
		"https://api.bitbucket.org/2.0":                                         "write https://bitbucket.org/WORKSPACE/REPOSITORY,",
		"https://git.corp.example/x/rest/api/1.0/projects/APP/repos/web":        "write https://git.corp.example/x/projects/APP/repos/web,",
		"https://git.corp.example/rest/api/latest/projects/APP/repos/web/tags/": "write https://git.corp.example/projects/APP/repos/web,",
		"https://git.corp.example/rest/api/1.0/repos":                           "write https://git.corp.example/projects/KEY/repos/NAME,",
		"https://git.corp.example/projects/../repos/x/y/./":                     "https://git.corp.example/projects/KEY/repos/NAME",
	} {
		_, err := parseURL(raw)
		var known *provider.Error
		if !errors.As(err, &known) || known.Reason != provider.Misconfigured || !strings.Contains(known.Hint, hint) {
			t.Errorf("%s: got %v, want a hint with %q", raw, err, hint)
		}
		if err != nil && strings.Contains(err.Error(), "t0k3n") {
			t.Errorf("%v holds the credential", err)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{
		"https://bitbucket.org/a/b", "https://h/projects/A/repos/b", "https://h/x/scm/~a/b.git", "git@h:a/b.git", "http://h/../..", "https://h/users/%2e%2e/repos/b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		repo, err := parseURL(raw)
		if err != nil {
			return
		}
		if !strings.HasPrefix(repo.api.Path, repo.root.Path) || strings.Contains(repo.api.Path, "/../") || repo.api.User != nil || repo.api.RawQuery != "" {
			t.Errorf("%q: got %s", raw, repo.api)
		}
	})
}

// FuzzPage: what is read as a page has whole items, whatever a server sends, and
// leads to no other host.
func FuzzPage(f *testing.F) {
	for _, seed := range []string{
		`{"values":[],"isLastPage":true}`, `{"values":[{"id":1}],"next":"https://h/2.0/x?page=2"}`, `null`, `[]`,
		`{"values":[{"name":"a","target":{"hash":"b"}},{"displayId":"a","latestCommit":"c"}]}`,
		`{"values":[{"id":1,"title":"t","state":"OPEN","fromRef":{"displayId":"a","latestCommit":"b","repository":{"id":1}},"toRef":{"displayId":"m","repository":{"id":1}},"createdDate":1,"updatedDate":1}],"isLastPage":false,"nextPageStart":25}`,
	} {
		f.Add([]byte(seed))
	}
	root, _ := url.Parse("https://h/2.0/")
	c, from := &client{root: root}, root.JoinPath("x")
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, pages := range []paging{cloudPage, serverPage} {
			raw, next, err := pages(c, &answer{body: body, from: from})
			if err != nil {
				continue
			}
			if next != "" && !strings.HasPrefix(strings.ToLower(next), "https://h") {
				t.Errorf("leads to %q", next)
			}
			for _, item := range raw {
				checkItem(t, item)
			}
		}
	})
}

func checkItem(t *testing.T, item json.RawMessage) {
	t.Helper()
	if pull, key, err := decodeCloudPull(item); err == nil && (key != pull.ID || pull.Branch == "" || (!pull.Fork && pull.SHA == "")) {
		t.Errorf("read %+v", pull)
	}
	if pull, key, err := decodeServerPull(item); err == nil && (key != pull.ID || pull.Branch == "" || pull.SHA == "") {
		t.Errorf("read %+v", pull)
	}
	for _, decode := range []func(json.RawMessage) (provider.Ref, string, error){decodeCloudRef, decodeServerRef} {
		if ref, key, err := decode(item); err == nil && (key != ref.Name || key == "" || ref.SHA == "") {
			t.Errorf("read %+v", ref)
		}
	}
}

// Rule 1: Bitbucket Cloud counts a list, and is held to it.
func TestRule01_FewerThanCounted(t *testing.T) {
	root, _ := url.Parse("https://h/2.0/")
	a := &answer{body: []byte(`{"size":61,"values":[]}`), from: root.JoinPath("x")}
	if _, _, err := cloudPage(&client{root: root}, a); err != nil || a.total != 61 {
		t.Errorf("total %d, %v", a.total, err)
	}
}
