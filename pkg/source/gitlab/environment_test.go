// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

func newEnvironments(t *testing.T, cfg provider.Config) *Environments {
	t.Helper()
	e, err := NewEnvironments(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEnvironmentFields(t *testing.T) {
	_, repo, cfg := app(t)
	repo.Deploy("review/feat-x", "6063e25000000000000000000000000000000000", "success") // FR-21: stays a text
	repo.Deploy("none", forgetest.SHA("bbbb"), "success")                               // has no external URL
	got := providertest.Fetch(t, newEnvironments(t, cfg), nil).Inputs
	want := api.Input{
		"id": "2", "title": "review/feat-x", "slug": "review-feat-x-x1", "url": "https://review-feat-x-x1.example.com",
		"sha": "6063e25000000000000000000000000000000000", "branch": "feat/feat-x", "author": "deployer",
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a, b := slices.Sorted(maps.Keys(got[0])), slices.Sorted(maps.Keys(got[1])); !slices.Equal(a, b) || got[1]["url"] != "" {
		t.Errorf("fields %v and %v, url %q", a, b, got[1]["url"])
	}
}

// Whoever may write a pipeline says what an environment's URL is.
func TestEnvironmentURLIsOfTheWeb(t *testing.T) {
	for _, raw := range []string{"javascript:alert(1)", "data:text/html,x", "//evil.example"} {
		env := environment{id: 1, name: "a", slug: "a", url: raw}
		if got := (deployment{id: 1}).input(env)["url"]; got != "" {
			t.Errorf("%s: exported as %q", raw, got)
		}
	}
}

// commit stands for a text; for nothing, nothing does.
func commit(text string) string {
	if text == "" {
		return ""
	}
	return forgetest.SHA(text)
}

// FR-14: what is exported follows from the state of an environment and its deployments.
func TestEnvironmentStates(t *testing.T) {
	for name, test := range map[string]struct {
		state    string
		statuses []string // of deployments of s1, s2, …
		previous string   // commit exported before
		want     string   // commit, or nothing
	}{
		"available":                               {"available", []string{"success"}, "", "s1"},
		"newer one succeeded":                     {"available", []string{"success", "success"}, "s1", "s2"},
		"newer one runs":                          {"available", []string{"success", "running"}, "s1", "s2"},
		"two run":                                 {"available", []string{"success", "running", "running"}, "s1", "s3"},
		"newer one failed":                        {"available", []string{"success", "failed"}, "s2", "s1"},
		"newer one waits":                         {"available", []string{"success", "created"}, "s1", "s1"},
		"newer one waits for approval":            {"available", []string{"success", "blocked"}, "s1", "s1"},
		"an older one still runs":                 {"available", []string{"running", "success"}, "s1", "s2"},
		"the first one runs":                      {"available", []string{"running"}, "", "s1"},
		"the first one waits":                     {"available", []string{"created"}, "", ""},
		"the first one failed":                    {"available", []string{"failed"}, "", ""},
		"the first one failed after it ran":       {"available", []string{"failed"}, "s1", "s1"},
		"none":                                    {"available", nil, "", ""},
		"stopping":                                {"stopping", []string{"success"}, "s1", "s1"},
		"stopped":                                 {"stopped", []string{"success"}, "s1", ""},
		"stopped, the newer one was canceled":     {"stopped", []string{"success", "canceled"}, "s1", ""},
		"stopped, and deployed again just now":    {"stopped", []string{"success", "running"}, "s1", "s2"},
		"stopped, and deployed again, seen first": {"stopped", []string{"success", "running"}, "", "s2"},
		"a state that is not known":               {"resting", []string{"success"}, "s1", "s1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, repo, cfg := app(t)
			repo.Environment("review/1", test.state)
			for i, status := range test.statuses {
				repo.Deploy("review/1", commit(fmt.Sprintf("s%d", i+1)), status)
			}
			var previous []api.Input
			if test.previous != "" {
				previous = []api.Input{{"id": "1", "sha": commit(test.previous), "slug": "renamed since", "provider": map[string]any{"name": "x"}}}
			}
			got := providertest.Fetch(t, newEnvironments(t, cfg), nil, previous...)
			if sha := providertest.Texts(got, "sha"); sha != commit(test.want) {
				t.Fatalf("got %q, want %q", sha, test.want)
			}
			if test.want != "" && (got.Inputs[0]["slug"] != "review-1-x1" || got.Inputs[0]["provider"] != nil) {
				t.Errorf("got %v", got.Inputs[0])
			}
		})
	}
}

// A record from Git has the fields that templates read: without the commit, none is made up.
func TestEnvironmentKeptWithoutCommit(t *testing.T) {
	_, repo, cfg := app(t)
	repo.Deploy("review/1", commit("s1"), "failed")
	got := providertest.Fetch(t, newEnvironments(t, cfg), nil, api.Input{"id": "2", "slug": "review-1-x1"})
	if len(got.Inputs) != 1 {
		t.Fatalf("got %v", got.Inputs)
	}
	if sha, ok := got.Inputs[0]["sha"]; ok {
		t.Errorf("sha %v of a deployment that failed", sha)
	}
}

// FR-02: when the deployments of one environment cannot be read, nothing is exported.
func TestRule01_OneOfTheCallsFails(t *testing.T) {
	for name, fault := range map[string]forgetest.Fault{
		"503":               forgetest.Status(503, "no"),
		"404":               forgetest.Status(404, "404 Environment Not Found"),
		"null":              forgetest.JSON("null"),
		"cut":               forgetest.Truncate(),
		"of another":        forgetest.JSON(`[{"id":99,"sha":"` + commit("a") + `","ref":"b","status":"success","environment":{"id":77}}]`),
		"of another status": forgetest.JSON(`[{"id":99,"sha":"` + commit("a") + `","ref":"b","status":"failed","environment":{"id":3}}]`),
	} {
		t.Run(name, func(t *testing.T) {
			server, repo, cfg := app(t)
			for i := range 3 {
				repo.Deploy(fmt.Sprintf("review/%d", i+1), forgetest.SHA("aaaa"), "success")
			}
			server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.URL.Query().Get("environment") == "review/2" {
					fault(w, r, next)
					return
				}
				next.ServeHTTP(w, r)
			})
			err := providertest.Failure(t, newEnvironments(t, cfg), nil)
			if !strings.Contains(err.Error(), "deployments to review/2") || err.Hint == "" || err.Reason == provider.Canceled {
				t.Errorf("got %v (%s), hint %q", err, err.Reason, err.Hint)
			}
		})
	}
}

// A deployment that ends while lists are read does not take its environment away.
func TestEnvironmentStartsMeanwhile(t *testing.T) {
	server, repo, cfg := app(t)
	repo.Environment("review/1", "stopped")
	id := repo.Deploy("review/1", commit("s1"), "running")
	server.Break(forgetest.After(1, func() {
		repo.Deployed(id, "success")
		repo.Environment("review/1", "available")
	}))
	if got := providertest.Texts(providertest.Fetch(t, newEnvironments(t, cfg), nil), "sha"); got != commit("s1") {
		t.Errorf("got %q", got)
	}
}

// FR-101: filters come before the calls for each environment, stopped ones cost none,
// and providers of one project share what they ask.
func TestEnvironmentRequests(t *testing.T) {
	server, repo, cfg := app(t)
	cfg.Shared = &provider.Shared{}
	for i := range 10 {
		repo.Deploy(fmt.Sprintf("review/%d", i), forgetest.SHA("aaaa"), "success")
		repo.Deploy(fmt.Sprintf("other/%d", i), forgetest.SHA("aaaa"), "success")
		repo.Environment(fmt.Sprintf("review/old%d", i), "stopped")
	}
	repo.Deploy("review/running", forgetest.SHA("bbbb"), "running")
	cfg.Object.Spec.Filter = api.Filter{IncludeEnvironment: "^review/", ExcludeEnvironment: "/[5-9]$"}
	a, b := newEnvironments(t, cfg), newEnvironments(t, cfg)
	ctx := provider.WithPass(t.Context())
	for _, e := range []*Environments{a, b} {
		result, err := e.Fetch(ctx, nil)
		if err != nil || len(result.Inputs) != 6 || result.Inputs[5]["sha"] != forgetest.SHA("bbbb") {
			t.Fatalf("got %v, %v", result.Inputs, err)
		}
	}
	if got := server.Calls(); got != 2+6 {
		t.Errorf("%d requests, want two lists and one for each of six environments", got)
	}
}

func TestEnvironmentsOrderAndLimit(t *testing.T) {
	_, repo, cfg := app(t)
	for _, name := range []string{"c", "a", "b"} {
		repo.Deploy(name, forgetest.SHA("aaaa"), "success")
	}
	cfg.Object.Spec.Filter.Limit = 2
	got := providertest.Fetch(t, newEnvironments(t, cfg), nil)
	if titles := providertest.Texts(got, "title"); titles != "c a" || got.Matched != 3 || len(got.Warnings) != 1 {
		t.Errorf("got %q, %d matched, %q", titles, got.Matched, got.Warnings)
	}
}
