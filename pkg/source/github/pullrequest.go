// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/go-github/v66/github"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// ghost is the name that GitHub shows where an account is gone.
const ghost = "ghost"

// A PullRequests provider lists the open pull requests of one repository.
type PullRequests struct {
	object *api.ResourceSetInputProvider
	filter *provider.Filter
	list   *listing.List[pullRequest]
}

// A pullRequest is one in the list, which may have closed while it was read.
type pullRequest struct {
	provider.ChangeRequest
	open bool
}

// NewPullRequests returns the provider of a definition of type GitHubPullRequest.
func NewPullRequests(cfg provider.Config) (*PullRequests, error) {
	filter, err := provider.NewFilter(cfg.Object.Spec.Filter)
	if err != nil {
		return nil, err
	}
	path := fmt.Sprintf("pulls?state=open&sort=created&direction=asc&per_page=%d", perPage)
	list, err := newList(cfg, "pull requests", path, decodePullRequest)
	if err != nil {
		return nil, err
	}
	return &PullRequests{object: cfg.Object, filter: filter, list: list}, nil
}

// Fetch lists the open pull requests.
func (p *PullRequests) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	all, err := p.list.All(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	open := make([]provider.ChangeRequest, 0, len(all))
	for _, pr := range all {
		if pr.open {
			open = append(open, pr.ChangeRequest)
		}
	}
	return provider.ExportChangeRequests(p.object, p.filter, open, previous)
}

// decodePullRequest reads one pull request and checks that all is there that must be.
func decodePullRequest(data json.RawMessage) (pullRequest, string, error) {
	var pr github.PullRequest
	if err := json.Unmarshal(data, &pr); err != nil {
		return pullRequest{}, "", errors.New("not a pull request in JSON")
	}
	if pr.GetNumber() <= 0 {
		return pullRequest{}, "", errors.New("has no number")
	}
	head, base := pr.GetHead(), pr.GetBase()
	for _, must := range []struct{ name, value string }{
		{"state", pr.GetState()}, {"head.sha", head.GetSHA()}, {"head.ref", head.GetRef()},
		{"base.ref", base.GetRef()}, {"base.repo.full_name", base.GetRepo().GetFullName()},
	} {
		if must.value == "" {
			return pullRequest{}, "", fmt.Errorf("pull request %d has no %s", pr.GetNumber(), must.name)
		}
	}
	if pr.GetCreatedAt().IsZero() || pr.GetUpdatedAt().IsZero() {
		return pullRequest{}, "", fmt.Errorf("pull request %d has no created_at or updated_at", pr.GetNumber())
	}
	labels := make([]string, len(pr.Labels))
	for i, label := range pr.Labels {
		if labels[i] = label.GetName(); labels[i] == "" {
			return pullRequest{}, "", fmt.Errorf("pull request %d has a label without a name", pr.GetNumber())
		}
	}
	author := pr.GetUser().GetLogin()
	if author == "" {
		author = ghost
	}
	id := strconv.Itoa(pr.GetNumber())
	return pullRequest{
		open: pr.GetState() == "open",
		ChangeRequest: provider.ChangeRequest{
			ID:           id,
			Number:       int64(pr.GetNumber()),
			SHA:          head.GetSHA(),
			Branch:       head.GetRef(),
			TargetBranch: base.GetRef(),
			Title:        pr.GetTitle(),
			Author:       author,
			Labels:       labels,
			URL:          pr.GetHTMLURL(),
			Draft:        pr.GetDraft(),
			Fork:         isFork(head.GetRepo(), base.GetRepo()),
			CreatedAt:    pr.GetCreatedAt().Time,
			UpdatedAt:    pr.GetUpdatedAt().Time,
		},
	}, id, nil
}

// isFork tells whether a head is in another repository than the base. A
// repository that is gone was another one.
func isFork(head, base *github.Repository) bool {
	if head == nil || base == nil {
		return true
	}
	if head.GetID() != 0 && base.GetID() != 0 {
		return head.GetID() != base.GetID()
	}
	return !strings.EqualFold(head.GetFullName(), base.GetFullName())
}
