// SPDX-License-Identifier: Apache-2.0

package externalservice

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// MaxBody is the most that an answer may have, in bytes. The operator's limit is
// the same.
const MaxBody = 900 << 10

// A Provider asks one service.
type Provider struct {
	object *api.ResourceSetInputProvider
	url    *url.URL
	client *http.Client
}

// New returns the provider of a definition.
func New(cfg provider.Config) (*Provider, error) {
	u, err := provider.ParseURL(cfg.Object.Spec.URL)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "http" && !cfg.Object.Spec.Insecure {
		return nil, &provider.Error{
			Reason: provider.Misconfigured,
			Msg:    "spec.url is http://",
			Hint:   "use https://, or set spec.insecure: true to send requests and credentials unencrypted",
		}
	}
	options := transport.Options{Base: u, MaxBody: MaxBody}
	if err := authorize(cfg.Secret, &options); err != nil {
		return nil, err
	}
	client, err := transport.NewClient(cfg, options)
	if err != nil {
		return nil, err
	}
	return &Provider{object: cfg.Object, url: u, client: client}, nil
}

// authorize reads the secret into the options.
func authorize(secret provider.Secret, options *transport.Options) error {
	if secret == nil {
		return nil
	}
	const hint = "the Secret of spec.secretRef has either token, or username and password"
	values := map[string]string{}
	for _, key := range []string{"token", "username", "password"} {
		value, err := secret.Line(key)
		if err != nil {
			return err
		}
		values[key] = value
	}
	token, username, password := values["token"], values["username"], values["password"]
	switch {
	case token != "" && (username != "" || password != ""):
		return &provider.Error{Reason: provider.Misconfigured, Msg: "the secret has both a token and a username or password", Hint: hint}
	case token != "":
		options.Authorize = func(req *http.Request) error {
			req.Header.Set("Authorization", "Bearer "+token)
			return nil
		}
	case username != "" && password != "":
		options.Authorize = func(req *http.Request) error {
			req.SetBasicAuth(username, password)
			return nil
		}
	default:
		return &provider.Error{Reason: provider.Misconfigured, Msg: "the secret has no credential", Hint: hint}
	}
	options.Identity = token + "\n" + username + "\n" + password
	return nil
}

// Fetch asks the service for its input sets.
func (p *Provider) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url.String(), nil)
	if err != nil {
		return provider.Result{}, transport.Describe(err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := p.client.Do(req)
	if err != nil {
		return provider.Result{}, transport.Describe(err)
	}
	body, err := transport.ReadBody(resp)
	if err != nil {
		return provider.Result{}, err
	}
	inputs, warnings, err := decode(body)
	if err != nil {
		return provider.Result{}, &provider.Error{
			Reason: provider.Implausible,
			Msg:    fmt.Sprintf("answer of %s", p.url.Host),
			Hint:   `the answer has to be a JSON object of the form {"inputs": [{"field": "value"}]}`,
			Err:    err,
		}
	}
	key, items := identify(inputs, previous)
	result, err := provider.Export(p.object, key, items, previous)
	result.Warnings = append(result.Warnings, warnings...)
	return result, err
}
