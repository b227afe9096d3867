// SPDX-License-Identifier: Apache-2.0

package gitea

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"

	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
)

// perPage is what servers allow at most, unless they are told otherwise.
const perPage = 50

// A call asks for one page through the library.
type call[S any] func(api *gitea.Client, owner, name string, page gitea.ListOptions) ([]*S, *gitea.Response, error)

// A kind is what a list is of.
type kind[S, T any] struct {
	what    string
	call    call[S]
	convert func(*S) (item T, key string, err error)
}

// newList returns the list of a config, together with the others that have it.
func newList[S, T any](cfg provider.Config, k kind[S, T]) (*listing.List[T], error) {
	repo, err := parseURL(cfg.Object.Spec.URL)
	if err != nil {
		return nil, err
	}
	key := "gitea " + cfg.Identity() + " " + repo.server.String()
	c, err := provider.Share(cfg.Shared, key, func() (*client, error) { return newClient(cfg, repo.server) })
	if err != nil {
		return nil, err
	}
	key += strings.ToLower(fmt.Sprintf(" %s/%s %s", repo.owner, repo.name, k.what))
	return provider.Share(cfg.Shared, key, func() (*listing.List[T], error) {
		return listing.New(k.what, "1", k.get(c, repo)), nil
	})
}

// get reads the pages of a list, whose addresses are their numbers.
func (k kind[S, T]) get(c *client, repo *repository) listing.Get[T] {
	return func(ctx context.Context, address string, _ *listing.Page[T]) (*listing.Page[T], error) {
		number, err := strconv.Atoi(address)
		if err != nil {
			return nil, err
		}
		api, err := c.api(ctx)
		if err != nil {
			return nil, err
		}
		all, resp, err := k.call(api, repo.owner, repo.name, gitea.ListOptions{Page: number, PageSize: perPage})
		if err != nil {
			return nil, describe(err)
		}
		if all == nil {
			return nil, &provider.Error{
				Reason: provider.Implausible,
				Msg:    "the answer is no list of " + k.what,
				Hint:   "servers answer so for a repository without any commit; else " + notARepository,
			}
		}
		page, err := listing.Convert(all, k.what, k.convert)
		if err != nil {
			return nil, err
		}
		page.Total = listing.Total(resp.Response, "X-Total-Count")
		page.Next, err = next(resp.Response, number, len(all))
		return page, err
	}
}

// next returns the address of the page after a page with so many items. Servers name
// it by an address that begins with what they think they are called, so only the
// number counts. Where they name none, that alone is no end: an only page has to hold
// as many items as the server has counted, and after others comes an empty one.
func next(resp *http.Response, number, items int) (string, error) {
	query, ok, err := listing.NextQuery(resp)
	if err != nil {
		return "", err
	}
	if ok {
		following, err := strconv.Atoi(query.Get("page"))
		if err != nil || following < 1 {
			return "", &provider.Error{
				Reason: provider.Implausible,
				Msg:    "the next page has no number",
				Hint:   "the last good list stands",
			}
		}
		return strconv.Itoa(following), nil
	}
	total, err := strconv.Atoi(resp.Header.Get("X-Total-Count"))
	if items == 0 || (number == 1 && err == nil && total == items) {
		return "", nil
	}
	return strconv.Itoa(number + 1), nil
}
