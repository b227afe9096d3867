// SPDX-License-Identifier: Apache-2.0

package github

import (
	"fmt"
	"sync"
	"testing"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

// FR-101: thirty providers on one repository with different label filters cost one
// listing a pass, and a second pass over an unchanged list no rate limit.
func TestSharedListing(t *testing.T) {
	gh, repo, cfg := podinfo(t)
	gh.RequireToken(testToken)
	cfg.Shared, cfg.Secret = &provider.Shared{}, provider.Secret{"password": []byte(testToken)}
	const count = 30
	providers := make([]*PullRequests, count)
	for i := range providers {
		label := fmt.Sprintf("team-%d", i)
		repo.Open(forgetest.PR{Labels: []string{label}})
		own := cfg
		own.Object = &api.ResourceSetInputProvider{Spec: cfg.Object.Spec}
		own.Object.Spec.Filter.Labels = []string{label}
		providers[i] = newPullRequests(t, own)
	}
	for pass := range 2 {
		ctx := provider.WithPass(t.Context())
		var wg sync.WaitGroup
		for i, p := range providers {
			wg.Go(func() {
				result, err := p.Fetch(ctx, nil)
				if err != nil || providertest.Texts(result, "id") != fmt.Sprint(i+1) {
					t.Errorf("provider %d: %q, %v", i, providertest.Texts(result, "id"), err)
				}
			})
		}
		wg.Wait()
		if asked := len(gh.Requests()); asked != pass+1 {
			t.Errorf("%d requests after %d passes", asked, pass+1)
		}
		if gh.Spent() != 1 {
			t.Errorf("spent %d after %d passes", gh.Spent(), pass+1)
		}
	}
	// A change is seen in the next pass, and outside of passes at once.
	repo.Close(1)
	if got := providertest.Texts(providertest.Fetch(t, providers[0], nil), "id"); got != "" {
		t.Errorf("got %q after it closed", got)
	}
	if result, err := providers[0].Fetch(provider.WithPass(t.Context()), nil); err != nil || providertest.Texts(result, "id") != "" {
		t.Errorf("got %q, %v after it closed", providertest.Texts(result, "id"), err)
	}
}

// An error is not shared as a result, and other credentials see only their own.
func TestSharedListingKeepsApart(t *testing.T) {
	gh, repo, cfg := podinfo(t)
	repo.Open(forgetest.PR{})
	gh.RequireToken(testToken)
	cfg.Shared, cfg.Secret = &provider.Shared{}, provider.Secret{"password": []byte(testToken)}
	right := newPullRequests(t, cfg)
	cfg.Secret = provider.Secret{"password": []byte("not-the-right-one")}
	wrong := newPullRequests(t, cfg)
	ctx := provider.WithPass(t.Context())

	gh.Break(forgetest.Page())
	if _, err := right.Fetch(ctx, nil); provider.ReasonOf(err) != provider.Implausible {
		t.Errorf("got %v", err)
	}
	gh.Heal()
	if result, err := right.Fetch(ctx, nil); err != nil || providertest.Texts(result, "id") != "1" {
		t.Errorf("got %q, %v: the failure before is no answer", providertest.Texts(result, "id"), err)
	}
	if _, err := wrong.Fetch(ctx, nil); provider.ReasonOf(err) != provider.Auth {
		t.Errorf("got %v, want an auth error", err)
	}
}

// FR-38: providers of one app share its token.
func TestSharedAppToken(t *testing.T) {
	gh, app, cfg := withApp(t)
	gh.Repo("stefanprodan/other").Open(forgetest.PR{})
	cfg.Shared = &provider.Shared{}
	one := newPullRequests(t, cfg)
	cfg.Object = &api.ResourceSetInputProvider{Spec: api.InputProviderSpec{URL: gh.URL + "/stefanprodan/other"}}
	two := newPullRequests(t, cfg)
	providertest.Fetch(t, one, nil)
	providertest.Fetch(t, two, nil)
	if app.Minted() != 1 {
		t.Errorf("%d tokens for two providers, want 1", app.Minted())
	}
}
