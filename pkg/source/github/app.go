// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v66/github"

	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// A token of an installation lives an hour and is replaced this long before it
// ends. The claim that gets one lives a few minutes, and starts in the past
// because clocks differ.
const (
	renewBefore = 5 * time.Minute
	claimLife   = 5 * time.Minute
	clockSkew   = time.Minute
)

// Tokens are the tokens of a GitHub App for whatever else speaks to the same
// server, above all Git over HTTPS, where they are the password of the user
// "x-access-token". A token is made when it is needed and kept while it lasts.
type Tokens struct{ app *app }

// NewTokens returns the tokens of the app in a secret, for the server of a
// repository's address. Of the config, Object is not used.
func NewTokens(repositoryURL string, cfg provider.Config) (*Tokens, error) {
	repo, err := parseURL(repositoryURL)
	if err != nil {
		return nil, err
	}
	app, err := newApp(cfg, repo)
	if err != nil {
		return nil, err
	}
	return &Tokens{app}, nil
}

// IsApp tells whether a secret has the keys of a GitHub App.
func IsApp(secret provider.Secret) bool {
	return len(secret["githubAppID"]) > 0 || len(secret["githubAppPrivateKey"]) > 0
}

// Token returns a token that is good for some minutes at least.
func (t *Tokens) Token(ctx context.Context) (string, error) { return t.app.current(ctx) }

// Renew returns a new token in place of one that the server refused.
func (t *Tokens) Renew(ctx context.Context, refused string) (string, error) {
	t.app.mu.Lock()
	defer t.app.mu.Unlock()
	if t.app.token == refused { // else another caller was faster
		if err := t.app.mint(ctx); err != nil {
			return "", err
		}
	}
	return t.app.token, nil
}

// An app gets tokens as one installation of a GitHub App.
type app struct {
	id           string
	installation int64  // 0 until it is looked up
	owner        string // the account that it is installed at
	key          *rsa.PrivateKey
	client       *github.Client

	mu      sync.Mutex
	token   string
	expires time.Time
}

func newApp(cfg provider.Config, repo *repository) (*app, error) {
	values := map[string]string{}
	for _, key := range []string{"githubAppID", "githubAppInstallationID", "githubAppInstallationOwner", "githubAppBaseURL"} {
		value, err := cfg.Secret.Line(key)
		if err != nil {
			return nil, err
		}
		values[key] = strings.TrimSpace(value)
	}
	a := &app{id: values["githubAppID"], owner: values["githubAppInstallationOwner"]}
	if _, err := strconv.ParseInt(a.id, 10, 64); err != nil {
		return nil, appError("githubAppID is not a number")
	}
	switch id := values["githubAppInstallationID"]; {
	case id != "":
		number, err := strconv.ParseInt(id, 10, 64)
		if err != nil || number <= 0 {
			return nil, appError("githubAppInstallationID is not a number")
		}
		a.installation = number
	case a.owner == "":
		return nil, appError("githubAppInstallationID and githubAppInstallationOwner are both missing")
	}
	var err error
	if a.key, err = parseKey(cfg.Secret["githubAppPrivateKey"]); err != nil {
		return nil, appError("githubAppPrivateKey is not an RSA private key in PEM")
	}
	api := repo.api
	if raw := values["githubAppBaseURL"]; raw != "" {
		if api, err = url.Parse(strings.TrimRight(raw, "/") + "/"); err != nil || !transport.SameHost(repo.api, api) {
			return nil, appError("githubAppBaseURL is not the API of the host in spec.url")
		}
	}
	a.client, err = clientWith(cfg, api, transport.Options{
		Base: api, Authorize: a.claim, Identity: "app " + a.id, MaxBody: 1 << 20,
	})
	return a, err
}

func appError(msg string) error {
	return &provider.Error{
		Reason: provider.Misconfigured,
		Msg:    "GitHub App secret: " + msg,
		Hint:   "flux create secret githubapp makes a Secret that is in order",
	}
}

func parseKey(text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	rsaKey, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("not RSA")
	}
	return rsaKey, nil
}

func (a *app) identity() string {
	return fmt.Sprintf("app %s at %d %s", a.id, a.installation, strings.ToLower(a.owner))
}

// authorize adds the installation's token.
func (a *app) authorize(req *http.Request) error {
	token, err := a.current(req.Context())
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// current returns the installation's token, a new one if there is none or it ends
// soon.
func (a *app) current(ctx context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Until(a.expires) < renewBefore {
		if err := a.mint(ctx); err != nil {
			return "", err
		}
	}
	return a.token, nil
}

// renew gets a new token in place of one that was refused.
func (a *app) renew(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mint(ctx)
}

func (a *app) mint(ctx context.Context) error {
	if a.installation == 0 {
		id, err := a.lookUp(ctx)
		if err != nil {
			return a.failed(err)
		}
		a.installation = id
	}
	made, _, err := a.client.Apps.CreateInstallationToken(ctx, a.installation, nil)
	if err != nil {
		return a.failed(err)
	}
	if made.GetToken() == "" {
		return &provider.Error{Reason: provider.Implausible, Msg: "GitHub App " + a.id + ": the server sent no token"}
	}
	a.token, a.expires = made.GetToken(), made.GetExpiresAt().Time
	if earliest := time.Now().Add(renewBefore + time.Minute); a.expires.Before(earliest) {
		a.expires = earliest // or a short life, or a clock that is off, would cost a token each request
	}
	return nil
}

// lookUp finds the installation at an account, which may be an organization's or a user's.
func (a *app) lookUp(ctx context.Context) (int64, error) {
	found, _, err := a.client.Apps.FindOrganizationInstallation(ctx, url.PathEscape(a.owner))
	if provider.ReasonOf(err) == provider.NotFound {
		found, _, err = a.client.Apps.FindUserInstallation(ctx, url.PathEscape(a.owner))
	}
	if err != nil {
		return 0, err
	}
	if found.GetID() <= 0 {
		return 0, &provider.Error{Reason: provider.Implausible, Msg: "the server sent no installation"}
	}
	return found.GetID(), nil
}

// failed says that it is the app that has no access, not the request.
func (a *app) failed(err error) error {
	described := describe(err).Within("token of GitHub App %s", a.id)
	switch described.Reason {
	case provider.NotFound:
		described.Reason = provider.Auth
		described.Hint = "the app is not installed there: check githubAppInstallationID or githubAppInstallationOwner"
	case provider.Auth:
		described.Hint = "check githubAppID and githubAppPrivateKey, and this machine's clock"
	}
	return described
}

// claim authorizes a request as the app itself: a JSON Web Token, signed with its key.
func (a *app) claim(req *http.Request) error {
	now := time.Now()
	header := `{"alg":"RS256","typ":"JWT"}`
	payload := fmt.Sprintf(`{"iat":%d,"exp":%d,"iss":%q}`, now.Add(-clockSkew).Unix(), now.Add(claimLife).Unix(), a.id)
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(header)) + "." + encode([]byte(payload))
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, crypto.SHA256, sum[:])
	if err != nil {
		return appError("githubAppPrivateKey cannot sign")
	}
	req.Header.Set("Authorization", "Bearer "+signed+"."+encode(signature))
	return nil
}
