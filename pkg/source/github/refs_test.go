// SPDX-License-Identifier: Apache-2.0

package github

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

func TestRefsContract(t *testing.T) {
	for field, kind := range map[string]struct {
		make func(provider.Config) (providertest.Fetcher, error)
		add  func(r *forgetest.Repo, n int)
	}{
		"branch": {
			func(cfg provider.Config) (providertest.Fetcher, error) { return NewBranches(cfg) },
			func(r *forgetest.Repo, n int) { r.SetBranch(fmt.Sprintf("b%03d", n), forgetest.SHA(fmt.Sprint(n))) },
		},
		"tag": { // counted backwards, for the order is that of names backwards
			func(cfg provider.Config) (providertest.Fetcher, error) { return NewTags(cfg) },
			func(r *forgetest.Repo, n int) { r.SetTag(fmt.Sprintf("t%03d", 999-n), forgetest.SHA(fmt.Sprint(n))) },
		},
	} {
		t.Run(field, func(t *testing.T) {
			providertest.Contract(t, func(t *testing.T, items int) providertest.Fixture {
				const pageSize = 8
				gh, repo, cfg := podinfo(t)
				gh.RequireToken(testToken)
				gh.LimitPages(pageSize)
				cfg.Secret = provider.Secret{"password": []byte(testToken)}
				n := 0
				add := func() { n++; kind.add(repo, n) }
				for range items {
					add()
				}
				return providertest.Fixture{
					Server: gh, Config: cfg, New: kind.make, Add: add, CredentialKey: "password", KeyField: field, PageSize: pageSize,
				}
			})
		})
	}
}

func TestBranches(t *testing.T) {
	_, repo, cfg := podinfo(t)
	// FR-10: two names with one checksum.
	repo.SetBranch("fix/cbc", "cccc")
	repo.SetBranch("fix/bdb", "bbbb")
	repo.SetBranch("main", "aaaa")
	cfg.Object.Spec.Filter = api.Filter{ExcludeBranch: "^main$"}
	cfg.Object.Spec.Skip.Labels = []string{"!has-no-effect-here"}
	p, err := NewBranches(cfg)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Fetch(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []api.Input{
		{"id": "178979487", "branch": "fix/bdb", "sha": "bbbb"},
		{"id": "178979487", "branch": "fix/cbc", "sha": "cccc"},
	}
	if diff := cmp.Diff(want, got.Inputs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func tagsOf(result provider.Result) string {
	var all []string
	for _, input := range result.Inputs {
		all = append(all, input["tag"].(string))
	}
	return strings.Join(all, " ")
}

func TestTags(t *testing.T) {
	_, repo, cfg := podinfo(t)
	for _, tag := range []string{"v1.0.1", "v0.2.0", "1.10.0", "1.9.0", "2.0.0-rc.1", "nightly", "latest"} {
		repo.SetTag(tag, forgetest.SHA(tag))
	}
	for name, test := range map[string]struct {
		filter api.Filter
		want   string
	}{
		"all":             {api.Filter{}, "v1.0.1 v0.2.0 nightly latest 2.0.0-rc.1 1.9.0 1.10.0"},
		"filters":         {api.Filter{IncludeTag: "^v?[0-9]", ExcludeTag: "rc"}, "v1.0.1 v0.2.0 1.9.0 1.10.0"},
		"range":           {api.Filter{Semver: ">=1.0.0"}, "1.10.0 1.9.0 v1.0.1"},
		"newest":          {api.Filter{Semver: ">=1.0.0", Limit: 1}, "1.10.0"},
		"with prerelease": {api.Filter{Semver: ">=1.0.0-0", Limit: 2}, "2.0.0-rc.1 1.10.0"},
		"range and name":  {api.Filter{Semver: "*", IncludeTag: "^v"}, "v1.0.1 v0.2.0"},
		"none":            {api.Filter{Semver: ">=9"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Object.Spec.Filter = test.filter
			p, err := NewTags(cfg)
			if err != nil {
				t.Fatal(err)
			}
			result, err := p.Fetch(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := tagsOf(result); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if test.want == "1.10.0" {
				want := api.Input{"id": provider.Checksum("1.10.0"), "tag": "1.10.0", "sha": forgetest.SHA("1.10.0")}
				if diff := cmp.Diff(want, result.Inputs[0]); diff != "" || result.Matched != 3 || len(result.Warnings) != 0 {
					t.Errorf("matched %d, warnings %q, (-want +got):\n%s", result.Matched, result.Warnings, diff)
				}
			}
		})
	}
}

// FR-08: a newest tag that vanishes is a downgrade, and is held where that is asked for.
func TestDowngrade(t *testing.T) {
	_, repo, cfg := podinfo(t)
	repo.SetTag("1.3.1", "aaaa")
	repo.SetTag("1.3.2", "bbbb")
	cfg.Object.Spec.Filter = api.Filter{Semver: ">=1.0.0", Limit: 1}
	fetch := func(previous []api.Input) provider.Result {
		t.Helper()
		p, err := NewTags(cfg)
		if err != nil {
			t.Fatal(err)
		}
		result, err := p.Fetch(t.Context(), previous)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	before := fetch(nil)
	repo.DeleteTag("1.3.2")
	after := fetch(before.Inputs)
	if tagsOf(after) != "1.3.1" || len(after.Warnings) != 1 || !strings.Contains(after.Warnings[0], "downgrade: tag 1.3.2 is gone") {
		t.Errorf("got %q with %q", tagsOf(after), after.Warnings)
	}
	cfg.Object.Annotations = map[string]string{api.AnnotationHoldDowngrades: "true"}
	held := fetch(before.Inputs)
	if diff := cmp.Diff(before.Inputs, held.Inputs); diff != "" || len(held.Warnings) != 1 {
		t.Errorf("warnings %q, (-before +held):\n%s", held.Warnings, diff)
	}
	repo.SetTag("1.4.0", "dddd")
	if got := fetch(held.Inputs); tagsOf(got) != "1.4.0" || len(got.Warnings) != 0 {
		t.Errorf("after a newer one: got %q with %q", tagsOf(got), got.Warnings)
	}
}
