// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v66/github"

	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

const perPage = 100

// newList returns the list of a config, together with the others that have it.
func newList[T any](cfg provider.Config, what, path string, decode listing.Decode[T]) (*listing.List[T], error) {
	repo, err := parseURL(cfg.Object.Spec.URL)
	if err != nil {
		return nil, err
	}
	key := cfg.Identity() + " " + repo.api.String()
	client, err := provider.Share(cfg.Shared, key, func() (*github.Client, error) { return newClient(cfg, repo) })
	if err != nil {
		return nil, err
	}
	first := fmt.Sprintf("repos/%s/%s/%s", url.PathEscape(repo.owner), url.PathEscape(repo.name), path)
	return provider.Share(cfg.Shared, key+" "+strings.ToLower(first), func() (*listing.List[T], error) {
		address, err := repo.api.Parse(first)
		if err != nil {
			return nil, describe(err)
		}
		return listing.New(what, address.String(), getter(client, what, decode)), nil
	})
}

// getter reads the pages of a list through go-github.
func getter[T any](client *github.Client, what string, decode listing.Decode[T]) listing.Get[T] {
	return func(ctx context.Context, address string, known *listing.Page[T]) (*listing.Page[T], error) {
		req, err := client.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			return nil, describe(err)
		}
		if known != nil && known.ETag != "" {
			req.Header.Set("If-None-Match", known.ETag)
		}
		resp, err := client.BareDo(ctx, req)
		if resp != nil && resp.Response != nil && resp.StatusCode == http.StatusNotModified && known != nil {
			return known, nil
		}
		if err != nil {
			return nil, describe(err)
		}
		body, err := transport.ReadBody(resp.Response)
		if err != nil {
			return nil, err
		}
		next, err := listing.NextLink(resp.Response, client.BaseURL)
		if err != nil {
			return nil, err
		}
		p, err := listing.Array(body, what, notARepository, decode)
		if err != nil {
			return nil, err
		}
		p.Next, p.ETag = next, resp.Header.Get("ETag")
		p.Last = listing.LastNumber(resp.Response)
		return p, nil
	}
}

const notARepository = "check that spec.url is a repository on GitHub or GitHub Enterprise Server; the last good list stands"

// describe turns the errors of go-github into those of the provider package.
func describe(err error) *provider.Error {
	var limit *github.RateLimitError
	var answer *github.ErrorResponse
	switch {
	case errors.As(err, &limit):
		return &provider.Error{
			Reason: provider.RateLimited,
			Msg:    "rate limit until " + limit.Rate.Reset.UTC().Format("2006-01-02T15:04:05Z"),
			Hint:   "fetch less often, or use a credential with a higher limit",
			Until:  limit.Rate.Reset.Time,
		}
	case errors.As(err, &answer):
		return &provider.Error{
			Reason: provider.Implausible, Status: answer.Response.StatusCode,
			Msg: fmt.Sprintf("the server answered %d", answer.Response.StatusCode),
		}
	}
	return transport.Fault(err)
}
