// SPDX-License-Identifier: Apache-2.0

package gitea

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

const testToken = "9f1f7e2a/of+the test"

// app starts a server with one repository.
func app(t *testing.T) (*forgetest.Gitea, *forgetest.Repo, provider.Config) {
	t.Helper()
	server := forgetest.NewGitea()
	t.Cleanup(server.Close)
	return server, server.Repo("acme/app"), provider.Config{
		Object: &api.ResourceSetInputProvider{
			Meta: api.Meta{Name: "app", Namespace: "apps"},
			Spec: api.InputProviderSpec{Type: api.TypeGiteaPullRequest, URL: server.URL + "/acme/app"},
		},
		UserAgent: "renderer/test",
		RetryWait: time.Millisecond,
	}
}

// pageSize is that of the contract; kinds are the three types.
const pageSize = 8

func kinds() []providertest.Kind {
	branches := providertest.Branches(pageSize, NewBranches)
	branches.Fewest = 1
	return []providertest.Kind{providertest.Requests(pageSize, NewPullRequests), branches, providertest.Tags(pageSize, NewTags)}
}

func TestContract(t *testing.T) {
	providertest.Contracts(t, "password", func(t *testing.T) (providertest.Server, *forgetest.Repo, provider.Config) {
		server, repo, cfg := app(t)
		server.LimitPages(pageSize)
		server.RequireToken(testToken)
		cfg.Secret = provider.Secret{"password": []byte(testToken), "username": []byte("flux")}
		return server, repo, cfg
	}, kinds()...)
}

// Each kind of credential, as it comes over the wire.
func TestCredentials(t *testing.T) {
	for name, test := range map[string]struct {
		secret map[string]string
		want   string
	}{
		"token":             {map[string]string{"token": testToken + "\n"}, "token " + testToken},
		"password alone":    {map[string]string{"password": testToken}, "token " + testToken},
		"bearer":            {map[string]string{"bearerToken": testToken, "username": "flux"}, "Bearer " + testToken},
		"name and password": {map[string]string{"username": "flux", "password": "s3cret"}, "Basic Zmx1eDpzM2NyZXQ="},
	} {
		t.Run(name, func(t *testing.T) {
			server, repo, cfg := app(t)
			repo.Open(forgetest.PR{})
			cfg.Secret = provider.Secret{}
			for key, value := range test.secret {
				cfg.Secret[key] = []byte(value)
			}
			p, err := NewPullRequests(cfg)
			if got := providertest.Texts(providertest.Fetch(t, p, err), "id"); got != "1" {
				t.Errorf("got %q", got)
			}
			request := server.Requests()[0]
			if got := request.Header.Get("Authorization"); got != test.want || request.UserAgent() != "renderer/test" {
				t.Errorf("sent %q by %q, want %q", got, request.UserAgent(), test.want)
			}
		})
	}
}

// FR-04: 75 items on pages that the server keeps at 30, by each of the ways in which
// servers tell that there is more: a link (pull requests, branches), or only a number
// (tags), or nothing at all.
func TestShortPages(t *testing.T) {
	for _, kind := range kinds() {
		for _, header := range []string{"as it is", "no total", "no link and no total"} {
			t.Run(kind.Name+", "+header, func(t *testing.T) {
				server, repo, cfg := app(t)
				server.LimitPages(30)
				for n := range 75 {
					kind.Add(repo, n)
				}
				server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
					next.ServeHTTP(without(w, header), r)
				})
				p, err := kind.New(cfg)
				if got := providertest.Fetch(t, p, err); len(got.Inputs) != 75 {
					t.Errorf("%d inputs, want 75", len(got.Inputs))
				}
			})
		}
	}
}

// without is a response that loses headers on its way.
func without(w http.ResponseWriter, what string) http.ResponseWriter {
	var drop []string
	switch what {
	case "no total":
		drop = []string{"X-Total-Count"}
	case "no link and no total":
		drop = []string{"X-Total-Count", "Link"}
	}
	return &dropping{ResponseWriter: w, drop: drop}
}

type dropping struct {
	http.ResponseWriter
	drop []string
}

func (d *dropping) WriteHeader(status int) {
	for _, name := range d.drop {
		d.Header().Del(name)
	}
	d.ResponseWriter.WriteHeader(status)
}

// The server counts one branch less for each that vanished before it could be read,
// and names no next page then although there is one: 51 branches of which the first
// is gone look like 50 on one page.
func TestRule01_BranchVanishes(t *testing.T) {
	server, repo, cfg := app(t)
	for n := range 51 {
		repo.SetBranch(fmt.Sprintf("b%03d", n), forgetest.SHA(fmt.Sprint(n)))
	}
	server.Break(forgetest.OnPage(1, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("X-Total-Count", "50")
		var items []string
		for n := 1; n < 50; n++ {
			items = append(items, fmt.Sprintf(`{"name":"b%03d","commit":{"id":"%040d"}}`, n, n))
		}
		forgetest.JSON("["+strings.Join(items, ",")+"]")(w, r, nil)
	}))
	p, err := NewBranches(cfg)
	got := providertest.Fetch(t, p, err)
	if all := providertest.Texts(got, "branch"); len(got.Inputs) != 50 || !strings.HasSuffix(all, " b050") {
		t.Errorf("%d branches: %s; want 50, the last on page 2", len(got.Inputs), all)
	}
}

// A repository without a commit has a list of branches that is none (rule 1).
func TestRule01_EmptyRepository(t *testing.T) {
	_, _, cfg := app(t)
	p, err := NewBranches(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Fetch(t.Context(), nil)
	var known *provider.Error
	if !errors.As(err, &known) || known.Reason != provider.Implausible || !strings.Contains(known.Hint, "without any commit") {
		t.Errorf("got %v", err)
	}
}

// Servers build the addresses of next pages from the name they are configured with,
// which need not be the one that they are reached by. They are asked where they are
// reached, and no other host is (FR-81).
func TestNextPageUnderAnotherName(t *testing.T) {
	server, repo, cfg := app(t)
	server.LimitPages(10)
	for range 25 {
		repo.Open(forgetest.PR{})
	}
	server.Break(forgetest.Link(func(r *http.Request) string {
		if page := r.URL.Query().Get("page"); page < "3" {
			return fmt.Sprintf(`<https://git.corp.example/api/v1/repos/acme/app/pulls?limit=50&page=%c>; rel="next"`, page[0]+1)
		}
		return ""
	}))
	p, err := NewPullRequests(cfg)
	if got := providertest.Fetch(t, p, err); len(got.Inputs) != 25 {
		t.Errorf("%d inputs, want 25", len(got.Inputs))
	}
}

// A list that does not end, or not as lists end, is no list (FR-07).
func TestRule01_Pages(t *testing.T) {
	to := func(target string) forgetest.Fault {
		return forgetest.Link(func(*http.Request) string { return "<" + target + `>; rel="next"` })
	}
	for name, test := range map[string]struct {
		fault forgetest.Fault
		words string
	}{
		"page 1 leads to itself":  {to("/pulls?page=1"), "page 1 leads back to page 1"},
		"page 2 leads to page 1":  {forgetest.OnPage(2, to("/pulls?page=1")), "page 2 leads back to page 1"},
		"the next one is a text":  {to("/pulls?page=next"), "page 1: the next page has no number"},
		"the next one is none":    {to("/pulls"), "page 1: the next page has no valid address"},
		"an empty page in a list": {forgetest.OnPage(2, func(w http.ResponseWriter, r *http.Request, _ http.Handler) { to("/pulls?page=3")(w, r, empty()) }), "page 2 is empty"},
		"too far to go":           {forgetest.OnPage(2, forgetest.Status(405, "no such offset")), "page 2"},
	} {
		t.Run(name, func(t *testing.T) {
			server, repo, cfg := app(t)
			server.LimitPages(10)
			for range 15 {
				repo.Open(forgetest.PR{})
			}
			server.Break(test.fault)
			p, err := NewPullRequests(cfg)
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Fetch(t.Context(), nil)
			if provider.ReasonOf(err) != provider.Implausible || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %v; want %q", err, test.words)
			}
		})
	}
}

func empty() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { forgetest.JSON("[]")(w, r, nil) })
}

// What a token lacks is said where the server says it.
func TestScopeHint(t *testing.T) {
	server, _, cfg := app(t)
	server.Break(forgetest.Status(http.StatusForbidden, "token does not have at least one of required scope(s), required=[read:repository]"))
	p, err := NewPullRequests(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Fetch(t.Context(), nil)
	var known *provider.Error
	if !errors.As(err, &known) || known.Reason != provider.Auth || !strings.Contains(known.Hint, "scope read:repository") {
		t.Errorf("got %v", err)
	}
}

// FR-101: providers of one repository share a listing, and one that stands still is
// not read twice.
func TestRequests(t *testing.T) {
	server, repo, cfg := app(t)
	server.LimitPages(10)
	for range 25 {
		repo.Open(forgetest.PR{})
	}
	cfg.Shared = &provider.Shared{}
	a, err := NewPullRequests(cfg)
	providertest.Fetch(t, a, err)
	if got := server.Calls(); got != 4+3 { // three pages, an empty one, and all but that once more
		t.Errorf("%d requests at first", got)
	}
	server.Forget()
	ctx := provider.WithPass(t.Context())
	b, err := NewPullRequests(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*PullRequests{a, b} {
		if _, err := p.Fetch(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := server.Calls(); got != 4 {
		t.Errorf("%d requests for two providers of an unchanged list", got)
	}
	repo.Close(1)
	server.Forget()
	small := cfg
	small.Object = &api.ResourceSetInputProvider{Spec: api.InputProviderSpec{URL: server.URL + "/acme/other"}}
	server.Repo("acme/other").Open(forgetest.PR{})
	p, err := NewPullRequests(small)
	if got := providertest.Texts(providertest.Fetch(t, p, err), "id"); got != "1" || server.Calls() != 1 {
		t.Errorf("got %q in %d requests, want one for a list of one page", got, server.Calls())
	}
}

func TestParseURL(t *testing.T) {
	for raw, want := range map[string][3]string{
		"https://gitea.com/acme/app":                   {"https://gitea.com", "acme", "app"},
		"https://codeberg.org/acme/app.git/":           {"https://codeberg.org", "acme", "app"}, // FR-15
		"http://gitea.gitea.svc:3000/git/acme/app.web": {"http://gitea.gitea.svc:3000/git", "acme", "app.web"},
		"https://h.example/a/b/acme/app":               {"https://h.example/a/b", "acme", "app"},
	} {
		got, err := parseURL(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got := [3]string{got.server.String(), got.owner, got.name}; got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
	for raw, hint := range map[string]string{
		"https://gitea.com/acme":           "https://gitea.com/OWNER/REPOSITORY",
		"git@gitea.com:acme/app.git":       "https://gitea.com/acme/app",
		"https://t0k3n@gitea.com/acme/app": "spec.secretRef",
		// In form these are repositories on servers below a path.
		"https://gitea.com/api/v1/repos/acme/app":            "write https://gitea.com/acme/app,",
		"http://h:3000/git/api/v1/repos/acme/app/pulls?x=y":  "write http://h:3000/git/acme/app,",
		"https://codeberg.org/api/v1/repositories/123456789": "write https://codeberg.org/OWNER/REPOSITORY,",
	} {
		_, err := parseURL(raw)
		var known *provider.Error
		if !errors.As(err, &known) || known.Reason != provider.Misconfigured || !strings.Contains(known.Hint, hint) || strings.Contains(err.Error(), "t0k3n") {
			t.Errorf("%s: got %v, want a hint with %q", raw, err, hint)
		}
	}
}

// A server below a path is asked below that path.
func TestSubPath(t *testing.T) {
	server, repo, cfg := app(t)
	repo.Open(forgetest.PR{})
	server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		http.StripPrefix("/git", next).ServeHTTP(w, r)
	})
	cfg.Object.Spec.URL = server.URL + "/git/acme/app"
	p, err := NewPullRequests(cfg)
	if got := providertest.Texts(providertest.Fetch(t, p, err), "id"); got != "1" || server.Requests()[0].URL.Path != "/git/api/v1/repos/acme/app/pulls" {
		t.Errorf("got %q from %s", got, server.Requests()[0].URL)
	}
}

// BenchmarkPolls is how many requests polling 500 unchanged pull requests costs.
func BenchmarkPolls(b *testing.B) {
	server := forgetest.NewGitea()
	defer server.Close()
	for range 500 {
		server.Repo("acme/app").Open(forgetest.PR{})
	}
	p, err := NewPullRequests(provider.Config{Object: &api.ResourceSetInputProvider{
		Spec: api.InputProviderSpec{URL: server.URL + "/acme/app", Filter: api.Filter{Limit: 1000}},
	}})
	if err != nil {
		b.Fatal(err)
	}
	providertest.Polls(b, p, server)
}

// Rule 1: a page without a successor is no end when the server counts more.
func TestRule01_FewerThanCounted(t *testing.T) {
	server, repo, cfg := app(t)
	for range 3 {
		repo.Open(forgetest.PR{})
	}
	server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) { next.ServeHTTP(&counting{w}, r) })
	p, err := NewPullRequests(cfg)
	if err == nil {
		_, err = p.Fetch(t.Context(), nil)
	}
	if err == nil || !strings.Contains(err.Error(), "after 3 of 5") {
		t.Errorf("got %v", err)
	}
}

type counting struct{ http.ResponseWriter }

func (c *counting) Write(p []byte) (int, error) {
	c.Header().Set("X-Total-Count", "5")
	return c.ResponseWriter.Write(p)
}

func (c *counting) WriteHeader(status int) {
	c.Header().Set("X-Total-Count", "5")
	c.ResponseWriter.WriteHeader(status)
}
