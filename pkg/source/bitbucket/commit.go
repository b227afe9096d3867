// SPDX-License-Identifier: Apache-2.0

package bitbucket

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// atOnce is how many commits are asked for at the same time.
const atOnce = 4

// commits finds the whole names of commits that Cloud cut. They never change, so
// each is asked for once, for all providers of a repository.
type commits struct {
	client *client
	turn   chan struct{} // holds one token
	known  map[string]string
}

func newCommits(c *client) *commits {
	return &commits{client: c, turn: make(chan struct{}, 1), known: map[string]string{}}
}

// complete writes the whole names into pull requests. Those of forks are left as
// they are where forks are not exported.
func (c *commits) complete(ctx context.Context, pulls []pullRequest, forks bool) error {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return transport.Describe(ctx.Err())
	}
	known := make(map[string]string, len(pulls)) // what is in the list is remembered, the rest forgotten
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range pulls {
		pull := &pulls[i]
		key := pull.source + " " + pull.SHA
		full, ok := c.known[key]
		switch {
		case !pull.open || provider.IsCommit(pull.SHA):
		case ok:
			pull.SHA = full
			mu.Lock()
			known[key] = full
			mu.Unlock()
		case forks || !pull.Fork:
			group.Go(func() error {
				full, err := c.find(ctx, pull)
				if err != nil {
					return err
				}
				pull.SHA = full
				mu.Lock()
				defer mu.Unlock()
				known[key] = full
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	c.known = known
	return nil
}

// find asks for the whole name of the commit at the head of a pull request, in the
// repository that has it.
func (c *commits) find(ctx context.Context, pull *pullRequest) (string, error) {
	owner, name, ok := strings.Cut(pull.source, "/")
	if !ok || owner == "" || name == "" || strings.Contains(name, "/") || strings.Contains(pull.source, "..") || pull.SHA == "" {
		return "", &provider.Error{
			Reason: provider.Implausible,
			Msg:    fmt.Sprintf("pull request %s: its source is gone", pull.ID),
			Hint:   "decline it, or leave forks out; the last good list stands",
		}
	}
	address := c.client.root.JoinPath("repositories", url.PathEscape(owner), url.PathEscape(name), "commit", url.PathEscape(pull.SHA))
	address.RawQuery = "fields=hash"
	answer, err := c.client.get(ctx, address.String(), "")
	if err != nil {
		return "", transport.Fault(err).Within("commit of pull request %s", pull.ID)
	}
	var commit struct {
		Hash string `json:"hash"`
	}
	if json.Unmarshal(answer.body, &commit) != nil || !provider.IsCommit(commit.Hash) || !strings.HasPrefix(commit.Hash, pull.SHA) {
		return "", implausible(fmt.Sprintf("commit of pull request %s: the answer is not the commit that was asked for", pull.ID))
	}
	return commit.Hash, nil
}
