// SPDX-License-Identifier: Apache-2.0

package gitea

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// ghost is the name that Gitea shows where an account is gone.
const ghost = "Ghost"

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

// NewPullRequests returns the provider of a definition of type GiteaPullRequest.
func NewPullRequests(cfg provider.Config) (*PullRequests, error) {
	filter, err := provider.NewFilter(cfg.Object.Spec.Filter)
	if err != nil {
		return nil, err
	}
	list, err := newList(cfg, pullRequests())
	if err != nil {
		return nil, err
	}
	return &PullRequests{object: cfg.Object, filter: filter, list: list}, nil
}

func pullRequests() kind[gitea.PullRequest, pullRequest] {
	return kind[gitea.PullRequest, pullRequest]{
		what: "pull requests",
		call: func(api *gitea.Client, owner, name string, page gitea.ListOptions) ([]*gitea.PullRequest, *gitea.Response, error) {
			return api.ListRepoPullRequests(owner, name, gitea.ListPullRequestsOptions{
				ListOptions: page, State: gitea.StateOpen, Sort: "oldest", // new ones do not disturb this order
			})
		},
		convert: convertPullRequest,
	}
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

// convertPullRequest checks that all is there that must be.
func convertPullRequest(pr *gitea.PullRequest) (pullRequest, string, error) {
	if pr == nil || pr.Index <= 0 {
		return pullRequest{}, "", errors.New("has no number")
	}
	if pr.Head == nil || pr.Base == nil {
		return pullRequest{}, "", fmt.Errorf("pull request %d has no head or base", pr.Index)
	}
	// Of a branch that is deleted, only the label still has the name.
	branch := cmp.Or(pr.Head.Name, pr.Head.Ref)
	for _, must := range []struct{ name, value string }{
		{"state", string(pr.State)}, {"head.sha", pr.Head.Sha}, {"head.ref", branch}, {"base.ref", pr.Base.Ref},
	} {
		if must.value == "" {
			return pullRequest{}, "", fmt.Errorf("pull request %d has no %s", pr.Index, must.name)
		}
	}
	if pr.Created == nil || pr.Updated == nil || pr.Created.IsZero() || pr.Updated.IsZero() {
		return pullRequest{}, "", fmt.Errorf("pull request %d has no created_at or updated_at", pr.Index)
	}
	labels := make([]string, 0, len(pr.Labels))
	for _, label := range pr.Labels {
		if label == nil || label.Name == "" {
			return pullRequest{}, "", fmt.Errorf("pull request %d has a label without a name", pr.Index)
		}
		labels = append(labels, label.Name)
	}
	author := ghost
	if pr.Poster != nil && pr.Poster.UserName != "" {
		author = pr.Poster.UserName
	}
	id := strconv.FormatInt(pr.Index, 10)
	return pullRequest{
		open: pr.State == gitea.StateOpen,
		ChangeRequest: provider.ChangeRequest{
			ID:           id,
			Number:       pr.Index,
			SHA:          pr.Head.Sha,
			Branch:       branch,
			TargetBranch: pr.Base.Ref,
			Title:        pr.Title,
			Author:       author,
			Labels:       labels,
			URL:          pr.HTMLURL,
			Draft:        pr.Draft || isDraft(pr.Title),
			Fork:         isFork(pr.Head, pr.Base),
			CreatedAt:    *pr.Created,
			UpdatedAt:    *pr.Updated,
		},
	}, id, nil
}

// isDraft is for servers that do not say draft themselves, with the prefixes that
// they have unless they are told otherwise.
func isDraft(title string) bool {
	for _, prefix := range []string{"WIP:", "[WIP]"} {
		if len(title) >= len(prefix) && strings.EqualFold(title[:len(prefix)], prefix) {
			return true
		}
	}
	return false
}

// isFork tells whether a head is in another repository than the base, also where
// that is gone (its number is -1 then), or on no branch of the repository: what was
// pushed to refs/for/… has an empty label, and comes from anybody who can read.
func isFork(head, base *gitea.PRBranchInfo) bool {
	return head.RepoID <= 0 || head.RepoID != base.RepoID || head.Name == ""
}
