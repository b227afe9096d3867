// SPDX-License-Identifier: Apache-2.0

package azuredevops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// pullsPerPage is how many pull requests are asked for at once.
const pullsPerPage = 100

// ghost stands for an author without a name.
const ghost = "ghost"

// A PullRequests provider lists the active pull requests of one repository.
type PullRequests struct {
	object *api.ResourceSetInputProvider
	filter *provider.Filter
	web    string
	pulls  *labelled
}

// A pullRequest is one in the list, which may have closed while it was read.
type pullRequest struct {
	provider.ChangeRequest
	active bool
	told   bool // the list has its labels
}

// NewPullRequests returns the provider of a definition of type AzureDevOpsPullRequest.
func NewPullRequests(cfg provider.Config) (*PullRequests, error) {
	filter, err := provider.NewFilter(cfg.Object.Spec.Filter)
	if err != nil {
		return nil, err
	}
	repo, err := parseURL(cfg.Object.Spec.URL)
	if err != nil {
		return nil, err
	}
	query := url.Values{"searchCriteria.status": {"active"}, "$top": {strconv.Itoa(pullsPerPage)}, "$skip": {"0"}}
	c, list, err := newList(cfg, repo, "pull requests", "pullrequests", query, skip, decodePull)
	if err != nil {
		return nil, err
	}
	pulls, err := provider.Share(cfg.Shared, cfg.Identity()+" "+repo.api.String()+" labels", func() (*labelled, error) {
		return newLabelled(list, c, repo.api), nil
	})
	return &PullRequests{object: cfg.Object, filter: filter, web: repo.web.String(), pulls: pulls}, err
}

// skip leads to the items after those that were read, until there are none.
func skip(address *url.URL, items int, _ http.Header) string {
	if items == 0 {
		return ""
	}
	query := address.Query()
	at, err := strconv.Atoi(query.Get("$skip"))
	if err != nil {
		return ""
	}
	query.Set("$skip", strconv.Itoa(at+items))
	next := *address
	next.RawQuery = query.Encode()
	return next.String()
}

// Fetch lists the active pull requests.
func (p *PullRequests) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	all, err := p.pulls.all(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	open := make([]provider.ChangeRequest, 0, len(all))
	for _, pull := range all {
		if !pull.active {
			continue
		}
		pull.URL = p.web + "/pullrequest/" + pull.ID
		open = append(open, pull.ChangeRequest)
	}
	return provider.ExportChangeRequests(p.object, p.filter, open, previous)
}

// A label is one as lists have it. One that is not active was taken off.
type label struct {
	Name   string `json:"name"`
	Active *bool  `json:"active"`
}

func names(labels []label) ([]string, error) {
	all := make([]string, 0, len(labels))
	for _, l := range labels {
		if l.Name == "" {
			return nil, errors.New("has a label without a name")
		}
		if l.Active == nil || *l.Active {
			all = append(all, l.Name)
		}
	}
	return all, nil
}

const branchPrefix = "refs/heads/"

// decodePull reads one pull request and checks that all is there that must be.
func decodePull(data json.RawMessage) (pullRequest, string, error) {
	var pull struct {
		ID        int64  `json:"pullRequestId"`
		Status    string `json:"status"`
		Title     string `json:"title"`
		Draft     bool   `json:"isDraft"`
		CreatedBy struct {
			DisplayName string `json:"displayName"`
		} `json:"createdBy"`
		CreatedAt time.Time `json:"creationDate"`
		Source    string    `json:"sourceRefName"`
		Target    string    `json:"targetRefName"`
		Head      struct {
			CommitID string `json:"commitId"`
		} `json:"lastMergeSourceCommit"`
		Fork   json.RawMessage `json:"forkSource"` // there for forks only
		Labels *[]label        `json:"labels"`
	}
	if json.Unmarshal(data, &pull) != nil {
		return pullRequest{}, "", errors.New("not a pull request in JSON")
	}
	if pull.ID <= 0 {
		return pullRequest{}, "", errors.New("has no pullRequestId")
	}
	branch, ok := strings.CutPrefix(pull.Source, branchPrefix)
	target, also := strings.CutPrefix(pull.Target, branchPrefix)
	switch {
	case pull.Status == "":
		return pullRequest{}, "", fmt.Errorf("pull request %d has no status", pull.ID)
	case !ok || !also || branch == "" || target == "":
		return pullRequest{}, "", fmt.Errorf("pull request %d has no branch in sourceRefName or targetRefName", pull.ID)
	case pull.Head.CommitID == "":
		return pullRequest{}, "", fmt.Errorf("pull request %d has no lastMergeSourceCommit", pull.ID)
	case pull.CreatedAt.IsZero():
		return pullRequest{}, "", fmt.Errorf("pull request %d has no creationDate", pull.ID)
	}
	request := pullRequest{
		active: pull.Status == "active",
		ChangeRequest: provider.ChangeRequest{
			ID: strconv.FormatInt(pull.ID, 10), Number: pull.ID, SHA: pull.Head.CommitID, Branch: branch, TargetBranch: target,
			Title: pull.Title, Author: pull.CreatedBy.DisplayName, Draft: pull.Draft,
			Fork: len(pull.Fork) > 0 && string(pull.Fork) != "null", CreatedAt: pull.CreatedAt,
		},
	}
	if request.Author == "" {
		request.Author = ghost
	}
	if pull.Labels != nil {
		labels, err := names(*pull.Labels)
		if err != nil {
			return pullRequest{}, "", fmt.Errorf("pull request %d %w", pull.ID, err)
		}
		request.Labels, request.told = labels, true
	}
	return request, request.ID, nil
}
