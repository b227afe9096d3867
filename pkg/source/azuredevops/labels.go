// SPDX-License-Identifier: Apache-2.0

package azuredevops

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"

	"golang.org/x/sync/errgroup"

	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// atOnce is how many pull requests are asked for their labels at the same time.
const atOnce = 4

// labelled is the list of pull requests with their labels, for all providers of a
// repository. A server whose list once had the labels of one always has them, so
// that one without has none.
type labelled struct {
	list   *listing.List[pullRequest]
	client *client
	api    *url.URL

	turn  chan struct{} // holds one token
	tells bool
	pass  any
	last  []pullRequest
}

func newLabelled(list *listing.List[pullRequest], c *client, api *url.URL) *labelled {
	return &labelled{list: list, client: c, api: api, turn: make(chan struct{}, 1)}
}

func (l *labelled) all(ctx context.Context) ([]pullRequest, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, transport.Describe(ctx.Err())
	}
	pass := provider.Pass(ctx)
	if pass != nil && pass == l.pass {
		return slices.Clone(l.last), nil
	}
	pulls, err := l.list.All(ctx)
	if err != nil {
		return nil, err
	}
	l.tells = l.tells || slices.ContainsFunc(pulls, func(p pullRequest) bool { return p.told })
	if !l.tells {
		if err := l.ask(ctx, pulls); err != nil {
			return nil, err
		}
	}
	l.last, l.pass = slices.Clone(pulls), pass
	return pulls, nil
}

// ask reads the labels of each pull request. One that cannot be read fails them all:
// taken for one without labels, it would lose its environment.
func (l *labelled) ask(ctx context.Context, pulls []pullRequest) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range pulls {
		if !pulls[i].active {
			continue
		}
		group.Go(func() (err error) {
			pulls[i].Labels, err = l.of(ctx, pulls[i].ID)
			return err
		})
	}
	return group.Wait()
}

func (l *labelled) of(ctx context.Context, id string) ([]string, error) {
	address := l.api.JoinPath("pullRequests", id, "labels")
	address.RawQuery = url.Values{"api-version": {labelsVersion}}.Encode()
	body, _, err := l.client.get(ctx, address.String())
	if err == nil {
		var labels []string
		if labels, err = decodeLabels(body); err == nil {
			return labels, nil
		}
	}
	return nil, transport.Fault(err).Within("labels of pull request %s", id)
}

func decodeLabels(body []byte) ([]string, error) {
	raw, err := values(body, "labels")
	if err != nil {
		return nil, err
	}
	labels := make([]label, len(raw))
	for i, data := range raw {
		if err = json.Unmarshal(data, &labels[i]); err != nil {
			break
		}
	}
	all, unnamed := names(labels)
	if err != nil || unnamed != nil {
		return nil, &provider.Error{Reason: provider.Implausible, Msg: "the answer is not a list of labels in JSON", Hint: notARepository}
	}
	return all, nil
}
