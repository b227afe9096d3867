// SPDX-License-Identifier: Apache-2.0

package azuredevops

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// maxPage is the most that one page may have, in bytes.
const maxPage = 32 << 20

// Versions of the API. Labels have been a preview for long.
const (
	apiVersion    = "7.0"
	labelsVersion = "7.0-preview.1"
)

// A client asks one organisation with one credential.
type client struct {
	http *http.Client
	base *url.URL
}

func newClient(cfg provider.Config, repo *repository) (*client, error) {
	options := transport.Options{Base: repo.base, MaxBody: maxPage}
	if err := authorize(cfg.Secret, repo, &options); err != nil {
		return nil, err
	}
	httpClient, err := transport.NewClient(cfg, options)
	if err != nil {
		return nil, err
	}
	follow := httpClient.CheckRedirect
	httpClient.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if isSignIn(req.URL) {
			return signIn()
		}
		return follow(req, via)
	}
	return &client{http: httpClient, base: repo.base}, nil
}

func authorize(secret provider.Secret, repo *repository, options *transport.Options) error {
	if secret == nil {
		if !repo.cloud { // the token of an identity is for Azure DevOps Services, and for nobody else who says so in spec.url
			return nil
		}
		credential, err := ambient(azcore.ClientOptions{})
		if credential != nil {
			options.Identity = "environment"
			options.Authorize = bearer(credential)
		}
		return err
	}
	token, err := token(secret)
	if err != nil {
		return err
	}
	options.Identity = token
	options.Authorize = func(req *http.Request) error {
		req.SetBasicAuth("", token) // the user name does not count
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
		Hint:   "the Secret of spec.secretRef has a personal access token in password or token",
	}
}

// isSignIn tells whether a redirect leads to where people sign in.
func isSignIn(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	return strings.Contains(strings.ToLower(u.Path), "/_signin") || host == "login.microsoftonline.com" ||
		host == "login.live.com" || strings.HasSuffix(host, ".vssps.visualstudio.com")
}

func signIn() error {
	return &provider.Error{
		Reason: provider.Auth,
		Msg:    "redirected to a sign-in page",
		Hint:   "the credential is missing, wrong, expired or revoked, or its organisation is another one: renew the secret of spec.secretRef",
	}
}

// get reads the answer at an address, and the headers that it came with.
func (c *client) get(ctx context.Context, address string) ([]byte, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, transport.Fault(err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("X-TFS-FedAuthRedirect", "Suppress") // refuse, rather than send to a sign-in page
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nil, transport.Fault(err)
	}
	body, err := transport.ReadBody(resp)
	return body, resp.Header, err
}

const notARepository = "check that spec.url is a repository of Azure DevOps; the last good list stands"

// values reads the items of a list, of which the answer has the count.
func values(body []byte, what string) ([]json.RawMessage, error) {
	var list struct {
		Value *[]json.RawMessage `json:"value"`
		Count *int               `json:"count"`
	}
	if err := json.Unmarshal(body, &list); err != nil || list.Value == nil || list.Count == nil || *list.Count != len(*list.Value) {
		return nil, &provider.Error{
			Reason: provider.Implausible,
			Msg:    "the answer is not a list of " + what + " in JSON, whole",
			Hint:   notARepository,
		}
	}
	return *list.Value, nil
}

// A succession returns the address of the page after one with so many items, or
// nothing at the end.
type succession func(address *url.URL, items int, header http.Header) string

// newList returns the list of a config, together with the others that have it.
func newList[T any](cfg provider.Config, repo *repository, what, path string, query url.Values, next succession, decode listing.Decode[T]) (*client, *listing.List[T], error) {
	key := cfg.Identity() + " " + repo.base.String()
	c, err := provider.Share(cfg.Shared, key, func() (*client, error) { return newClient(cfg, repo) })
	if err != nil {
		return nil, nil, err
	}
	query.Set("api-version", apiVersion)
	first := repo.api.JoinPath(path)
	first.RawQuery = query.Encode()
	list, err := provider.Share(cfg.Shared, key+" "+first.String(), func() (*listing.List[T], error) {
		return listing.New(what, first.String(), getter(c, what, next, decode)), nil
	})
	return c, list, err
}

// getter reads the pages of a list. The service knows no validators.
func getter[T any](c *client, what string, next succession, decode listing.Decode[T]) listing.Get[T] {
	return func(ctx context.Context, address string, _ *listing.Page[T]) (*listing.Page[T], error) {
		body, header, err := c.get(ctx, address)
		if err != nil {
			return nil, err
		}
		raw, err := values(body, what)
		if err != nil {
			return nil, err
		}
		page, err := listing.Items(raw, what, decode)
		if err != nil {
			return nil, err
		}
		at, err := url.Parse(address)
		if err != nil {
			return nil, transport.Fault(err)
		}
		page.Next = next(at, len(raw), header)
		return page, nil
	}
}
