// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	ggcr "github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

const (
	// maxBody is the most that one answer may have: a hundred thousand tags, from a
	// registry that has no pages.
	maxBody = 16 << 20
	// maxToken is the most that the answer of a token service may have.
	maxToken = 64 << 10
)

// A login is where the user and password for a registry come from.
type login interface {
	// credential returns them, and when they expire; the zero time if they do not.
	// Rejected is set when the registry did not take the last ones.
	credential(ctx context.Context, rejected bool) (authn.AuthConfig, time.Time, error)
	// advice is what to do when they are not enough.
	advice() string
}

// A client asks one registry for one repository.
type client struct {
	http  *http.Client
	cfg   provider.Config
	repo  *repository
	login login

	mu            sync.Mutex
	authorization string // header to send, or empty
	expires       time.Time
	scopes        []string
}

func newClient(cfg provider.Config, repo *repository, from login) (*client, error) {
	c := &client{cfg: cfg, repo: repo, login: from, scopes: []string{repo.pull()}}
	var err error
	c.http, err = transport.NewClient(cfg, transport.Options{
		Base: repo.base, Authorize: c.authorize, Challenge: c.answer, Identity: cfg.Identity() + cfg.Object.Spec.Type, MaxBody: maxBody,
	})
	return c, err
}

func (c *client) authorize(req *http.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.expires.IsZero() && !time.Now().Before(c.expires) {
		c.authorization, c.expires = "", time.Time{}
	}
	if c.authorization != "" {
		req.Header.Set("Authorization", c.authorization)
	}
	return nil
}

// answer answers the challenge of a registry that refused a request.
func (c *client) answer(ctx context.Context, refused *http.Response) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := refused.Request.Header.Get("Authorization")
	if sent != c.authorization {
		return nil // another request was faster, and has a new one
	}
	want, ok := pick(challenges(refused.Header.Values("Www-Authenticate")))
	if !ok {
		want = challenge{scheme: "basic"}
	}
	// A token runs out within minutes, which says nothing of what it was given for.
	rejected := sent != "" && want.scheme == "basic"
	credential, expires, err := c.login.credential(ctx, rejected)
	if err != nil {
		return err
	}
	switch {
	case credential.RegistryToken != "":
		c.authorization = "Bearer " + credential.RegistryToken
	case want.scheme == "bearer":
		token, err := c.token(ctx, want, credential)
		if provider.ReasonOf(err) == provider.Auth {
			if renewed, _, again := c.login.credential(ctx, true); again == nil && renewed != credential {
				token, err = c.token(ctx, want, renewed)
			}
		}
		if err != nil {
			return err
		}
		c.authorization, expires = "Bearer "+token, time.Time{}
	case credential.Username != "" || credential.Password != "":
		c.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(credential.Username+":"+credential.Password))
	}
	c.expires = expires
	return nil
}

// token asks the token service that the registry names.
func (c *client) token(ctx context.Context, want challenge, credential authn.AuthConfig) (string, error) {
	realm, err := url.Parse(want.parameters["realm"])
	if err != nil || realm.Host == "" || realm.User != nil {
		return "", &provider.Error{
			Reason: provider.Implausible, Msg: c.repo.base.Host + " names no token service",
			Hint: "check spec.url: it may not be a registry",
		}
	}
	if scope := want.parameters["scope"]; scope != "" && !slices.Contains(c.scopes, scope) {
		c.scopes = append([]string{scope}, c.scopes...)
	}
	service, err := transport.NewClient(c.tokenConfig(realm), transport.Options{
		Base: realm, Identity: c.cfg.Identity() + c.cfg.Object.Spec.Type, MaxBody: maxToken,
		Authorize: func(req *http.Request) error {
			if credential.Username != "" || credential.Password != "" {
				req.SetBasicAuth(credential.Username, credential.Password)
			}
			return nil
		},
	})
	if err != nil {
		return "", err
	}
	defer service.CloseIdleConnections()
	answer, err := ggcr.Exchange(ctx, c.repo.name.Registry, authn.FromConfig(credential), service.Transport, c.scopes,
		&ggcr.Challenge{Scheme: want.scheme, Parameters: want.parameters, Insecure: c.repo.base.Scheme == "http"})
	if err != nil {
		return "", tokenError(realm.Host, err)
	}
	if answer.AccessToken != "" { // as some call it
		return answer.AccessToken, nil
	}
	return answer.Token, nil
}

// tokenConfig is the configuration for a token service: the client's certificate
// is for the registry, and goes to no other host.
func (c *client) tokenConfig(realm *url.URL) provider.Config {
	cfg := c.cfg
	if transport.SameHost(c.repo.base, realm) || cfg.CertSecret == nil {
		return cfg
	}
	ca := cfg.CertSecret["ca.crt"]
	cfg.CertSecret = nil
	if len(ca) > 0 {
		cfg.CertSecret = provider.Secret{"ca.crt": ca}
	}
	return cfg
}

// tokenError describes why there is no token. The library's own words may quote
// the answer, and with it a token.
func tokenError(host string, err error) error {
	var known *provider.Error
	if !errors.As(err, &known) {
		known = &provider.Error{
			Reason: provider.Implausible, Msg: "no token in its answer, or its address is not allowed",
			Hint: "a token service has https, and no private address other than the registry's own",
		}
	}
	return known.Within("token service %s", host)
}

// do sends a request, and describes what went wrong with it.
func (c *client) do(ctx context.Context, method, address string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, &provider.Error{Reason: provider.Misconfigured, Msg: "spec.url cannot be asked", Hint: "write oci://HOST/REPOSITORY"}
	}
	for key, values := range header {
		req.Header[key] = values
	}
	resp, err := c.http.Do(req)
	if err == nil {
		return resp, nil
	}
	described := *transport.Fault(err)
	if advice := c.login.advice(); described.Status != 0 && advice != "" {
		switch described.Reason {
		case provider.Auth:
			described.Hint = advice
		case provider.NotFound:
			described.Hint = "check spec.url; to who may not see it a registry says the same: " + advice
		}
	}
	return nil, &described
}

// fixed is a credential that was read from a secret, or none.
type fixed struct {
	config authn.AuthConfig
	repo   *repository
}

func (f fixed) credential(context.Context, bool) (authn.AuthConfig, time.Time, error) {
	return f.config, time.Time{}, nil
}

func (f fixed) advice() string {
	if f.config == (authn.AuthConfig{}) {
		return fmt.Sprintf("name a Secret with a credential for %s in spec.secretRef (.dockerconfigjson)", f.repo.base.Host)
	}
	return fmt.Sprintf("the credential for %s in the Secret of spec.secretRef is wrong, expired, or may not pull %s",
		f.repo.base.Host, f.repo.name.RepositoryStr())
}
