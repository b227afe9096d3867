// SPDX-License-Identifier: Apache-2.0

package bitbucket

import (
	"context"
	"fmt"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// ghost stands for an author whose account is gone.
const ghost = "ghost"

// A PullRequests provider lists the open pull requests of one repository.
type PullRequests struct {
	object  *api.ResourceSetInputProvider
	filter  *provider.Filter
	repo    *repository
	list    *listing.List[pullRequest]
	commits *commits // of Cloud; nil otherwise
}

// A pullRequest is one in the list, which may have closed while it was read.
type pullRequest struct {
	provider.ChangeRequest
	open   bool
	source string // full name of the head's repository, on Cloud; empty where it is gone
}

// NewPullRequests returns the provider of a definition of type BitbucketPullRequest.
func NewPullRequests(cfg provider.Config) (*PullRequests, error) {
	repo, err := parseURL(cfg.Object.Spec.URL)
	if err != nil {
		return nil, err
	}
	return newPullRequests(cfg, repo)
}

func newPullRequests(cfg provider.Config, repo *repository) (*PullRequests, error) {
	if len(cfg.Object.Spec.Filter.Labels) > 0 || len(cfg.Object.Spec.Skip.Labels) > 0 {
		return nil, &provider.Error{
			Reason: provider.Misconfigured,
			Msg:    "spec.filter.labels or spec.skip.labels is set, and pull requests of Bitbucket have no labels",
			Hint:   "take it out; filter by title, targetBranch, includeBranch or draft instead",
		}
	}
	filter, err := provider.NewFilter(cfg.Object.Spec.Filter)
	if err != nil {
		return nil, err
	}
	// Both orders are the oldest first: new ones do not disturb it.
	path, decode := "pull-requests?state=OPEN&order=OLDEST&limit=100", decodeServerPull
	if repo.cloud {
		path, decode = "pullrequests?state=OPEN&sort=created_on&pagelen=50", decodeCloudPull
	}
	client, list, err := newList(cfg, repo, "pull requests", path, decode)
	if err != nil {
		return nil, err
	}
	p := &PullRequests{object: cfg.Object, filter: filter, repo: repo, list: list}
	if repo.cloud {
		p.commits, err = provider.Share(cfg.Shared, cfg.Identity()+" "+repo.api.String()+" commits", func() (*commits, error) {
			return newCommits(client), nil
		})
	}
	return p, err
}

// Fetch lists the open pull requests.
func (p *PullRequests) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	all, err := p.list.All(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	if p.commits != nil {
		forks := p.object.Annotations[api.AnnotationAllowForks] == "true"
		if err := p.commits.complete(ctx, all, forks); err != nil {
			return provider.Result{}, err
		}
	}
	open := make([]provider.ChangeRequest, 0, len(all))
	for _, pull := range all {
		if !pull.open {
			continue
		}
		pull.URL = fmt.Sprintf("%s/pull-requests/%s", p.repo.web, pull.ID)
		open = append(open, pull.ChangeRequest)
	}
	return provider.ExportChangeRequests(p.object, p.filter, open, previous)
}
