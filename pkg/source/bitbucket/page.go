// SPDX-License-Identifier: Apache-2.0

package bitbucket

import (
	"encoding/json"
	"strconv"

	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
)

type rawItems = []json.RawMessage

const notARepository = "check that spec.url is a repository on Bitbucket; the last good list stands"

func implausible(msg string) error {
	return &provider.Error{Reason: provider.Implausible, Msg: msg, Hint: notARepository}
}

// cloudPage reads a page of Bitbucket Cloud: the address of the next one is in the
// body, and none is there at the end. See
// https://developer.atlassian.com/cloud/bitbucket/rest/intro/#pagination.
func cloudPage(c *client, answer *answer) (rawItems, string, error) {
	var page struct {
		Values *rawItems `json:"values"`
		Next   string    `json:"next"`
		Size   int       `json:"size"` // of the whole list; not always there
	}
	if err := json.Unmarshal(answer.body, &page); err != nil || page.Values == nil {
		return nil, "", implausible("the answer is not a page of a list in JSON")
	}
	answer.total = page.Size
	if page.Next == "" {
		return *page.Values, "", nil
	}
	next, err := listing.Follow(page.Next, answer.from, c.root)
	return *page.Values, next, err
}

// serverPage reads a page of Bitbucket Data Center, which says whether it is the
// last one, and where the next begins otherwise: that is not where this one began
// and its length, for entries that may not be seen are left out. See
// https://developer.atlassian.com/server/bitbucket/rest/v906/intro/.
func serverPage(c *client, answer *answer) (rawItems, string, error) {
	var page struct {
		Values *rawItems `json:"values"`
		Last   *bool     `json:"isLastPage"`
		Start  int64     `json:"start"`
		Next   *int64    `json:"nextPageStart"`
	}
	if err := json.Unmarshal(answer.body, &page); err != nil || page.Values == nil || page.Last == nil {
		return nil, "", implausible("the answer is not a page of a list in JSON")
	}
	if *page.Last {
		return *page.Values, "", nil
	}
	if page.Next == nil || *page.Next <= page.Start {
		return nil, "", implausible("a page that is not the last one does not say where the next one begins")
	}
	next := *answer.from
	query := next.Query()
	query.Set("start", strconv.FormatInt(*page.Next, 10))
	next.RawQuery = query.Encode()
	return *page.Values, next.String(), nil
}
