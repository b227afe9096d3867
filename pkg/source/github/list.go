// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-github/v66/github"

	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

const (
	perPage  = 100
	maxPages = 1000 // of one list: a hundred thousand items
	maxReads = 4    // of one list that moves while it is read
)

// A list reads a paged list of things of type T, whole.
type list[T any] struct {
	client *github.Client
	what   string // "pull requests"
	first  string // address of the first page, relative to the API's base
	// decode reads one item and returns what tells it from others.
	decode func(json.RawMessage) (item T, key string, err error)

	turn  chan struct{}       // holds one token: the list is read by one at a time
	known map[string]*page[T] // by address; what the server may say "not modified" about
	last  []T                 // what was read last, and
	pass  any                 // in which pass
}

// newList returns the list of a config, together with the others that have it.
func newList[T any](cfg provider.Config, what, path string, decode func(json.RawMessage) (T, string, error)) (*list[T], error) {
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
	return provider.Share(cfg.Shared, key+" "+strings.ToLower(first), func() (*list[T], error) {
		return &list[T]{client: client, what: what, first: first, decode: decode, turn: make(chan struct{}, 1)}, nil
	})
}

type page[T any] struct {
	items []T
	keys  []string
	next  string
	etag  string
}

// errMoved is a list that changed while it was read.
var errMoved = errors.New("the list changed while it was read")

// all returns every item of the list, in the server's order: as read now, or by
// another provider in the same pass.
func (l *list[T]) all(ctx context.Context) ([]T, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, describe(ctx.Err())
	}
	pass := provider.Pass(ctx)
	if pass != nil && pass == l.pass {
		return slices.Clone(l.last), nil
	}
	for range maxReads {
		items, err := l.read(ctx)
		if errors.Is(err, errMoved) {
			continue
		}
		if err == nil {
			l.last, l.pass = slices.Clone(items), pass
		}
		return items, err
	}
	return nil, &provider.Error{
		Reason: provider.Implausible,
		Msg:    fmt.Sprintf("the list of %s changed each of the %d times that it was read", l.what, maxReads),
		Hint:   "the last good list stands; it is tried again",
	}
}

func (l *list[T]) read(ctx context.Context) ([]T, error) {
	first, err := l.client.BaseURL.Parse(l.first)
	if err != nil {
		return nil, describe(err)
	}
	pages := map[string]*page[T]{}
	var order []string
	var items []T
	seen := map[string]bool{}
	fresh := false
	for address := first.String(); address != ""; {
		number := len(order) + 1
		if pages[address] != nil || number > maxPages {
			return nil, l.implausible(number, "the list does not end: page %d leads back, or is one too many", number)
		}
		p, unchanged, err := l.get(ctx, address, l.known[address])
		if err != nil {
			return nil, l.onPage(err, number)
		}
		if len(p.items) == 0 && p.next != "" {
			return nil, l.implausible(number, "page %d is empty, but not the last one", number)
		}
		for _, key := range p.keys {
			if seen[key] {
				return nil, errMoved
			}
			seen[key] = true
		}
		fresh = fresh || !unchanged
		pages[address] = p
		order = append(order, address)
		items = append(items, p.items...)
		address = p.next
	}
	if fresh && len(order) > 1 {
		if err := l.verify(ctx, order[:len(order)-1], pages); err != nil {
			return nil, err
		}
	}
	l.known = pages
	return items, nil
}

// verify asks for pages once more, and fails with errMoved unless they still have
// the same items in the same order: then nothing went from one page to another
// while they were read.
func (l *list[T]) verify(ctx context.Context, order []string, pages map[string]*page[T]) error {
	for i, address := range order {
		again, unchanged, err := l.get(ctx, address, pages[address])
		if err != nil {
			return l.onPage(err, i+1)
		}
		if !unchanged && (again.next != pages[address].next || !slices.Equal(again.keys, pages[address].keys)) {
			return errMoved
		}
	}
	return nil
}

// get reads one page, or finds that it is the one already known.
func (l *list[T]) get(ctx context.Context, address string, known *page[T]) (p *page[T], unchanged bool, err error) {
	req, err := l.client.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return nil, false, err
	}
	if known != nil && known.etag != "" {
		req.Header.Set("If-None-Match", known.etag)
	}
	resp, err := l.client.BareDo(ctx, req)
	if resp != nil && resp.Response != nil && resp.StatusCode == http.StatusNotModified && known != nil {
		return known, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	body, err := transport.ReadBody(resp.Response)
	if err != nil {
		return nil, false, err
	}
	p = &page[T]{etag: resp.Header.Get("ETag")}
	if p.next, err = l.next(resp.Response); err != nil {
		return nil, false, err
	}
	return p, false, l.fill(p, body)
}

// fill decodes the items of a page.
func (l *list[T]) fill(p *page[T], body []byte) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil || raw == nil {
		return &provider.Error{
			Reason: provider.Implausible,
			Msg:    "the answer is not a list of " + l.what + " in JSON",
			Hint:   "check that spec.url is a repository on GitHub or GitHub Enterprise Server; the last good list stands",
		}
	}
	p.items, p.keys = make([]T, len(raw)), make([]string, len(raw))
	for i, data := range raw {
		item, key, err := l.decode(data)
		if err != nil {
			return &provider.Error{
				Reason: provider.Implausible,
				Msg:    fmt.Sprintf("item %d in the list of %s", i+1, l.what),
				Hint:   "the last good list stands",
				Err:    err,
			}
		}
		p.items[i], p.keys[i] = item, key
	}
	return nil
}

// next returns the address of the page after a response, as the server gave it.
func (l *list[T]) next(resp *http.Response) (string, error) {
	target, ok := linkTo(resp.Header.Values("Link"), "next")
	if !ok {
		return "", nil
	}
	u, err := url.Parse(target)
	if err != nil {
		return "", &provider.Error{Reason: provider.Implausible, Msg: "the next page has no valid address"}
	}
	u = resp.Request.URL.ResolveReference(u)
	if !transport.SameHost(l.client.BaseURL, u) {
		return "", &provider.Error{
			Reason: provider.Redirected,
			Msg:    "the next page is said to be on another host, " + u.Host,
			Hint:   "credentials are not sent there: check the server's own external URL",
		}
	}
	return u.String(), nil
}

// linkTo finds the target of a relation in Link headers (RFC 8288).
func linkTo(headers []string, relation string) (string, bool) {
	for _, header := range headers {
		for {
			_, rest, ok := strings.Cut(header, "<")
			if !ok {
				break
			}
			target, rest, ok := strings.Cut(rest, ">")
			if !ok {
				break
			}
			parameters, after, _ := strings.Cut(rest, "<")
			for parameter := range strings.SplitSeq(parameters, ";") {
				name, value, _ := strings.Cut(strings.Trim(parameter, " ,\t"), "=")
				if strings.EqualFold(strings.TrimSpace(name), "rel") &&
					slices.Contains(strings.Fields(strings.Trim(value, `" `)), relation) {
					return target, true
				}
			}
			header = "<" + after
			if after == "" {
				break
			}
		}
	}
	return "", false
}

func (l *list[T]) implausible(number int, format string, args ...any) error {
	return &provider.Error{
		Reason: provider.Implausible,
		Msg:    fmt.Sprintf("list of %s: "+format, append([]any{l.what}, args...)...),
		Hint:   fmt.Sprintf("nothing of the %d pages before is used; the last good list stands", number-1),
	}
}

// onPage says which page an error is about.
func (l *list[T]) onPage(err error, number int) error {
	described := *describe(err)
	described.Msg = fmt.Sprintf("list of %s, page %d: %s", l.what, number, described.Msg)
	return &described
}

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
	var known *provider.Error
	if errors.As(transport.Describe(err), &known) {
		return known
	}
	return &provider.Error{Reason: provider.Unknown, Err: err}
}
