// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"code.gitea.io/sdk/gitea"
)

// A Repository is one of a user's, private, with the branch main.
type Repository struct {
	Owner *User
	Name  string
}

// NewRepository makes a repository with a first commit.
func (u *User) NewRepository(name string) (*Repository, error) {
	_, _, err := u.CreateRepo(gitea.CreateRepoOption{Name: name, Private: true, AutoInit: true, DefaultBranch: "main"})
	if err != nil {
		return nil, err
	}
	return &Repository{Owner: u, Name: name}, nil
}

// URL is the address of the repository's page.
func (r *Repository) URL() string { return r.Owner.forge.URL + "/" + r.Owner.Name + "/" + r.Name }

// CloneURL is the address for Git.
func (r *Repository) CloneURL() string { return r.URL() + ".git" }

// Head is the commit at the tip of a branch.
func (r *Repository) Head(branch string) (string, error) {
	b, _, err := r.Owner.GetRepoBranch(r.Owner.Name, r.Name, branch)
	if err != nil {
		return "", err
	}
	return b.Commit.ID, nil
}

// Read is the content of a file at the tip of a branch, or empty if there is none.
func (r *Repository) Read(branch, path string) (string, error) {
	text, resp, err := r.Owner.GetFile(r.Owner.Name, r.Name, branch, path)
	if resp != nil && resp.Response != nil && resp.StatusCode == http.StatusNotFound {
		return "", nil
	}
	return string(text), err
}

// Commit writes files to a branch in one commit, and returns it. The branch is made
// from main where there is none.
func (r *Repository) Commit(branch, message string, files map[string]string) (string, error) {
	opt := gitea.ChangeFilesOptions{Message: message, Branch: branch}
	if _, err := r.Head(branch); err != nil {
		opt.Branch, opt.NewBranch = "main", branch
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		change := &gitea.ChangeFileOperation{Operation: "create", Path: path, Content: base64.StdEncoding.EncodeToString([]byte(files[path]))}
		there, resp, err := r.Owner.GetContents(r.Owner.Name, r.Name, opt.Branch, path)
		switch {
		case err == nil:
			change.Operation, change.SHA = "update", there.SHA
		case resp == nil || resp.Response == nil || resp.StatusCode != http.StatusNotFound:
			return "", err
		}
		opt.Files = append(opt.Files, change)
	}
	done, _, err := r.Owner.ChangeFiles(r.Owner.Name, r.Name, opt)
	if err != nil {
		return "", err
	}
	if done.Commit == nil {
		return "", errors.New("gitea does not say what it committed")
	}
	return done.Commit.SHA, nil
}

// Propose opens a pull request from a branch to main and returns its number.
func (r *Repository) Propose(branch, title string) (int64, error) {
	pr, _, err := r.Owner.CreatePullRequest(r.Owner.Name, r.Name, gitea.CreatePullRequestOption{Head: branch, Base: "main", Title: title})
	if err != nil {
		return 0, err
	}
	return pr.Index, nil
}

// Label makes a label, for pull requests to be marked with.
func (r *Repository) Label(name string) (id int64, err error) {
	l, _, err := r.Owner.CreateLabel(r.Owner.Name, r.Name, gitea.CreateLabelOption{Name: name, Color: "#00aabb"})
	if err != nil {
		return 0, err
	}
	return l.ID, nil
}

// Mark puts a label on a pull request.
func (r *Repository) Mark(number, label int64) error {
	_, _, err := r.Owner.AddIssueLabels(r.Owner.Name, r.Name, number, gitea.IssueLabelsOption{Labels: []int64{label}})
	return err
}

// Merge merges a pull request.
func (r *Repository) Merge(number int64) error {
	done, _, err := r.Owner.MergePullRequest(r.Owner.Name, r.Name, number, gitea.MergePullRequestOption{Style: gitea.MergeStyleMerge})
	if err == nil && !done {
		err = fmt.Errorf("pull request %d cannot be merged", number)
	}
	return err
}

// Hook has Gitea tell an address of everything that happens to pull requests.
func (r *Repository) Hook(url, secret string) error {
	_, _, err := r.Owner.CreateRepoHook(r.Owner.Name, r.Name, gitea.CreateHookOption{
		Type: gitea.HookTypeGitea, Active: true,
		Config: map[string]string{"url": url, "content_type": "json", "secret": secret},
		Events: []string{"pull_request", "pull_request_label", "pull_request_sync"},
	})
	return err
}
