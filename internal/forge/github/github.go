// SPDX-License-Identifier: Apache-2.0

// Package github makes pull requests on GitHub and GitHub Enterprise Server. The
// token needs to write pull requests and, for labels and comments, issues.
package github

import (
	"context"
	"net/url"
	"strings"

	"github.com/google/go-github/v66/github"

	"resourceset.example/renderer/internal/forge"
)

// Client makes pull requests in one repository. See package forge.
type Client struct {
	api               *github.Client
	owner, name, base string
}

// New checks the configuration. It does not use the network.
func New(cfg forge.Config) (*Client, error) {
	owner, name, err := cfg.OwnerAndName()
	if err != nil {
		return nil, err
	}
	api, err := cfg.API("api/v3")
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(api.Host, "github.com") || strings.EqualFold(api.Host, "api.github.com") {
		api = &url.URL{Scheme: "https", Host: "api.github.com", Path: "/"}
	}
	client, err := cfg.Client(api)
	if err != nil {
		return nil, err
	}
	gh := github.NewClient(client)
	gh.BaseURL = api
	return &Client{api: gh, owner: owner, name: name, base: cfg.Base}, nil
}

// Find returns the open request from branch, else the newest closed one, else nil.
func (c *Client) Find(ctx context.Context, branch string) (*forge.Request, error) {
	opts := &github.PullRequestListOptions{
		State: "all", Head: c.owner + ":" + branch, Base: c.base, Sort: "created", Direction: "desc",
		ListOptions: github.ListOptions{PerPage: 100},
	}
	var newest *github.PullRequest
	for range forge.MaxPages {
		list, resp, err := c.api.PullRequests.List(ctx, c.owner, c.name, opts)
		if err != nil {
			return nil, forge.Describe(err)
		}
		if list == nil {
			return nil, forge.Implausible("no list of pull requests")
		}
		for _, pr := range list {
			switch {
			case !c.isOurs(pr, branch):
			case pr.GetState() == "open":
				return request(pr), nil
			case newest == nil || pr.GetNumber() > newest.GetNumber():
				newest = pr
			}
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	if newest == nil {
		return nil, nil
	}
	return request(newest), nil
}

// isOurs checks the filter again: a request from a fork's branch of the same name is
// somebody else's.
func (c *Client) isOurs(pr *github.PullRequest, branch string) bool {
	from := pr.GetHead().GetRepo()
	return pr.GetHead().GetRef() == branch && pr.GetBase().GetRef() == c.base &&
		from != nil && strings.EqualFold(from.GetFullName(), c.owner+"/"+c.name)
}

func request(pr *github.PullRequest) *forge.Request {
	r := &forge.Request{
		Number: pr.GetNumber(), URL: pr.GetHTMLURL(), Title: pr.GetTitle(), Body: pr.GetBody(), Head: pr.GetHead().GetSHA(),
	}
	if pr.GetState() != "open" {
		r.State = forge.Closed
		if pr.GetMerged() || pr.MergedAt != nil { // lists have the time alone
			r.State = forge.Merged
		}
	}
	for _, label := range pr.Labels {
		r.Labels = append(r.Labels, label.GetName())
	}
	return r
}

// Create opens a request from branch.
func (c *Client) Create(ctx context.Context, branch string, content forge.Content) (*forge.Request, error) {
	pr, _, err := c.api.PullRequests.Create(ctx, c.owner, c.name, &github.NewPullRequest{
		Title: &content.Title, Body: &content.Body, Head: &branch, Base: &c.base,
	})
	if err != nil {
		return nil, forge.Describe(err)
	}
	if pr.GetNumber() == 0 {
		return nil, forge.Implausible("a pull request without a number")
	}
	r := request(pr)
	return r, c.label(ctx, r, content.Labels)
}

// Update changes title, text and labels where they differ.
func (c *Client) Update(ctx context.Context, r *forge.Request, content forge.Content) error {
	if r.Title != content.Title || r.Body != content.Body {
		_, _, err := c.api.PullRequests.Edit(ctx, c.owner, c.name, r.Number, &github.PullRequest{Title: &content.Title, Body: &content.Body})
		if err != nil {
			return forge.Describe(err)
		}
	}
	return c.label(ctx, r, content.Labels)
}

// label adds labels. GitHub makes those that the repository does not have yet.
func (c *Client) label(ctx context.Context, r *forge.Request, labels []string) error {
	missing := r.Lacks(labels)
	if len(missing) == 0 {
		return nil
	}
	_, _, err := c.api.Issues.AddLabelsToIssue(ctx, c.owner, c.name, r.Number, missing)
	return forge.Describe(err)
}

// Close closes a request with a last text, and says why first.
func (c *Client) Close(ctx context.Context, r *forge.Request, body, comment string) error {
	if _, _, err := c.api.Issues.CreateComment(ctx, c.owner, c.name, r.Number, &github.IssueComment{Body: &comment}); err != nil {
		return forge.Describe(err)
	}
	closed := "closed"
	_, _, err := c.api.PullRequests.Edit(ctx, c.owner, c.name, r.Number, &github.PullRequest{State: &closed, Body: &body})
	return forge.Describe(err)
}

// Commit returns a commit of the repository.
func (c *Client) Commit(ctx context.Context, hash string) (*forge.Commit, error) {
	commit, _, err := c.api.Git.GetCommit(ctx, c.owner, c.name, hash)
	if err != nil {
		return nil, forge.Describe(err)
	}
	if commit.GetSHA() == "" {
		return nil, forge.Implausible("a commit without a name")
	}
	found := &forge.Commit{
		Message: commit.GetMessage(), CommitterName: commit.GetCommitter().GetName(), CommitterEmail: commit.GetCommitter().GetEmail(),
	}
	for _, parent := range commit.Parents {
		found.Parents = append(found.Parents, parent.GetSHA())
	}
	return found, nil
}
