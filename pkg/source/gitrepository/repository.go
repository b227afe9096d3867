// SPDX-License-Identifier: Apache-2.0

package gitrepository

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"resourceset.example/renderer/pkg/gitwriter"
	"resourceset.example/renderer/pkg/source/github"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

const (
	// maxCommit is the most that a commit may have, packed.
	maxCommit = 256 << 20
	// appUser is the user that an app's token belongs to.
	appUser = "x-access-token"
)

// connect returns the remote that a definition names. Git's own transports know
// more URLs than a definition may have: one with a path on this machine would read
// what is there.
func connect(cfg provider.Config) (*gitwriter.Remote, error) {
	raw := cfg.Object.Spec.URL
	options := gitwriter.Config{URL: raw, UserAgent: cfg.UserAgent}
	scheme, _, hasScheme := strings.Cut(raw, "://")
	switch scheme = strings.ToLower(scheme); {
	case hasScheme && (scheme == "https" || scheme == "http"):
		u, err := provider.ParseURL(raw)
		if err != nil {
			return nil, err
		}
		if scheme == "http" && !cfg.Object.Spec.Insecure {
			return nil, misconfigured("spec.url is http://", "use https://, or say spec.insecure: true")
		}
		if options.HTTPClient, err = newHTTPClient(cfg, u); err != nil {
			return nil, err
		}
	case !hasScheme || scheme == "ssh":
		options.Auth = gitwriter.Auth{Identity: cfg.Secret["identity"], KnownHosts: cfg.Secret["known_hosts"]}
		var err error
		if options.Auth.Passphrase, err = cfg.Secret.Line("password"); err != nil {
			return nil, err
		}
	default:
		return nil, misconfigured("spec.url has neither https:// nor ssh://", "write https://HOST/PATH or ssh://git@HOST/PATH")
	}
	remote, err := gitwriter.NewRemote(options)
	var auth *gitwriter.AuthError
	if errors.As(err, &auth) { // of a secret that was not even used yet
		return nil, misconfigured("the secret of spec.secretRef: "+auth.Reason, auth.Hint)
	}
	if err != nil {
		return nil, describe(err)
	}
	return remote, nil
}

// newHTTPClient is the transport that all providers have, with Git's credentials.
func newHTTPClient(cfg provider.Config, base *url.URL) (*http.Client, error) {
	authorize, err := authorization(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.CertSecret == nil {
		cfg.CertSecret = certificates(cfg.Secret)
	}
	return transport.NewClient(cfg, transport.Options{
		Base: base, Authorize: authorize, Identity: cfg.Identity(), MaxBody: maxCommit,
	})
}

func authorization(cfg provider.Config) (func(*http.Request) error, error) {
	if cfg.Secret == nil {
		return nil, nil
	}
	if github.IsApp(cfg.Secret) {
		tokens, err := github.NewTokens(cfg.Object.Spec.URL, cfg)
		if err != nil {
			return nil, err
		}
		return func(req *http.Request) error {
			token, err := tokens.Token(req.Context())
			if err == nil {
				req.SetBasicAuth(appUser, token)
			}
			return err
		}, nil
	}
	var values [3]string
	for i, key := range []string{"bearerToken", "username", "password"} {
		var err error
		if values[i], err = cfg.Secret.Line(key); err != nil {
			return nil, err
		}
	}
	bearer, username, password := values[0], values[1], values[2]
	switch {
	case bearer != "" && password == "":
		return func(req *http.Request) error {
			req.Header.Set("Authorization", "Bearer "+bearer)
			return nil
		}, nil
	case bearer == "" && password != "":
		return func(req *http.Request) error {
			req.SetBasicAuth(username, password)
			return nil
		}, nil
	case bearer == "" && len(certificates(cfg.Secret)) > 0:
		return nil, nil
	}
	return nil, misconfigured("the secret has no credential for Git over HTTPS, or two of them",
		"the Secret of spec.secretRef has username and password, or bearerToken, or the keys of a GitHub App")
}

// certificates are those that Flux lets stand beside the credential.
func certificates(secret provider.Secret) provider.Secret {
	var found provider.Secret
	for _, key := range []string{"ca.crt", "tls.crt", "tls.key"} {
		if value := secret[key]; len(value) > 0 {
			if found == nil {
				found = provider.Secret{}
			}
			found[key] = value
		}
	}
	return found
}

// describe turns the errors of gitwriter into those of the provider package.
func describe(err error) error {
	var (
		known     *provider.Error
		auth      *gitwriter.AuthError
		missing   *gitwriter.NotFoundError
		address   *gitwriter.URLError
		large     *gitwriter.TooLargeError
		server    *gitwriter.ServerError
		described = &provider.Error{Reason: provider.Unavailable, Err: err, Hint: "check spec.url, and the network; the last good list stands"}
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled):
		described.Reason, described.Hint = provider.Canceled, ""
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, gitwriter.ErrTimeout):
		described.Reason, described.Hint = provider.Timeout, "the server took too long: it may be down, or a firewall in between"
	case errors.As(err, &auth):
		described.Reason, described.Hint = provider.Auth, auth.Hint
		if described.Hint == "" {
			described.Hint = "renew the Secret of spec.secretRef"
		}
	case errors.As(err, &missing):
		described.Reason, described.Hint = provider.NotFound, missing.Suggestion()
	case errors.As(err, &address):
		described.Reason, described.Hint = provider.Misconfigured, address.Hint
	case errors.As(err, &large):
		described.Reason, described.Hint = provider.TooLarge, "split the repository, or keep what is looked at in one of its own"
	case errors.Is(err, gitwriter.ErrSHA256):
		described.Reason, described.Hint = provider.Misconfigured, "use a repository with SHA-1 names"
	case errors.As(err, &server) && server.Status < http.StatusInternalServerError && server.Err != nil, errors.As(err, &server) && server.Status == http.StatusOK:
		described.Reason, described.Hint = provider.Implausible, "check that spec.url is a Git repository; the last good list stands"
	}
	return described
}

func misconfigured(msg, hint string) error {
	return &provider.Error{Reason: provider.Misconfigured, Msg: msg, Hint: hint}
}
