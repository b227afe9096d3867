// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/secrets"
	"resourceset.example/renderer/pkg/gitwriter"
	"resourceset.example/renderer/pkg/source/github"
	"resourceset.example/renderer/pkg/source/provider"
)

// appUser is the user name under which Git servers of GitHub take an app's token.
const appUser = "x-access-token"

// GitCredentials are the credentials of one Git repository, from a secret under the
// keys that Flux uses for them. The secret is read before every conversation, so that
// a rotated one is used at once; tokens of a GitHub App are made when needed and
// renewed before they expire, or when the server refuses one.
type GitCredentials struct {
	url      string
	ref      config.SecretRef
	store    secretStore
	redactor *secrets.Redactor
	agent    string

	mu     sync.Mutex
	tokens *github.Tokens
	made   string // digest of the secret that tokens are of
	last   string // token that was given out last
}

// NewGitCredentials names the secret of a repository; nothing is read yet.
func NewGitCredentials(url string, auth config.Auth, store secretStore, redactor *secrets.Redactor, userAgent string) *GitCredentials {
	return &GitCredentials{url: url, ref: auth.Secret, store: store, redactor: redactor, agent: userAgent}
}

// Get is what gitwriter asks for before it talks to the server, and once more, with
// rejected set, when the server did not accept the answer. Every value is added to
// those that must never be shown.
func (c *GitCredentials) Get(ctx context.Context, rejected bool) (gitwriter.Auth, error) {
	if c.ref.IsZero() {
		return gitwriter.Auth{}, nil
	}
	data, err := c.store.Get(ctx, c.ref.Namespace, c.ref.Name)
	if err != nil {
		return gitwriter.Auth{}, err
	}
	c.redactor.Add(c.ref.String(), data)
	auth := gitwriter.Auth{
		Username: string(data["username"]), Password: string(data["password"]), BearerToken: string(data["bearerToken"]),
		Identity: data["identity"], KnownHosts: data["known_hosts"],
		CAFile: data["ca.crt"], ClientCert: data["tls.crt"], ClientKey: data["tls.key"],
	}
	if len(auth.Identity) > 0 {
		auth.Passphrase, auth.Password = auth.Password, ""
	}
	if github.IsApp(data) {
		auth.Username = appUser
		if auth.Password, err = c.appToken(ctx, data, rejected); err != nil {
			return gitwriter.Auth{}, fmt.Errorf("GitHub App of secret %s: %w", c.ref, err)
		}
	}
	return auth, nil
}

func (c *GitCredentials) appToken(ctx context.Context, data map[string][]byte, rejected bool) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if made := secretDigest(data); c.tokens == nil || c.made != made {
		tokens, err := github.NewTokens(c.url, provider.Config{Secret: data, CertSecret: certificates(data), UserAgent: c.agent})
		if err != nil {
			return "", err
		}
		c.tokens, c.made, rejected = tokens, made, false
	}
	var token string
	var err error
	if rejected {
		token, err = c.tokens.Renew(ctx, c.last)
	} else {
		token, err = c.tokens.Token(ctx)
	}
	if err != nil {
		return "", err
	}
	c.last = token
	c.redactor.Add(c.ref.String(), map[string][]byte{"installation token": []byte(token)})
	return token, nil
}

func secretDigest(data map[string][]byte) string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(h, "%q=%q\n", key, data[key])
	}
	return hex.EncodeToString(h.Sum(nil))
}
