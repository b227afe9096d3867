// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/http"
	"net/url"

	"github.com/google/go-github/v66/github"

	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// maxPage is the most that one page may have, in bytes: a hundred pull requests
// whose descriptions are as long as GitHub lets them be.
const maxPage = 32 << 20

// newClient returns a client of the API with the credential of the secret.
func newClient(cfg provider.Config, repo *repository) (*github.Client, error) {
	options := transport.Options{Base: repo.api, MaxBody: maxPage}
	if err := authorize(cfg, repo, &options); err != nil {
		return nil, err
	}
	return clientWith(cfg, repo.api, options)
}

func clientWith(cfg provider.Config, api *url.URL, options transport.Options) (*github.Client, error) {
	client, err := transport.NewClient(cfg, options)
	if err != nil {
		return nil, err
	}
	gh := github.NewClient(client)
	gh.BaseURL = api
	return gh, nil
}

func authorize(cfg provider.Config, repo *repository, options *transport.Options) error {
	if cfg.Secret == nil {
		return nil
	}
	if IsApp(cfg.Secret) {
		app, err := newApp(cfg, repo)
		if err != nil {
			return err
		}
		options.Authorize, options.Renew, options.Identity = app.authorize, app.renew, app.identity()
		return nil
	}
	token, err := token(cfg.Secret)
	if err != nil {
		return err
	}
	options.Identity = token
	options.Authorize = func(req *http.Request) error {
		req.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	return nil
}

func token(secret provider.Secret) (string, error) {
	for _, key := range []string{"password", "token"} {
		value, err := secret.Line(key)
		if value != "" || err != nil {
			return value, err
		}
	}
	return "", &provider.Error{
		Reason: provider.Misconfigured,
		Msg:    "the secret has no credential",
		Hint:   "the Secret of spec.secretRef has a token in password or token, or the keys of a GitHub App (githubAppID and others)",
	}
}
