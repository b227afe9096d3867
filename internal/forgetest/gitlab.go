// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A hosting is what the servers beside GitHub have in common: the same repositories,
// told in another way.
type hosting struct {
	*httptest.Server
	front
	model *GitHub
}

func (h *hosting) start(mux *http.ServeMux) {
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { Status(http.StatusNotFound, "404 Not Found")(w, r, nil) })
	h.next = mux
	h.Server = httptest.NewServer(&h.front)
	h.model.Server = h.Server // for addresses
}

// Repo returns the repository of that path, made when asked for the first time.
func (h *hosting) Repo(fullName string) *Repo { return h.model.Repo(fullName) }

// RequireToken makes the server refuse requests without this token.
func (h *hosting) RequireToken(token string) { h.model.RequireToken(token) }

// LimitPages makes pages at most this long.
func (h *hosting) LimitPages(limit int) { h.model.LimitPages(limit) }

// A GitLab is a GitLab server with as much of the REST API below /api/v4/ as merge
// requests, branches, tags, environments and deployments need. See
// https://docs.gitlab.com/api/rest/.
type GitLab struct{ hosting }

// NewGitLab starts a server without projects that lets everybody in.
func NewGitLab() *GitLab {
	g := &GitLab{hosting{model: newModel()}}
	mux := http.NewServeMux()
	const project = "/api/v4/projects/{project}"
	mux.HandleFunc("GET "+project+"/merge_requests", g.in(http.StatusOK, g.list))
	mux.HandleFunc("POST "+project+"/merge_requests", g.in(http.StatusCreated, g.create))
	mux.HandleFunc("PUT "+project+"/merge_requests/{iid}", g.in(http.StatusOK, g.update))
	mux.HandleFunc("POST "+project+"/merge_requests/{iid}/notes", g.in(http.StatusCreated, func(_ http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
		return repo.comment(r, r.PathValue("iid"))
	}))
	mux.HandleFunc("GET "+project+"/repository/commits/{sha}", g.in(http.StatusOK, func(_ http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
		c, refused := repo.commit(r.PathValue("sha"))
		if refused != nil {
			return nil, refused
		}
		title, _, _ := strings.Cut(c.message, "\n")
		return map[string]any{
			"id": c.hash, "short_id": c.hash[:8], "title": title, "message": c.message, "parent_ids": c.parents,
			"author_name": c.author[0], "author_email": c.author[1], "authored_date": c.date,
			"committer_name": c.committer[0], "committer_email": c.committer[1], "committed_date": c.date,
		}, nil
	}))
	for path, list := range map[string]func(http.ResponseWriter, *http.Request, *Repo) (any, *refusal){
		"repository/branches": g.refs("branches"), "repository/tags": g.refs("tags"),
		"environments": g.environments, "deployments": g.deployments,
	} {
		mux.HandleFunc("GET "+project+"/"+path, g.in(http.StatusOK, list))
	}
	g.start(mux)
	return g
}

func (g *GitLab) in(status int, act func(http.ResponseWriter, *http.Request, *Repo) (any, *refusal)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g.model.mu.Lock()
		defer g.model.mu.Unlock()
		repo := g.model.repos[strings.ToLower(r.PathValue("project"))]
		switch allowed := g.model.allowed(r); {
		case allowed == http.StatusUnauthorized:
			Status(allowed, "401 Unauthorized")(w, r, nil)
			return
		case allowed != http.StatusOK || repo == nil:
			Status(http.StatusNotFound, "404 Project Not Found")(w, r, nil)
			return
		}
		answer, refused := act(w, r, repo)
		if refused != nil {
			refused.serve(w, r)
			return
		}
		if r.Method == http.MethodGet {
			g.conditionally(w, r, answer)
			return
		}
		answerJSON(w, status, answer)
	}
}

func (g *GitLab) list(w http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
	repo.follow()
	query := r.URL.Query()
	var items []any
	for _, p := range repo.prs {
		state := query.Get("state")
		if state != "" && state != "all" && state != gitlabState(p) {
			continue
		}
		if from := query.Get("source_branch"); from != "" && from != p.Branch {
			continue
		}
		if to := query.Get("target_branch"); to != "" && to != p.Target {
			continue
		}
		items = append(items, g.json(repo, p))
	}
	if query.Get("sort") != "asc" {
		slices.Reverse(items)
	}
	return g.page(w, r, items), nil
}

// cut is the part of a list that a page has, and the next page; 0 if there is none.
func (g *GitHub) cut(r *http.Request, n int) (part [2]int, next int) {
	size := 0
	for _, name := range []string{"per_page", "limit"} {
		if v, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil && v > 0 {
			size = v
		}
	}
	if size == 0 {
		size = 20
	}
	size = min(size, g.pageLimit)
	page := pageOf(r)
	if page*size < n {
		next = page + 1
	}
	return [2]int{min((page-1)*size, n), min(page*size, n)}, next
}

func gitlabState(p *pull) string {
	if p.locked {
		return "locked"
	}
	if p.state() == "open" {
		return "opened"
	}
	return p.state()
}

func (g *GitLab) json(repo *Repo, p *pull) map[string]any {
	var source any = repo.id
	switch {
	case p.ForkDeleted:
		source = nil
	case p.Fork != "":
		source = repo.id + 7000000
	}
	author := p.Author
	if p.Ghost {
		author = "ghost"
	}
	return map[string]any{
		"id": 1000 + p.number, "iid": p.number, "project_id": repo.id, "title": p.Title, "description": p.body, "state": gitlabState(p),
		"source_branch": p.Branch, "target_branch": p.Target, "source_project_id": source, "target_project_id": repo.id,
		"labels": append([]string{}, p.Labels...), "sha": p.SHA, "draft": p.Draft,
		"author":     map[string]any{"id": len(author), "username": author, "name": author, "state": "active"},
		"created_at": p.created.Format(time.RFC3339), "updated_at": p.updated.Format(time.RFC3339),
		"web_url": fmt.Sprintf("%s/%s/-/merge_requests/%d", g.URL, repo.fullName, p.number),
	}
}

func (g *GitLab) create(_ http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
	var in struct {
		Title, Description, Labels string
		SourceBranch               string `json:"source_branch"`
		TargetBranch               string `json:"target_branch"`
	}
	if refused := decode(r, &in); refused != nil {
		return nil, refused
	}
	p, refused := repo.create(PR{Title: in.Title, Branch: in.SourceBranch, Target: in.TargetBranch}, in.Description)
	if refused != nil {
		return nil, refused
	}
	if in.Labels != "" {
		p.label(repo, strings.Split(in.Labels, ",")...)
	}
	return g.json(repo, p), nil
}

func (g *GitLab) update(_ http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
	var in struct {
		Title, Description *string
		AddLabels          string `json:"add_labels"`
		StateEvent         string `json:"state_event"`
	}
	if refused := decode(r, &in); refused != nil {
		return nil, refused
	}
	p, refused := repo.find(r.PathValue("iid"))
	if refused != nil {
		return nil, refused
	}
	p.edit(repo, in.Title, in.Description)
	if in.AddLabels != "" {
		p.label(repo, strings.Split(in.AddLabels, ",")...)
	}
	if in.StateEvent == "close" {
		p.open = false
	}
	return g.json(repo, p), nil
}
