// SPDX-License-Identifier: Apache-2.0

// Package gitea makes pull requests on Gitea, and on Forgejo, which kept its API. The
// token needs to write the repository and its issues.
package gitea

import (
	"context"
	"net/http"
	"strings"

	"code.gitea.io/sdk/gitea"

	"resourceset.example/renderer/internal/forge"
)

// labelColor is that of labels which the repository did not have.
const labelColor = "#ededed"

// Client makes pull requests in one repository. See package forge.
type Client struct {
	url               string
	http              *http.Client
	owner, name, base string
}

// New checks the configuration. It does not use the network.
func New(cfg forge.Config) (*Client, error) {
	owner, name, err := cfg.OwnerAndName()
	if err != nil {
		return nil, err
	}
	api, err := cfg.API("api/v1")
	if err != nil {
		return nil, err
	}
	client, err := cfg.Client(api)
	if err != nil {
		return nil, err
	}
	url := strings.TrimSuffix(api.String(), "/api/v1/") // the library adds it again
	return &Client{url: url, http: client, owner: owner, name: name, base: cfg.Base}, nil
}

// api is the library's client for one call: it keeps the context inside.
func (c *Client) api(ctx context.Context) (*gitea.Client, error) {
	api, err := gitea.NewClient(c.url, gitea.SetHTTPClient(c.http), gitea.SetContext(ctx), gitea.SetGiteaVersion(""))
	return api, forge.Describe(err)
}

// Find returns the open request from branch, else the newest closed one, else nil.
// The API has no filter for the branch, so open requests are all looked at, and
// closed ones from the last changed on, within forge.MaxPages.
func (c *Client) Find(ctx context.Context, branch string) (*forge.Request, error) {
	api, err := c.api(ctx)
	if err != nil {
		return nil, err
	}
	for _, state := range []gitea.StateType{gitea.StateOpen, gitea.StateClosed} {
		found, err := c.find(api, branch, state)
		if found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

func (c *Client) find(api *gitea.Client, branch string, state gitea.StateType) (*forge.Request, error) {
	opts := gitea.ListPullRequestsOptions{
		ListOptions: gitea.ListOptions{Page: 1, PageSize: 50}, State: state, Sort: "recentupdate",
	}
	var newest *gitea.PullRequest
	for range forge.MaxPages {
		list, resp, err := api.ListRepoPullRequests(c.owner, c.name, opts)
		if err != nil {
			return nil, forge.Describe(err)
		}
		if list == nil {
			return nil, forge.Implausible("no list of pull requests")
		}
		for _, pr := range list {
			if c.isOurs(pr, branch) && (newest == nil || pr.Index > newest.Index) {
				newest = pr
			}
		}
		// A request that changed before the one found is not newer than it, other than
		// by a late comment, which does not matter.
		if newest != nil || resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	if newest == nil {
		return nil, nil
	}
	return request(newest), nil
}

// isOurs leaves out requests from forks, whatever their branch is called. Of a branch
// that is deleted only the label is left.
func (c *Client) isOurs(pr *gitea.PullRequest, branch string) bool {
	if pr.Head == nil || pr.Base == nil || pr.Base.Ref != c.base || pr.Head.RepoID != pr.Base.RepoID {
		return false
	}
	return pr.Head.Ref == branch || pr.Head.Name == branch
}

func request(pr *gitea.PullRequest) *forge.Request {
	r := &forge.Request{Number: int(pr.Index), URL: pr.HTMLURL, Title: pr.Title, Body: pr.Body}
	if pr.Head != nil {
		r.Head = pr.Head.Sha
	}
	switch {
	case pr.HasMerged:
		r.State = forge.Merged
	case pr.State == gitea.StateClosed:
		r.State = forge.Closed
	}
	for _, label := range pr.Labels {
		r.Labels = append(r.Labels, label.Name)
	}
	return r
}

// Create opens a request from branch.
func (c *Client) Create(ctx context.Context, branch string, content forge.Content) (*forge.Request, error) {
	api, err := c.api(ctx)
	if err != nil {
		return nil, err
	}
	pr, _, err := api.CreatePullRequest(c.owner, c.name, gitea.CreatePullRequestOption{
		Head: branch, Base: c.base, Title: content.Title, Body: content.Body,
	})
	if err != nil {
		return nil, forge.Describe(err)
	}
	if pr == nil || pr.Index == 0 {
		return nil, forge.Implausible("a pull request without a number")
	}
	r := request(pr)
	return r, c.label(api, r, content.Labels)
}

// Update changes title, text and labels where they differ.
func (c *Client) Update(ctx context.Context, r *forge.Request, content forge.Content) error {
	api, err := c.api(ctx)
	if err != nil {
		return err
	}
	if r.Title != content.Title || r.Body != content.Body {
		_, _, err := api.EditPullRequest(c.owner, c.name, int64(r.Number), gitea.EditPullRequestOption{Title: content.Title, Body: &content.Body})
		if err != nil {
			return forge.Describe(err)
		}
	}
	return c.label(api, r, content.Labels)
}

// label adds labels, which have numbers here. The repository gets those that it does
// not have yet.
func (c *Client) label(api *gitea.Client, r *forge.Request, labels []string) error {
	missing := r.Lacks(labels)
	if len(missing) == 0 {
		return nil
	}
	known, err := c.labels(api)
	if err != nil {
		return err
	}
	var ids []int64
	for _, name := range missing {
		id, ok := known[strings.ToLower(name)]
		if !ok {
			label, _, err := api.CreateLabel(c.owner, c.name, gitea.CreateLabelOption{Name: name, Color: labelColor})
			if err != nil {
				return forge.Describe(err)
			}
			id = label.ID
		}
		ids = append(ids, id)
	}
	_, _, err = api.AddIssueLabels(c.owner, c.name, int64(r.Number), gitea.IssueLabelsOption{Labels: ids})
	return forge.Describe(err)
}

func (c *Client) labels(api *gitea.Client) (map[string]int64, error) {
	known := map[string]int64{}
	opts := gitea.ListLabelsOptions{ListOptions: gitea.ListOptions{Page: 1, PageSize: 50}}
	for range forge.MaxPages {
		list, resp, err := api.ListRepoLabels(c.owner, c.name, opts)
		if err != nil {
			return nil, forge.Describe(err)
		}
		if list == nil {
			return nil, forge.Implausible("no list of labels")
		}
		for _, label := range list {
			known[strings.ToLower(label.Name)] = label.ID
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	return known, nil
}

// Close closes a request with a last text, and says why first.
func (c *Client) Close(ctx context.Context, r *forge.Request, body, comment string) error {
	api, err := c.api(ctx)
	if err != nil {
		return err
	}
	if _, _, err := api.CreateIssueComment(c.owner, c.name, int64(r.Number), gitea.CreateIssueCommentOption{Body: comment}); err != nil {
		return forge.Describe(err)
	}
	closed := gitea.StateClosed
	_, _, err = api.EditPullRequest(c.owner, c.name, int64(r.Number), gitea.EditPullRequestOption{State: &closed, Body: &body})
	return forge.Describe(err)
}

// Commit returns a commit of the repository.
func (c *Client) Commit(ctx context.Context, hash string) (*forge.Commit, error) {
	api, err := c.api(ctx)
	if err != nil {
		return nil, err
	}
	commit, _, err := api.GetSingleCommit(c.owner, c.name, hash)
	if err != nil {
		return nil, forge.Describe(err)
	}
	if commit == nil || commit.CommitMeta == nil || commit.RepoCommit == nil || commit.RepoCommit.Committer == nil {
		return nil, forge.Implausible("a commit without a name or committer")
	}
	found := &forge.Commit{
		Message: commit.RepoCommit.Message, CommitterName: commit.RepoCommit.Committer.Name, CommitterEmail: commit.RepoCommit.Committer.Email,
	}
	for _, parent := range commit.Parents {
		found.Parents = append(found.Parents, parent.SHA)
	}
	return found, nil
}
