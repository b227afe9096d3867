// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// requests adds what pull requests are written with. See
// https://docs.github.com/rest/pulls and https://docs.github.com/rest/issues.
func (g *GitHub) requests(mux *http.ServeMux) {
	const repo = apiPrefix + "/repos/{owner}/{name}"
	mux.HandleFunc("POST "+repo+"/pulls", g.in(http.StatusCreated, func(r *http.Request, repo *Repo) (any, *refusal) {
		var in struct{ Title, Body, Head, Base string }
		if refused := decode(r, &in); refused != nil {
			return nil, refused
		}
		p, refused := repo.create(PR{Title: in.Title, Branch: strings.TrimPrefix(in.Head, repo.owner()+":"), Target: in.Base}, in.Body)
		if refused != nil {
			return nil, &refusal{http.StatusUnprocessableEntity, "Validation Failed"}
		}
		return repo.pullJSON(p), nil
	}))
	mux.HandleFunc("PATCH "+repo+"/pulls/{number}", g.in(http.StatusOK, func(r *http.Request, repo *Repo) (any, *refusal) {
		var in struct{ Title, Body, State *string }
		if refused := decode(r, &in); refused != nil {
			return nil, refused
		}
		p, refused := repo.find(r.PathValue("number"))
		if refused != nil {
			return nil, refused
		}
		p.edit(repo, in.Title, in.Body)
		if in.State != nil {
			p.open = *in.State == "open"
		}
		return repo.pullJSON(p), nil
	}))
	mux.HandleFunc("POST "+repo+"/issues/{number}/comments", g.in(http.StatusCreated, func(r *http.Request, repo *Repo) (any, *refusal) {
		return repo.comment(r, r.PathValue("number"))
	}))
	mux.HandleFunc("POST "+repo+"/issues/{number}/labels", g.in(http.StatusOK, func(r *http.Request, repo *Repo) (any, *refusal) {
		var names []string // an object with "labels" is the other form that GitHub takes
		if refused := decode(r, &names); refused != nil {
			return nil, refused
		}
		p, refused := repo.find(r.PathValue("number"))
		if refused != nil {
			return nil, refused
		}
		p.label(repo, names...)
		return repo.pullJSON(p)["labels"], nil
	}))
	mux.HandleFunc("GET "+repo+"/git/commits/{sha}", g.in(http.StatusOK, func(r *http.Request, repo *Repo) (any, *refusal) {
		c, refused := repo.commit(r.PathValue("sha"))
		if refused != nil {
			return nil, refused
		}
		parents := []any{}
		for _, parent := range c.parents {
			parents = append(parents, map[string]any{"sha": parent})
		}
		return map[string]any{
			"sha": c.hash, "message": strings.TrimSuffix(c.message, "\n"), "tree": map[string]any{"sha": c.tree}, "parents": parents,
			"author":    map[string]any{"name": c.author[0], "email": c.author[1], "date": c.date},
			"committer": map[string]any{"name": c.committer[0], "email": c.committer[1], "date": c.date},
		}, nil
	}))
}

// in finds the repository of a request and answers with JSON.
func (g *GitHub) in(status int, act func(*http.Request, *Repo) (any, *refusal)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		repo := g.repos[strings.ToLower(r.PathValue("owner")+"/"+r.PathValue("name"))]
		switch allowed := g.allowed(r); {
		case allowed == http.StatusUnauthorized:
			Status(allowed, "Bad credentials")(w, r, nil)
			return
		case allowed != http.StatusOK || repo == nil:
			Status(http.StatusNotFound, "Not Found")(w, r, nil)
			return
		}
		answer, refused := act(r, repo)
		if refused != nil {
			refused.serve(w, r)
			return
		}
		answerJSON(w, status, answer)
	}
}

func (r *Repo) comment(req *http.Request, number string) (any, *refusal) {
	var in struct{ Body string }
	if refused := decode(req, &in); refused != nil {
		return nil, refused
	}
	p, refused := r.find(number)
	if refused != nil {
		return nil, refused
	}
	p.comments = append(p.comments, in.Body)
	p.updated = r.github.tick()
	return map[string]any{"id": len(p.comments), "body": in.Body}, nil
}

func decode(r *http.Request, into any) *refusal {
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<20)).Decode(into); err != nil {
		return &refusal{http.StatusBadRequest, "Problems parsing JSON"}
	}
	return nil
}

func answerJSON(w http.ResponseWriter, status int, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
