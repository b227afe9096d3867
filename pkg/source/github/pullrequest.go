// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// ghost is the name that GitHub shows where an account is gone.
const ghost = "ghost"

// A PullRequests provider lists the open pull requests of one repository.
type PullRequests struct {
	object     *api.ResourceSetInputProvider
	filter     *provider.Filter
	allowForks bool
	list       *list[pullRequest]
}

type pullRequest struct {
	number int
	open   bool
	fork   bool
	branch string
	labels []string
	input  api.Input
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
	return &PullRequests{
		object:     cfg.Object,
		filter:     filter,
		allowForks: cfg.Object.Annotations[api.AnnotationAllowForks] == "true",
		list:       list,
	}, nil
}

// Fetch lists the open pull requests.
func (p *PullRequests) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	all, err := p.list.all(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	slices.SortStableFunc(all, func(a, b pullRequest) int { return a.number - b.number })
	items, forks := make([]provider.Item, 0, len(all)), 0
	for _, pr := range all {
		if !pr.open || !p.filter.Labels(pr.labels) || !p.filter.Branch(pr.branch) {
			continue
		}
		if pr.fork && !p.allowForks {
			forks++
			continue
		}
		items = append(items, provider.Item{Key: strconv.Itoa(pr.number), Labels: pr.labels, Input: pr.input})
	}
	result, err := provider.Export(p.object, "id", items, previous)
	result.Forks = forks
	return result, err
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
	labels := make([]string, len(pr.Labels))
	for i, label := range pr.Labels {
		labels[i] = label.GetName()
	}
	slices.Sort(labels)
	found := pullRequest{
		number: pr.GetNumber(),
		open:   pr.GetState() == "open",
		fork:   isFork(head.GetRepo(), base.GetRepo()),
		branch: head.GetRef(),
		labels: labels,
	}
	found.input = found.export(&pr)
	return found, strconv.Itoa(found.number), nil
}

func (p *pullRequest) export(pr *github.PullRequest) api.Input {
	author := pr.GetUser().GetLogin()
	if author == "" {
		author = ghost
	}
	labels := make([]any, len(p.labels))
	for i, label := range p.labels {
		labels[i] = label
	}
	return api.Input{
		"id":           strconv.Itoa(p.number),
		"sha":          pr.GetHead().GetSHA(),
		"branch":       p.branch,
		"targetBranch": pr.GetBase().GetRef(),
		"title":        pr.GetTitle(),
		"author":       author,
		"labels":       labels,
		"url":          pr.GetHTMLURL(),
		"draft":        pr.GetDraft(),
		"fork":         p.fork,
		"createdAt":    pr.GetCreatedAt().UTC().Format(time.RFC3339),
		"updatedAt":    pr.GetUpdatedAt().UTC().Format(time.RFC3339),
	}
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
