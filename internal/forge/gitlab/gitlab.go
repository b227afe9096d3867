// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 the library is the one that the design names; its successor is a change of this file

// Package gitlab makes merge requests on GitLab. The token needs the scope "api".
package gitlab

import (
	"context"

	"github.com/xanzy/go-gitlab"

	"resourceset.example/renderer/internal/forge"
)

// Client makes merge requests in one project. See package forge.
type Client struct {
	api           *gitlab.Client
	project, base string
}

// New checks the configuration. It does not use the network.
func New(cfg forge.Config) (*Client, error) {
	api, err := cfg.API("api/v4")
	if err != nil {
		return nil, err
	}
	client, err := cfg.Client(api)
	if err != nil {
		return nil, err
	}
	// GitLab takes every kind of token as a bearer's, which is how the client sends it.
	gl, err := gitlab.NewOAuthClient(cfg.Token, gitlab.WithBaseURL(api.String()), gitlab.WithHTTPClient(client),
		gitlab.WithoutRetries(), gitlab.WithCustomLimiter(unlimited{}))
	if err != nil {
		return nil, forge.Describe(err)
	}
	return &Client{api: gl, project: cfg.Repository, base: cfg.Base}, nil
}

// unlimited leaves waiting to the HTTP client, which knows what the server asked for.
type unlimited struct{}

func (unlimited) Wait(context.Context) error { return nil }

// Find returns the open request from branch, else the newest closed one, else nil.
func (c *Client) Find(ctx context.Context, branch string) (*forge.Request, error) {
	opts := &gitlab.ListProjectMergeRequestsOptions{
		ListOptions: gitlab.ListOptions{PerPage: 100}, State: ptr("all"), SourceBranch: &branch, TargetBranch: &c.base,
		OrderBy: ptr("created_at"), Sort: ptr("desc"),
	}
	var newest *gitlab.MergeRequest
	for range forge.MaxPages {
		list, resp, err := c.api.MergeRequests.ListProjectMergeRequests(c.project, opts, gitlab.WithContext(ctx))
		if err != nil {
			return nil, forge.Describe(err)
		}
		if list == nil {
			return nil, forge.Implausible("no list of merge requests")
		}
		for _, mr := range list {
			switch {
			// The filter is checked again; a fork's branch is in another project.
			case mr.SourceBranch != branch || mr.TargetBranch != c.base || mr.SourceProjectID != mr.TargetProjectID:
			case mr.State == "opened" || mr.State == "locked": // locked is being merged just now
				return request(mr), nil
			case newest == nil || mr.IID > newest.IID:
				newest = mr
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

func request(mr *gitlab.MergeRequest) *forge.Request {
	r := &forge.Request{
		Number: mr.IID, URL: mr.WebURL, Title: mr.Title, Body: mr.Description, Labels: mr.Labels, Head: mr.SHA,
	}
	switch mr.State {
	case "merged":
		r.State = forge.Merged
	case "closed":
		r.State = forge.Closed
	}
	return r
}

// Create opens a request from branch.
func (c *Client) Create(ctx context.Context, branch string, content forge.Content) (*forge.Request, error) {
	opts := &gitlab.CreateMergeRequestOptions{
		Title: &content.Title, Description: &content.Body, SourceBranch: &branch, TargetBranch: &c.base, RemoveSourceBranch: ptr(true),
	}
	if len(content.Labels) > 0 {
		opts.Labels = (*gitlab.LabelOptions)(&content.Labels)
	}
	mr, _, err := c.api.MergeRequests.CreateMergeRequest(c.project, opts, gitlab.WithContext(ctx))
	if err != nil {
		return nil, forge.Describe(err)
	}
	if mr == nil || mr.IID == 0 {
		return nil, forge.Implausible("a merge request without a number")
	}
	return request(mr), nil
}

// Update changes title, text and labels where they differ.
func (c *Client) Update(ctx context.Context, r *forge.Request, content forge.Content) error {
	opts := &gitlab.UpdateMergeRequestOptions{}
	missing := r.Lacks(content.Labels)
	if r.Title != content.Title {
		opts.Title = &content.Title
	}
	if r.Body != content.Body {
		opts.Description = &content.Body
	}
	if len(missing) > 0 {
		opts.AddLabels = (*gitlab.LabelOptions)(&missing)
	}
	if opts.Title == nil && opts.Description == nil && opts.AddLabels == nil {
		return nil
	}
	_, _, err := c.api.MergeRequests.UpdateMergeRequest(c.project, r.Number, opts, gitlab.WithContext(ctx))
	return forge.Describe(err)
}

// Close closes a request with a last text, and says why first.
func (c *Client) Close(ctx context.Context, r *forge.Request, body, comment string) error {
	_, _, err := c.api.Notes.CreateMergeRequestNote(c.project, r.Number, &gitlab.CreateMergeRequestNoteOptions{Body: &comment}, gitlab.WithContext(ctx))
	if err != nil {
		return forge.Describe(err)
	}
	_, _, err = c.api.MergeRequests.UpdateMergeRequest(c.project, r.Number, &gitlab.UpdateMergeRequestOptions{
		StateEvent: ptr("close"), Description: &body,
	}, gitlab.WithContext(ctx))
	return forge.Describe(err)
}

// Commit returns a commit of the project.
func (c *Client) Commit(ctx context.Context, hash string) (*forge.Commit, error) {
	commit, _, err := c.api.Commits.GetCommit(c.project, hash, &gitlab.GetCommitOptions{Stats: ptr(false)}, gitlab.WithContext(ctx))
	if err != nil {
		return nil, forge.Describe(err)
	}
	if commit == nil || commit.ID == "" {
		return nil, forge.Implausible("a commit without a name")
	}
	return &forge.Commit{
		Message: commit.Message, CommitterName: commit.CommitterName, CommitterEmail: commit.CommitterEmail, Parents: commit.ParentIDs,
	}, nil
}

func ptr[T any](v T) *T { return &v }
