// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Repo is a repository on a GitHub server.
type Repo struct {
	github   *GitHub
	id       int64
	fullName string
	last     int
	prs      []*pull
	refs     map[string]map[string]string // "branches" or "tags" → name → commit
	git      string                       // folder of the repository, if it is a real one (see Host)
	labels   []string                     // known to the repository, in the order they were made
	places   []*environment
	deploys  []*deployment
}

// A PR is what a pull request is opened with. Fields left empty get a value.
type PR struct {
	Branch, SHA, Title, Author string
	Target                     string // "main" if empty
	Labels                     []string
	Draft                      bool
	Fork                       string // full name of the head's repository, if another one
	ForkDeleted                bool   // the head's repository is gone
	Ghost                      bool   // the author's account is gone
}

type pull struct {
	PR
	number           int
	open, merged     bool
	locked           bool // being merged just now, which only GitLab tells
	body             string
	comments         []string
	made             bool // through the API, from a branch of the hosted repository
	created, updated time.Time
}

// SHA makes the commit id that stands for a text in tests.
func SHA(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// WebURL is the address of the repository for people, as spec.url has it.
func (r *Repo) WebURL() string { return r.github.URL + "/" + r.fullName }

// Open opens a pull request and returns its number.
func (r *Repo) Open(pr PR) int {
	r.github.mu.Lock()
	defer r.github.mu.Unlock()
	r.last++
	pr.Branch = cmp.Or(pr.Branch, fmt.Sprintf("feat/%d", r.last))
	pr.SHA = cmp.Or(pr.SHA, SHA(fmt.Sprintf("%s#%d", r.fullName, r.last)))
	pr.Title = cmp.Or(pr.Title, fmt.Sprintf("Change %d", r.last))
	pr.Author = cmp.Or(pr.Author, "octocat")
	pr.Target = cmp.Or(pr.Target, "main")
	pr.Labels = slices.Clone(pr.Labels)
	now := r.github.tick()
	r.prs = append(r.prs, &pull{PR: pr, number: r.last, open: true, created: now, updated: now})
	return r.last
}

// Push moves a pull request's head.
func (r *Repo) Push(number int, sha string) { r.change(number, func(p *pull) { p.SHA = sha }) }

// Close closes a pull request, Reopen opens it again.
func (r *Repo) Close(number int) { r.change(number, func(p *pull) { p.open = false }) }

// Reopen opens a closed pull request again.
func (r *Repo) Reopen(number int) { r.change(number, func(p *pull) { p.open = true }) }

// Retitle changes a pull request's title.
func (r *Repo) Retitle(number int, title string) { r.change(number, func(p *pull) { p.Title = title }) }

// Label adds labels to a pull request.
func (r *Repo) Label(number int, labels ...string) {
	r.change(number, func(p *pull) { p.Labels = append(p.Labels, labels...) })
}

// Unlabel takes a label away from a pull request.
func (r *Repo) Unlabel(number int, label string) {
	r.change(number, func(p *pull) {
		p.Labels = slices.DeleteFunc(p.Labels, func(l string) bool { return l == label })
	})
}

// SetBranch makes or moves a branch; SetTag does so for a tag.
func (r *Repo) SetBranch(name, sha string) { r.set("branches", name, sha) }

// SetTag makes or moves a tag.
func (r *Repo) SetTag(name, sha string) { r.set("tags", name, sha) }

// DeleteBranch and DeleteTag remove what the Set functions made.
func (r *Repo) DeleteBranch(name string) { r.set("branches", name, "") }

// DeleteTag removes a tag.
func (r *Repo) DeleteTag(name string) { r.set("tags", name, "") }

func (r *Repo) set(kind, name, sha string) {
	r.github.mu.Lock()
	defer r.github.mu.Unlock()
	if r.refs == nil {
		r.refs = map[string]map[string]string{"branches": {}, "tags": {}}
	}
	if sha == "" {
		delete(r.refs[kind], name)
		return
	}
	r.refs[kind][name] = sha
}

func (r *Repo) change(number int, fn func(*pull)) {
	r.github.mu.Lock()
	defer r.github.mu.Unlock()
	for _, p := range r.prs {
		if p.number == number {
			fn(p)
			p.updated = r.github.tick()
		}
	}
}

// pulls answers as GitHub does: newest first, or by the order asked for.
func (r *Repo) pulls(query url.Values) []any {
	r.follow()
	var open []*pull
	for _, p := range r.prs {
		state, from, to := query.Get("state"), query.Get("head"), query.Get("base")
		if !(state == "all" || p.open == (state != "closed")) || to != "" && p.Target != to {
			continue
		}
		if from != "" && from != r.owner()+":"+p.Branch {
			continue
		}
		open = append(open, p)
	}
	slices.SortStableFunc(open, func(a, b *pull) int {
		if query.Get("sort") == "updated" {
			return a.updated.Compare(b.updated)
		}
		return a.created.Compare(b.created)
	})
	if query.Get("direction") != "asc" {
		slices.Reverse(open)
	}
	items := make([]any, len(open))
	for i, p := range open {
		items[i] = r.pullJSON(p)
	}
	return items
}

func (r *Repo) pullJSON(p *pull) map[string]any {
	labels := make([]any, len(p.Labels))
	for i, label := range p.Labels {
		labels[i] = map[string]any{
			"id": 208045946 + i, "node_id": "MDU6TGFiZWw=", "name": label, "color": "ededed", "default": false,
			"description": nil, "url": fmt.Sprintf("%s%s/repos/%s/labels/%s", r.github.URL, apiPrefix, r.fullName, url.PathEscape(label)),
		}
	}
	state := "closed"
	if p.open {
		state = "open"
	}
	var author any
	if !p.Ghost {
		author = r.userJSON(p.Author)
	}
	var body, closed, merged any
	if p.body != "" {
		body = p.body
	}
	if !p.open {
		closed = p.updated.Format(time.RFC3339)
	}
	if p.merged {
		merged = closed
	}
	api := fmt.Sprintf("%s%s/repos/%s", r.github.URL, apiPrefix, r.fullName)
	return map[string]any{
		"id": r.id*1000 + int64(p.number), "node_id": "MDExOlB1bGxSZXF1ZXN0MQ==", "number": p.number,
		"url": fmt.Sprintf("%s/pulls/%d", api, p.number), "html_url": fmt.Sprintf("%s/%s/pull/%d", r.github.URL, r.fullName, p.number),
		"diff_url": fmt.Sprintf("%s/%s/pull/%d.diff", r.github.URL, r.fullName, p.number),
		"state":    state, "locked": false, "title": p.Title, "user": author, "body": body, "labels": labels,
		"milestone": nil, "active_lock_reason": nil, "draft": p.Draft,
		"created_at": p.created.Format(time.RFC3339), "updated_at": p.updated.Format(time.RFC3339),
		"closed_at": closed, "merged_at": merged, "merge_commit_sha": SHA(p.SHA + " merged"),
		"assignee": nil, "assignees": []any{}, "requested_reviewers": []any{}, "requested_teams": []any{},
		"head": r.headJSON(p), "base": r.sideJSON(r.fullName, r.id, p.Target, SHA(r.fullName+p.Target)),
		"author_association": "CONTRIBUTOR", "auto_merge": nil,
	}
}

func (r *Repo) headJSON(p *pull) map[string]any {
	switch {
	case p.ForkDeleted:
		head := r.sideJSON(cmp.Or(p.Fork, "stranger/gone"), 0, p.Branch, p.SHA)
		head["repo"] = nil
		return head
	case p.Fork != "":
		return r.sideJSON(p.Fork, r.id+7000000, p.Branch, p.SHA)
	}
	return r.sideJSON(r.fullName, r.id, p.Branch, p.SHA)
}

func (r *Repo) sideJSON(fullName string, id int64, ref, sha string) map[string]any {
	owner, name, _ := strings.Cut(fullName, "/")
	return map[string]any{
		"label": owner + ":" + ref, "ref": ref, "sha": sha, "user": r.userJSON(owner),
		"repo": map[string]any{
			"id": id, "node_id": "MDEwOlJlcG9zaXRvcnkx", "name": name, "full_name": fullName, "owner": r.userJSON(owner),
			"private": false, "fork": id != r.id, "default_branch": "main",
			"html_url":  r.github.URL + "/" + fullName,
			"clone_url": r.github.URL + "/" + fullName + ".git",
		},
	}
}

func (r *Repo) userJSON(login string) map[string]any {
	return map[string]any{
		"login": login, "id": len(login), "node_id": "MDQ6VXNlcjE=", "type": "User", "site_admin": false,
		"html_url": r.github.URL + "/" + login,
	}
}

func (r *Repo) branches() []any { return r.refsJSON("branches") }
func (r *Repo) tags() []any     { return r.refsJSON("tags") }

func (r *Repo) refsJSON(kind string) []any {
	var names []string
	for name := range r.refs[kind] {
		names = append(names, name)
	}
	slices.Sort(names)
	items := make([]any, len(names))
	for i, name := range names {
		sha := r.refs[kind][name]
		item := map[string]any{
			"name":   name,
			"commit": map[string]any{"sha": sha, "url": fmt.Sprintf("%s%s/repos/%s/commits/%s", r.github.URL, apiPrefix, r.fullName, sha)},
		}
		if kind == "branches" {
			item["protected"] = false
		} else {
			item["zipball_url"] = r.github.URL + "/zip/" + name
			item["tarball_url"] = r.github.URL + "/tar/" + name
			item["node_id"] = "MDM6UmVmMQ=="
		}
		items[i] = item
	}
	return items
}
