// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// Decode reads one item of a list, with what tells it from the others.
type Decode[T any] func(json.RawMessage) (item T, key string, err error)

// Array makes a page of a body that has to be a JSON array. What names the items;
// the hint says what to check when it is none.
func Array[T any](body []byte, what, hint string, decode Decode[T]) (*Page[T], error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil || raw == nil {
		return nil, &provider.Error{
			Reason: provider.Implausible,
			Msg:    "the answer is not a list of " + what + " in JSON",
			Hint:   hint,
		}
	}
	return Items(raw, what, decode)
}

// Items makes a page of the items of an answer. One that cannot be read makes the
// page unreadable.
func Items[T any](raw []json.RawMessage, what string, decode Decode[T]) (*Page[T], error) {
	return Convert(raw, what, decode)
}

// Convert is Items for items that a library has decoded already.
func Convert[S, T any](all []S, what string, convert func(S) (item T, key string, err error)) (*Page[T], error) {
	p := &Page[T]{Items: make([]T, len(all)), Keys: make([]string, len(all))}
	for i, one := range all {
		item, key, err := convert(one)
		if err != nil {
			return nil, &provider.Error{
				Reason: provider.Implausible,
				Msg:    fmt.Sprintf("item %d in the list of %s", i+1, what),
				Hint:   "the last good list stands",
				Err:    err,
			}
		}
		p.Items[i], p.Keys[i] = item, key
	}
	return p, nil
}

// NextLink returns the address of the page after a response, as the server gave it
// in a Link header, or nothing at the end. One on another host than base is an
// error, for the credential would go there.
func NextLink(resp *http.Response, base *url.URL) (string, error) {
	target, ok := linkTo(resp.Header.Values("Link"), "next")
	if !ok {
		return "", nil
	}
	return Follow(target, resp.Request.URL, base)
}

// NextQuery returns the query of the address of the page after a response, and
// whether there is such a page. It is for servers that build addresses from the name
// that they are configured with, which need not be the one that they are reached by:
// there the query is what tells pages apart, and no other host is ever asked.
func NextQuery(resp *http.Response) (url.Values, bool, error) {
	target, ok := linkTo(resp.Header.Values("Link"), "next")
	if !ok {
		return nil, false, nil
	}
	u, err := url.Parse(target)
	if err == nil {
		var query url.Values
		if query, err = url.ParseQuery(u.RawQuery); err == nil && len(query) > 0 {
			return query, true, nil
		}
	}
	return nil, false, &provider.Error{
		Reason: provider.Implausible,
		Msg:    "the next page has no valid address",
		Hint:   "the last good list stands",
	}
}

// LastNumber is the number of the list's last page as the Link header of a response
// names it, or 0. It may be where the server pages by numbers only.
func LastNumber(resp *http.Response) int {
	target, ok := linkTo(resp.Header.Values("Link"), "last")
	if !ok {
		return 0
	}
	u, err := url.Parse(target)
	if err != nil {
		return 0
	}
	return count(u.Query().Get("page"))
}

// Total is the number of items in the whole list that a header of a response tells,
// or 0.
func Total(resp *http.Response, header string) int { return count(resp.Header.Get(header)) }

func count(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Follow resolves the address of a next page that an answer from an address names.
func Follow(target string, from, base *url.URL) (string, error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", &provider.Error{
			Reason: provider.Implausible,
			Msg:    "the next page has no valid address",
			Hint:   "the last good list stands",
		}
	}
	u = from.ResolveReference(u)
	if !transport.SameHost(base, u) {
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
