// SPDX-License-Identifier: Apache-2.0

package bitbucket

import (
	"context"
	"net/http"
	"net/url"

	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// maxPage is the most that one page may have, in bytes.
const maxPage = 32 << 20

// A client asks one server with one credential.
type client struct {
	http *http.Client
	root *url.URL
}

func newClient(cfg provider.Config, repo *repository) (*client, error) {
	options := transport.Options{Base: repo.root, MaxBody: maxPage}
	if cfg.Secret != nil {
		if err := authorize(cfg.Secret, &options); err != nil {
			return nil, err
		}
	}
	httpClient, err := transport.NewClient(cfg, options)
	if err != nil {
		return nil, err
	}
	return &client{http: httpClient, root: repo.root}, nil
}

// accessTokenUser is the user name that stands for none where a password is an
// access token: Git wants one there.
const accessTokenUser = "x-token-auth"

func authorize(secret provider.Secret, options *transport.Options) error {
	var values [3]string
	for i, key := range []string{"token", "username", "password"} {
		value, err := secret.Line(key)
		if err != nil {
			return err
		}
		values[i] = value
	}
	token, username, password := values[0], values[1], values[2]
	if token == "" && (username == "" || username == accessTokenUser) {
		token = password
	}
	switch {
	case token != "":
		options.Identity = token
		options.Authorize = func(req *http.Request) error {
			req.Header.Set("Authorization", "Bearer "+token)
			return nil
		}
	case username != "" && password != "":
		options.Identity = username + ":" + password
		options.Authorize = func(req *http.Request) error {
			req.SetBasicAuth(username, password)
			return nil
		}
	default:
		return &provider.Error{
			Reason: provider.Misconfigured,
			Msg:    "the secret has no credential",
			Hint:   "the Secret of spec.secretRef has an access token in token, or username and password",
		}
	}
	return nil
}

// An answer is the body of a response, and where it came from.
type answer struct {
	body      []byte
	etag      string
	from      *url.URL
	total     int  // items in the whole list, once read from the body; 0 is unknown
	unchanged bool // since the one with the validator that was sent
}

func (c *client) get(ctx context.Context, address, etag string) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, transport.Fault(err)
	}
	req.Header.Set("Accept", "application/json")
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, transport.Fault(err)
	}
	body, err := transport.ReadBody(resp)
	if err != nil {
		return nil, err
	}
	return &answer{
		body: body, etag: resp.Header.Get("ETag"), from: resp.Request.URL, unchanged: resp.StatusCode == http.StatusNotModified,
	}, nil
}

// A paging reads the rest of an answer that is a page: its items, and the address
// of the next page or nothing.
type paging func(c *client, answer *answer) (items rawItems, next string, err error)

// newList returns the list of a config, together with the others that have it.
func newList[T any](cfg provider.Config, repo *repository, what, path string, decode listing.Decode[T]) (*client, *listing.List[T], error) {
	key := cfg.Identity() + " " + repo.root.String()
	c, err := provider.Share(cfg.Shared, key, func() (*client, error) { return newClient(cfg, repo) })
	if err != nil {
		return nil, nil, err
	}
	pages := serverPage
	if repo.cloud {
		pages = cloudPage
	}
	first := repo.api.String() + path
	list, err := provider.Share(cfg.Shared, key+" "+first, func() (*listing.List[T], error) {
		return listing.New(what, first, getter(c, what, pages, decode)), nil
	})
	return c, list, err
}

// getter reads the pages of a list.
func getter[T any](c *client, what string, pages paging, decode listing.Decode[T]) listing.Get[T] {
	return func(ctx context.Context, address string, known *listing.Page[T]) (*listing.Page[T], error) {
		etag := ""
		if known != nil {
			etag = known.ETag
		}
		answer, err := c.get(ctx, address, etag)
		if err != nil {
			return nil, err
		}
		if answer.unchanged {
			return known, nil
		}
		raw, next, err := pages(c, answer)
		if err != nil {
			return nil, err
		}
		page, err := listing.Items(raw, what, decode)
		if err != nil {
			return nil, err
		}
		page.Next, page.ETag, page.Total = next, answer.etag, answer.total
		return page, nil
	}
}
