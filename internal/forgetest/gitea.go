// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Gitea is a Gitea server with as much of the REST API below /api/v1/ as pull
// requests, branches and tags need. See https://docs.gitea.com/api.
type Gitea struct{ hosting }

// NewGitea starts a server without repositories that lets everybody in.
func NewGitea() *Gitea {
	g := &Gitea{hosting{model: newModel()}}
	mux := http.NewServeMux()
	const repo = "/api/v1/repos/{owner}/{name}"
	mux.HandleFunc("GET "+repo+"/pulls", g.in(http.StatusOK, g.list))
	mux.HandleFunc("POST "+repo+"/pulls", g.in(http.StatusCreated, g.create))
	mux.HandleFunc("PATCH "+repo+"/pulls/{index}", g.in(http.StatusCreated, g.update))
	mux.HandleFunc("POST "+repo+"/issues/{index}/comments", g.in(http.StatusCreated, func(_ http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
		return repo.comment(r, r.PathValue("index"))
	}))
	mux.HandleFunc("POST "+repo+"/issues/{index}/labels", g.in(http.StatusOK, g.label))
	mux.HandleFunc("GET "+repo+"/labels", g.in(http.StatusOK, func(w http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
		var items []any
		for i, name := range repo.labels {
			items = append(items, labelJSON(i, name))
		}
		return g.page(w, r, items), nil
	}))
	mux.HandleFunc("POST "+repo+"/labels", g.in(http.StatusCreated, func(_ http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
		var in struct{ Name, Color string }
		if refused := decode(r, &in); refused != nil {
			return nil, refused
		}
		repo.labels = append(repo.labels, in.Name)
		return labelJSON(len(repo.labels)-1, in.Name), nil
	}))
	mux.HandleFunc("GET "+repo+"/git/commits/{sha}", g.in(http.StatusOK, g.commit))
	mux.HandleFunc("GET "+repo+"/branches", g.in(http.StatusOK, g.branches))
	mux.HandleFunc("GET "+repo+"/tags", g.in(http.StatusOK, g.tags))
	g.start(mux)
	return g
}

func labelJSON(i int, name string) map[string]any {
	return map[string]any{"id": i + 1, "name": name, "color": "ededed"}
}

func (g *Gitea) in(status int, act func(http.ResponseWriter, *http.Request, *Repo) (any, *refusal)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g.model.in(status, func(r *http.Request, repo *Repo) (any, *refusal) { return act(w, r, repo) })(w, r)
	}
}

func (g *Gitea) page(w http.ResponseWriter, r *http.Request, items []any) []any {
	page, next := g.model.cut(r, len(items))
	w.Header().Set("X-Total-Count", strconv.Itoa(len(items)))
	if next > 0 {
		query := r.URL.Query()
		query.Set("page", strconv.Itoa(next))
		link := url.URL{Path: r.URL.Path, RawQuery: query.Encode()}
		w.Header().Set("Link", fmt.Sprintf("<%s%s>; rel=\"next\"", g.URL, link.String()))
	}
	return append([]any{}, items[page[0]:page[1]]...)
}

func (g *Gitea) list(w http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
	repo.follow()
	query := r.URL.Query()
	var chosen []*pull
	for _, p := range repo.prs {
		if state := query.Get("state"); state == "all" || p.open == (state != "closed") {
			chosen = append(chosen, p)
		}
	}
	switch query.Get("sort") {
	case "oldest":
	case "recentupdate":
		slices.SortStableFunc(chosen, func(a, b *pull) int { return b.updated.Compare(a.updated) })
	default:
		slices.Reverse(chosen)
	}
	items := make([]any, len(chosen))
	for i, p := range chosen {
		items[i] = g.json(repo, p)
	}
	return g.page(w, r, items), nil
}

func (g *Gitea) json(repo *Repo, p *pull) map[string]any {
	labels := []any{}
	for _, name := range p.Labels {
		labels = append(labels, labelJSON(slices.Index(repo.labels, name), name))
	}
	state, author := "closed", p.Author
	if p.open {
		state = "open"
	}
	if p.Ghost {
		author = "Ghost"
	}
	return map[string]any{
		"id": 2000 + p.number, "number": p.number, "title": p.Title, "body": p.body, "labels": labels, "state": state,
		"merged": p.merged, "html_url": fmt.Sprintf("%s/%s/pulls/%d", g.URL, repo.fullName, p.number), "draft": p.Draft,
		"user":       map[string]any{"id": len(author), "login": author, "full_name": "", "email": author + "@noreply.example"},
		"head":       g.head(repo, p),
		"base":       map[string]any{"label": p.Target, "ref": p.Target, "sha": SHA(p.Target), "repo_id": repo.id},
		"created_at": p.created.Format(time.RFC3339), "updated_at": p.updated.Format(time.RFC3339),
	}
}

func (g *Gitea) create(_ http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
	var in struct{ Title, Body, Head, Base string }
	if refused := decode(r, &in); refused != nil {
		return nil, refused
	}
	p, refused := repo.create(PR{Title: in.Title, Branch: in.Head, Target: in.Base}, in.Body)
	if refused != nil {
		return nil, refused
	}
	return g.json(repo, p), nil
}

func (g *Gitea) update(_ http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
	var in struct {
		Title string
		Body  *string
		State *string
	}
	if refused := decode(r, &in); refused != nil {
		return nil, refused
	}
	p, refused := repo.find(r.PathValue("index"))
	if refused != nil {
		return nil, refused
	}
	p.edit(repo, &in.Title, in.Body)
	if in.State != nil {
		p.open = *in.State == "open"
	}
	return g.json(repo, p), nil
}

func (g *Gitea) label(_ http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
	var in struct{ Labels []int }
	if refused := decode(r, &in); refused != nil {
		return nil, refused
	}
	p, refused := repo.find(r.PathValue("index"))
	if refused != nil {
		return nil, refused
	}
	for _, id := range in.Labels {
		if id < 1 || id > len(repo.labels) {
			return nil, &refusal{http.StatusUnprocessableEntity, "label does not exist"}
		}
		p.label(repo, repo.labels[id-1])
	}
	return g.json(repo, p)["labels"], nil
}

func (g *Gitea) commit(_ http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
	c, refused := repo.commit(r.PathValue("sha"))
	if refused != nil {
		return nil, refused
	}
	parents := []any{}
	for _, parent := range c.parents {
		parents = append(parents, map[string]any{"sha": parent, "url": ""})
	}
	user := func(who [2]string) map[string]any {
		return map[string]any{"name": who[0], "email": who[1], "date": c.date}
	}
	return map[string]any{
		"sha": c.hash, "url": "", "html_url": "", "parents": parents,
		"commit": map[string]any{
			"url": "", "message": strings.TrimSpace(c.message) + "\n", "tree": map[string]any{"sha": c.tree, "url": ""},
			"author": user(c.author), "committer": user(c.committer),
		},
	}, nil
}
