// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

// withApp starts a server where an app is installed, and returns a secret for it.
func withApp(t *testing.T) (*forgetest.GitHub, *forgetest.App, provider.Config) {
	t.Helper()
	gh, repo, cfg := podinfo(t)
	repo.Open(forgetest.PR{})
	app, err := gh.InstallApp("stefanprodan")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Secret = provider.Secret{
		"githubAppID":             []byte(strconv.FormatInt(app.ID, 10) + "\n"),
		"githubAppInstallationID": []byte(strconv.FormatInt(app.InstallationID, 10)),
		"githubAppPrivateKey":     app.PrivateKey,
	}
	return gh, app, cfg
}

func TestApp(t *testing.T) {
	gh, app, cfg := withApp(t)
	p := newPullRequests(t, cfg)
	for range 3 {
		if got := providertest.Texts(providertest.Fetch(t, p, nil), "id"); got != "1" {
			t.Errorf("got %q", got)
		}
	}
	if app.Minted() != 1 {
		t.Errorf("%d tokens for three fetches, want 1", app.Minted())
	}
	for _, request := range gh.Requests() {
		if strings.HasSuffix(request.URL.Path, "/pulls") && !strings.HasPrefix(request.Header.Get("Authorization"), "Bearer ghs_") {
			t.Error("asked without the installation's token")
		}
	}
}

// FR-38: a token that is refused before its time is replaced once.
func TestAppRenews(t *testing.T) {
	gh, app, cfg := withApp(t)
	p := newPullRequests(t, cfg)
	providertest.Fetch(t, p, nil)
	app.Revoke()
	providertest.Fetch(t, p, nil)
	if app.Minted() != 2 {
		t.Errorf("%d tokens, want 2", app.Minted())
	}
	gh.Break(forgetest.Times(100, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/pulls") {
			forgetest.Status(401, "Bad credentials")(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	}))
	if _, err := p.Fetch(t.Context(), nil); provider.ReasonOf(err) != provider.Auth {
		t.Errorf("got %v, want an auth error", err)
	}
	if app.Minted() != 3 {
		t.Errorf("%d tokens, want 3: no more than one for a refusal", app.Minted())
	}
}

// A token that ends soon is replaced before it does.
func TestAppRenewsInTime(t *testing.T) {
	_, app, cfg := withApp(t)
	p := newPullRequests(t, cfg)
	app.TokenLife(renewBefore + 2*time.Minute)
	providertest.Fetch(t, p, nil)
	providertest.Fetch(t, p, nil)
	if app.Minted() != 1 {
		t.Errorf("%d tokens, want 1", app.Minted())
	}
}

func TestAppByOwner(t *testing.T) {
	_, _, cfg := withApp(t)
	delete(cfg.Secret, "githubAppInstallationID")
	cfg.Secret["githubAppInstallationOwner"] = []byte("StefanProdan")
	if got := providertest.Texts(providertest.Fetch(t, newPullRequests(t, cfg), nil), "id"); got != "1" {
		t.Errorf("got %q", got)
	}
	cfg.Secret["githubAppInstallationOwner"] = []byte("nobody")
	_, err := newPullRequests(t, cfg).Fetch(t.Context(), nil)
	if provider.ReasonOf(err) != provider.Auth || !strings.Contains(err.Error(), "GitHub App") {
		t.Errorf("got %v, want an auth error about the app", err)
	}
}

func TestAppBaseURL(t *testing.T) {
	gh, _, cfg := withApp(t)
	cfg.Secret["githubAppBaseURL"] = []byte(gh.URL + "/api/v3")
	if got := providertest.Texts(providertest.Fetch(t, newPullRequests(t, cfg), nil), "id"); got != "1" {
		t.Errorf("got %q", got)
	}
}

func TestAppConfig(t *testing.T) {
	gh, app, cfg := withApp(t)
	good := cfg.Secret
	for name, change := range map[string]provider.Secret{
		"no ID":                     {"githubAppID": nil},
		"ID is no number":           {"githubAppID": []byte("app")},
		"no key":                    {"githubAppPrivateKey": nil},
		"broken key":                {"githubAppPrivateKey": app.PrivateKey[:200]},
		"no installation":           {"githubAppInstallationID": nil},
		"installation is no number": {"githubAppInstallationID": []byte("x")},
		"base of another host":      {"githubAppBaseURL": []byte("https://evil.example/api/v3")},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Secret = provider.Secret{}
			for key, value := range good {
				cfg.Secret[key] = value
			}
			for key, value := range change {
				cfg.Secret[key] = value
			}
			_, err := NewPullRequests(cfg)
			if provider.ReasonOf(err) != provider.Misconfigured || strings.Contains(err.Error(), "MII") {
				t.Errorf("got %v, want a config error", err)
			}
		})
	}
	if len(gh.Requests()) != 0 {
		t.Error("a broken secret led to a request")
	}
}

// FR-38: the same tokens for Git, and one new one when Git's server refuses it.
func TestTokens(t *testing.T) {
	gh, app, cfg := withApp(t)
	if !IsApp(cfg.Secret) || IsApp(provider.Secret{"password": []byte("x")}) {
		t.Error("the secret is not told from others")
	}
	tokens, err := NewTokens(gh.URL+"/stefanprodan/fleet.git", provider.Config{Secret: cfg.Secret})
	if err != nil {
		t.Fatal(err)
	}
	first, err := tokens.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := tokens.Token(t.Context()); err != nil || again != first || app.Minted() != 1 {
		t.Errorf("got %v after %d tokens, want the first one again", err, app.Minted())
	}
	for range 2 { // two that were refused at the same time need one new token
		renewed, err := tokens.Renew(t.Context(), first)
		if err != nil || renewed == first || app.Minted() != 2 {
			t.Errorf("got %v after %d tokens, want a second one", err, app.Minted())
		}
	}
}
