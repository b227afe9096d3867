// SPDX-License-Identifier: Apache-2.0

package github

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

func TestBranches(t *testing.T) {
	_, repo, cfg := podinfo(t)
	// FR-10: two names with one checksum.
	repo.SetBranch("fix/cbc", forgetest.SHA("cccc"))
	repo.SetBranch("fix/bdb", forgetest.SHA("bbbb"))
	repo.SetBranch("main", forgetest.SHA("aaaa"))
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
		{"id": "178979487", "branch": "fix/bdb", "sha": forgetest.SHA("bbbb")},
		{"id": "178979487", "branch": "fix/cbc", "sha": forgetest.SHA("cccc")},
	}
	if diff := cmp.Diff(want, got.Inputs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
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
			if got := providertest.Texts(result, "tag"); got != test.want {
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
	repo.SetTag("1.3.1", forgetest.SHA("aaaa"))
	repo.SetTag("1.3.2", forgetest.SHA("bbbb"))
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
	if providertest.Texts(after, "tag") != "1.3.1" || len(after.Warnings) != 1 || !strings.Contains(after.Warnings[0], "downgrade: tag 1.3.2 is gone") {
		t.Errorf("got %q with %q", providertest.Texts(after, "tag"), after.Warnings)
	}
	cfg.Object.Annotations = map[string]string{api.AnnotationHoldDowngrades: "true"}
	held := fetch(before.Inputs)
	if diff := cmp.Diff(before.Inputs, held.Inputs); diff != "" || len(held.Warnings) != 1 {
		t.Errorf("warnings %q, (-before +held):\n%s", held.Warnings, diff)
	}
	repo.SetTag("1.4.0", forgetest.SHA("dddd"))
	if got := fetch(held.Inputs); providertest.Texts(got, "tag") != "1.4.0" || len(got.Warnings) != 0 {
		t.Errorf("after a newer one: got %q with %q", providertest.Texts(got, "tag"), got.Warnings)
	}
}
