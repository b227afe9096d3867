// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

func object(url, base string) *api.ResourceSetInputProvider {
	o := &api.ResourceSetInputProvider{Spec: api.InputProviderSpec{URL: url}}
	if base != "" {
		o.Annotations = map[string]string{api.AnnotationBaseURL: base}
	}
	return o
}

func TestParseProject(t *testing.T) {
	for _, test := range []struct{ url, base, api, path string }{
		{"https://gitlab.com/acme/app", "", "https://gitlab.com/api/v4/", "acme/app"},
		{"https://gitlab.example.com/a/b/c/app.web", "", "https://gitlab.example.com/api/v4/", "a/b/c/app.web"},
		{"https://gitlab.com/acme/app.git/", "", "https://gitlab.com/api/v4/", "acme/app"}, // FR-15
		{"https://gitlab.com/acme/app/-/merge_requests", "", "https://gitlab.com/api/v4/", "acme/app"},
		{"http://h:8080/gitlab/acme/app", "", "http://h:8080/api/v4/", "gitlab/acme/app"}, // no guess
		{"http://h:8080/gitlab/acme/app", "http://h:8080/gitlab", "http://h:8080/gitlab/api/v4/", "acme/app"},
		{"https://H/a/b/acme/app", "https://h/a/b/", "https://h/a/b/api/v4/", "acme/app"},
		{"https://h/gitlab/acme/app", "https://h/gitlab/api/v4/", "https://h/gitlab/api/v4/", "acme/app"},
	} {
		got, err := parseProject(object(test.url, test.base))
		if err != nil {
			t.Errorf("%s below %q: %v", test.url, test.base, err)
			continue
		}
		if got.api.String() != test.api || got.path != test.path {
			t.Errorf("%s below %q: got %s, %s", test.url, test.base, got.api, got.path)
		}
	}
	for url, base := range map[string]string{
		"https://gitlab.com/acme":            "",
		"https://gitlab.com/acme/-/settings": "",
		"https://h/gitlab/app":               "https://h/gitlab",
		"https://h/other/acme/app":           "https://h/gitlab",
		"https://h/gitlabber/acme/app":       "https://h/gitlab",
		"https://h/acme/app":                 "https://elsewhere/",
		"http://h/acme/app":                  "https://h/",
		"git@gitlab.com:acme/app.git":        "",
	} {
		if got, err := parseProject(object(url, base)); provider.ReasonOf(err) != provider.Misconfigured {
			t.Errorf("%s below %q: got %+v, %v", url, base, got, err)
		}
	}
}

// An address in the API has the form of a project's page in a group "api".
func TestRefusesAPI(t *testing.T) {
	for url, hint := range map[string]string{
		"https://gitlab.com/api/v4/projects/acme%2Fteam%2Fapp":                "write https://gitlab.com/acme/team/app,",
		"https://gitlab.com/api/v4/projects/acme%2Fapp/merge_requests?page=2": "write https://gitlab.com/acme/app,",
		"https://gitlab.com/api/v4/projects/278964":                           "write https://gitlab.com/GROUP/PROJECT,",
		"https://h:8443/gitlab/api/v4/projects/acme%2Fapp":                    "write https://h:8443/gitlab/acme/app,",
	} {
		_, err := parseProject(object(url, ""))
		var known *provider.Error
		if !errors.As(err, &known) || known.Reason != provider.Misconfigured || !strings.Contains(known.Hint, hint) {
			t.Errorf("%s: got %v, want a hint with %q", url, err, hint)
		}
	}
}

func FuzzParseProject(f *testing.F) {
	f.Add("https://gitlab.com/a/b", "")
	f.Add("https://h/gitlab/a/b.git", "https://h/gitlab/")
	f.Add("http://h//a/../b/-/c", "http://h/%2e%2e")
	f.Fuzz(func(t *testing.T, url, base string) {
		p, err := parseProject(object(url, base))
		if err != nil {
			return
		}
		for part := range strings.SplitSeq(p.path, "/") {
			if part == "" || part == ".." || part == "-" {
				t.Errorf("%q below %q: path %q", url, base, p.path)
			}
		}
		if !strings.Contains(p.path, "/") || !strings.HasSuffix(p.api.Path, "/api/v4/") || p.api.User != nil || strings.Count(p.resource("x"), "/") != 2 {
			t.Errorf("%q below %q: got %+v", url, base, p)
		}
	})
}

// A server below a path is asked there, when the annotation says so, and nowhere else.
func TestSubPath(t *testing.T) {
	server, repo, cfg := app(t)
	repo.Open(forgetest.PR{})
	server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		http.StripPrefix("/gitlab", next).ServeHTTP(w, r)
	})
	cfg.Object.Spec.URL = server.URL + "/gitlab/acme/team/app.web"
	p, err := NewMergeRequests(cfg)
	if err := providertest.Failure(t, p, err); err.Reason != provider.NotFound || server.Calls() != 1 {
		t.Errorf("got %v in %d requests", err, server.Calls())
	}
	cfg.Object.Annotations = map[string]string{api.AnnotationBaseURL: server.URL + "/gitlab"}
	p, err = NewMergeRequests(cfg)
	if got := providertest.Texts(providertest.Fetch(t, p, err), "id"); got != "1" {
		t.Errorf("got %q", got)
	}
}
