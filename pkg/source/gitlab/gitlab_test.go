// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
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

const (
	testToken = "glpat-t0k3n/of+the test"
	pageSize  = 8
)

// app starts a server with one project.
func app(t *testing.T) (*forgetest.GitLab, *forgetest.Repo, provider.Config) {
	t.Helper()
	server := forgetest.NewGitLab()
	t.Cleanup(server.Close)
	return server, server.Repo("acme/team/app.web"), provider.Config{
		Object: &api.ResourceSetInputProvider{
			Meta: api.Meta{Name: "app", Namespace: "apps"},
			Spec: api.InputProviderSpec{Type: api.TypeGitLabMergeRequest, URL: server.URL + "/acme/team/app.web"},
		},
		UserAgent: "renderer/test",
		RetryWait: time.Millisecond,
	}
}

// kinds are the four types.
func kinds() []providertest.Kind {
	environments := providertest.Kind{
		Name: "environments", KeyField: "id", New: providertest.Make(NewEnvironments), PageSize: pageSize,
		Add: func(r *forgetest.Repo, n int) {
			r.Deploy(fmt.Sprintf("review/%d", n), forgetest.SHA(fmt.Sprint(n)), "success")
		},
	}
	branches, tags := providertest.Branches(pageSize, NewBranches), providertest.Tags(pageSize, NewTags)
	branches.PageOf, tags.PageOf = keysetPage, keysetPage
	return []providertest.Kind{providertest.Requests(pageSize, NewMergeRequests), branches, tags, environments}
}

// keysetPage counts pages of pageSize by the name that a page goes on from: "b008" is
// the last of page 1, and so is "t992" of the first eight when there are twenty.
func keysetPage(r *http.Request) int {
	token, number := r.URL.Query().Get("page_token"), 0
	if token == "" {
		return 1
	}
	_, _ = fmt.Sscanf(token[1:], "%d", &number)
	if token[0] == 't' {
		number -= 999 - 5*pageSize/2 - 1
		return (number-1)/pageSize + 2
	}
	return number/pageSize + 1
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

// FR-13: the path of a project in nested groups is encoded once, dots as they are.
func TestRequestTarget(t *testing.T) {
	server, repo, cfg := app(t)
	repo.Open(forgetest.PR{})
	p, err := NewMergeRequests(cfg)
	providertest.Fetch(t, p, err)
	request := server.Requests()[0]
	if target := request.RequestURI; !strings.HasPrefix(target, "/api/v4/projects/acme%2Fteam%2Fapp.web/merge_requests?") {
		t.Errorf("asked for %s", target)
	}
	if request.UserAgent() != "renderer/test" || request.Header.Get("Private-Token") != "" || request.Header.Get("Authorization") != "" {
		t.Errorf("sent %v", request.Header)
	}
}

// Each kind of credential, as it comes over the wire.
func TestCredentials(t *testing.T) {
	for key, header := range map[string]string{
		"password": "Authorization", "token": "Authorization", "bearerToken": "Authorization", "jobToken": "Job-Token",
	} {
		server, repo, cfg := app(t)
		server.RequireToken(testToken)
		repo.Open(forgetest.PR{})
		cfg.Secret = provider.Secret{key: []byte(testToken + "\n")}
		p, err := NewMergeRequests(cfg)
		if got := providertest.Texts(providertest.Fetch(t, p, err), "id"); got != "1" {
			t.Errorf("%s: got %q", key, got)
		}
		if sent := server.Requests()[0].Header.Get(header); strings.TrimPrefix(sent, "Bearer ") != testToken {
			t.Errorf("%s: sent %q in %s", key, sent, header)
		}
		// Rule 8: a server that repeats it is not quoted.
		server.Break(forgetest.Status(http.StatusForbidden, "you sent "+testToken))
		if err := providertest.Failure(t, p, nil); strings.Contains(err.Error(), testToken) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// FR-101: unchanged lists are asked for by their validators, all of them.
func TestConditionalRequests(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			server, repo, cfg := app(t)
			server.LimitPages(pageSize)
			for n := range 20 {
				kind.Add(repo, n)
			}
			p, err := kind.New(cfg)
			first := providertest.Fetch(t, p, err)
			server.Forget()
			before := server.NotModified()
			providertest.Fetch(t, p, nil, first.Inputs...)
			if asked, unchanged := server.Calls(), server.NotModified()-before; asked == 0 || asked != unchanged {
				t.Errorf("%d requests, %d of them not modified", asked, unchanged)
			}
		})
	}
}

// FR-07: past a limit of offsets the list is an error that names the page, and branches
// and tags are not read by offsets.
func TestRule01_OffsetLimit(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			server, repo, cfg := app(t)
			server.LimitPages(pageSize)
			for n := range 20 {
				kind.Add(repo, n)
			}
			server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.URL.Query().Get("page") > "2" {
					forgetest.Answer(http.StatusMethodNotAllowed, "application/json", `{"error":"Offset pagination has a maximum allowed offset of 50000"}`)(w, r, next)
					return
				}
				next.ServeHTTP(w, r)
			})
			p, err := kind.New(cfg)
			if kind.PageOf != nil {
				if got := providertest.Fetch(t, p, err); len(got.Inputs) != 20 {
					t.Errorf("%d inputs", len(got.Inputs))
				}
				return
			}
			if err := providertest.Failure(t, p, err); err.Reason != provider.Implausible || !strings.Contains(err.Error(), "page 3: ") || !strings.Contains(err.Error(), "maximum allowed offset") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Servers that know no keyset pagination of branches count pages; proxies may lose links.
func TestPaging(t *testing.T) {
	for what, change := range map[string]forgetest.Fault{
		"no keyset": func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			query := r.URL.Query()
			query.Del("pagination")
			r.URL.RawQuery = query.Encode()
			next.ServeHTTP(w, r)
		},
		"no keyset and no links": func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			query := r.URL.Query()
			query.Del("pagination")
			r.URL.RawQuery = query.Encode()
			next.ServeHTTP(&unlinked{w}, r)
		},
	} {
		t.Run(what, func(t *testing.T) {
			server, repo, cfg := app(t)
			server.LimitPages(pageSize)
			for n := range 20 {
				repo.SetBranch(fmt.Sprintf("b%d", n), forgetest.SHA(fmt.Sprint(n)))
			}
			server.Break(change)
			p, err := NewBranches(cfg)
			if got := providertest.Fetch(t, p, err); len(got.Inputs) != 20 {
				t.Errorf("%d inputs", len(got.Inputs))
			}
		})
	}
}

type unlinked struct{ http.ResponseWriter }

func (u *unlinked) Write(p []byte) (int, error) {
	u.Header().Del("Link")
	return u.ResponseWriter.Write(p)
}

// A list that does not end, or not as lists end, is no list.
func TestRule01_Pages(t *testing.T) {
	to := func(target string) forgetest.Fault {
		return forgetest.Link(func(*http.Request) string { return "<" + target + `>; rel="next"` })
	}
	query := "https://gitlab.example.com/x?order_by=created_at&page=1&per_page=100&sort=asc&state=opened"
	for name, test := range map[string]struct {
		fault forgetest.Fault
		words string
	}{
		"page 1 leads to itself": {to(query), "page 1 leads back to page 1"},
		"page 2 leads to page 1": {forgetest.OnPage(2, to(query)), "page 2 leads back to page 1"},
		"the next one is none":   {to("/x"), "page 1: the next page has no valid address"},
	} {
		t.Run(name, func(t *testing.T) {
			server, repo, cfg := app(t)
			server.LimitPages(10)
			for range 15 {
				repo.Open(forgetest.PR{})
			}
			server.Break(test.fault)
			p, err := NewMergeRequests(cfg)
			if err := providertest.Failure(t, p, err); err.Reason != provider.Implausible || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %v; want %q", err, test.words)
			}
		})
	}
}

// What a refusal means is said in GitLab's own terms.
func TestHints(t *testing.T) {
	for name, test := range map[string]struct {
		fault  forgetest.Fault
		reason provider.Reason
		hint   string
	}{
		"expired": {
			forgetest.Answer(401, "application/json", `{"error":"invalid_token","error_description":"Token is expired. You can either do re-authorization or token refresh."}`),
			provider.Auth, "renew the secret",
		},
		"scope": {
			forgetest.Answer(403, "application/json", `{"error":"insufficient_scope","error_description":"The request requires higher privileges than provided by the access token.","scope":"api read_api"}`),
			provider.Auth, "scope read_api",
		},
		"role":       {forgetest.Status(403, "403 Forbidden"), provider.Auth, "role Reporter"},
		"not found":  {forgetest.Status(404, "404 Project Not Found"), provider.NotFound, "renderer/base-url"},
		"other host": {forgetest.Redirect("https://sso.example.com/login"), provider.Redirected, "renderer/base-url"},
		"round":      {forgetest.Redirect("/api/v4/projects/acme%2Fteam%2Fapp.web/merge_requests"), provider.Redirected, "renderer/base-url"},
		"web page":   {forgetest.Page(), provider.Implausible, "renderer/base-url"},
		"elsewhere":  {forgetest.Answer(404, "text/html", "<html>"), provider.NotFound, "renderer/base-url"},
	} {
		t.Run(name, func(t *testing.T) {
			server, _, cfg := app(t)
			cfg.Secret = provider.Secret{"token": []byte(testToken)}
			server.Break(test.fault)
			p, err := NewMergeRequests(cfg)
			if err := providertest.Failure(t, p, err); err.Reason != test.reason || !strings.Contains(err.Hint, test.hint) {
				t.Errorf("got %v with hint %q", err, err.Hint)
			}
		})
	}
}

// BenchmarkPolls is what polling 500 unchanged merge requests costs: requests for one
// poll, and those of them that the server answered with a body.
func BenchmarkPolls(b *testing.B) {
	server := forgetest.NewGitLab()
	defer server.Close()
	for range 500 {
		server.Repo("acme/app").Open(forgetest.PR{})
	}
	p, err := NewMergeRequests(provider.Config{Object: &api.ResourceSetInputProvider{
		Spec: api.InputProviderSpec{URL: server.URL + "/acme/app", Filter: api.Filter{Limit: 1000}},
	}})
	if err != nil {
		b.Fatal(err)
	}
	before := server.NotModified()
	providertest.Polls(b, p, server)
	b.ReportMetric(float64(server.Calls()-server.NotModified()+before)/float64(b.N), "bodies/op")
}

// Rule 1: an empty page is no end when the server counts more.
func TestRule01_FewerThanCounted(t *testing.T) {
	server, repo, cfg := app(t)
	server.LimitPages(10)
	for range 15 {
		repo.Open(forgetest.PR{})
	}
	server.Break(forgetest.OnPage(2, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("X-Total", "15")
		forgetest.JSON("[]")(w, r, nil)
	}))
	p, err := NewMergeRequests(cfg)
	if err := providertest.Failure(t, p, err); err.Reason != provider.Implausible || !strings.Contains(err.Error(), "after 10 of 15") {
		t.Errorf("got %v", err)
	}
}
