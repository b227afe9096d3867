// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

type environment struct {
	id          int
	name, state string
}

type deployment struct {
	id                    int
	environment           *environment
	ref, sha, status, who string
}

// Environment makes an environment, or changes its state: available, stopping, stopped.
func (r *Repo) Environment(name, state string) {
	r.github.mu.Lock()
	defer r.github.mu.Unlock()
	r.environment(name).state = state
}

func (r *Repo) environment(name string) *environment {
	for _, env := range r.places {
		if env.name == name {
			return env
		}
	}
	r.last++
	env := &environment{id: r.last, name: name, state: "available"}
	r.places = append(r.places, env)
	return env
}

// Deploy begins a deployment to an environment, and returns its number.
func (r *Repo) Deploy(environment, sha, status string) int {
	r.github.mu.Lock()
	defer r.github.mu.Unlock()
	r.last++
	ref := "feat/" + environment[strings.LastIndex(environment, "/")+1:]
	d := &deployment{id: r.last, environment: r.environment(environment), ref: ref, sha: sha, status: status, who: "deployer"}
	r.deploys = append(r.deploys, d)
	return d.id
}

// Deployed gives a deployment another status.
func (r *Repo) Deployed(id int, status string) {
	r.github.mu.Lock()
	defer r.github.mu.Unlock()
	for _, d := range r.deploys {
		if d.id == id {
			d.status = status
		}
	}
}

// Lock marks a merge request as being merged just now, or not any more.
func (r *Repo) Lock(number int, locked bool) { r.change(number, func(p *pull) { p.locked = locked }) }

// NotModified counts the answers with status 304.
func (h *hosting) NotModified() int { return h.model.NotModified() }

// conditionally answers with a validator, or only that it is the known one.
func (g *GitLab) conditionally(w http.ResponseWriter, r *http.Request, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	sum := sha256.Sum256(append(body, w.Header().Get("Link")...))
	etag := `W/"` + hex.EncodeToString(sum[:16]) + `"`
	w.Header().Set("Etag", etag)
	if r.Header.Get("If-None-Match") == etag {
		g.model.conditions++
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// page is a part of a list, told by its number. Addresses begin with the name that
// the server is configured with.
func (g *GitLab) page(w http.ResponseWriter, r *http.Request, items []any) []any {
	part, next := g.model.cut(r, len(items))
	w.Header().Set("X-Page", strconv.Itoa(pageOf(r)))
	w.Header().Set("X-Next-Page", "")
	w.Header().Set("X-Total", strconv.Itoa(len(items)))
	query := r.URL.Query()
	query.Set("page", "1")
	links := []string{g.link(r, query, "first")}
	if next > 0 {
		w.Header().Set("X-Next-Page", strconv.Itoa(next))
		query.Set("page", strconv.Itoa(next))
		links = append([]string{g.link(r, query, "next")}, links...)
	}
	w.Header().Set("Link", strings.Join(links, ", "))
	return append([]any{}, items[part[0]:part[1]]...)
}

func (g *GitLab) link(r *http.Request, query url.Values, rel string) string {
	return fmt.Sprintf("<https://gitlab.example.com%s?%s>; rel=%q", r.URL.EscapedPath(), query.Encode(), rel)
}

// refs lists branches or tags by name: from the one after a token, or by pages.
func (g *GitLab) refs(kind string) func(http.ResponseWriter, *http.Request, *Repo) (any, *refusal) {
	return func(w http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
		names := slices.Sorted(maps.Keys(repo.refs[kind]))
		query := r.URL.Query()
		if kind == "branches" && query.Has("sort") && !strings.Contains(query.Get("sort"), "_") {
			return nil, &refusal{http.StatusBadRequest, "sort does not have a valid value"}
		}
		if query.Get("pagination") != "keyset" {
			items := make([]any, len(names))
			for i, name := range names {
				items[i] = refJSON(name, repo.refs[kind][name])
			}
			return g.page(w, r, items), nil
		}
		size, err := strconv.Atoi(query.Get("per_page"))
		if err != nil {
			size = 20
		}
		if token := query.Get("page_token"); token != "" {
			at, ok := slices.BinarySearch(names, token)
			if !ok {
				return nil, &refusal{http.StatusBadRequest, "could not find page token"}
			}
			names = names[at+1:]
		}
		size = min(size, g.model.pageLimit)
		if len(names) >= size { // a full last page names an empty one
			names = names[:size]
			query.Set("page_token", names[size-1])
			w.Header().Set("Link", g.link(r, query, "next"))
		}
		items := []any{}
		for _, name := range names {
			items = append(items, refJSON(name, repo.refs[kind][name]))
		}
		return items, nil
	}
}

// refJSON has a commit with a trailer; none for a tag of something else.
func refJSON(name, sha string) map[string]any {
	ref := map[string]any{"name": name, "protected": false, "target": sha, "commit": nil}
	if sha != "none" {
		ref["commit"] = map[string]any{
			"id": sha, "short_id": sha[:min(8, len(sha))], "title": "Change", "created_at": "2026-01-05T09:00:00.000Z", "parent_ids": []any{},
			"trailers": map[string]any{"Cc": "a"}, "extended_trailers": map[string]any{"Cc": []any{"a", "b"}},
		}
	}
	return ref
}

func (g *GitLab) environments(w http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
	var items []any
	for _, env := range repo.places {
		items = append(items, env.json())
	}
	return g.page(w, r, items), nil
}

func (env *environment) json() map[string]any {
	var external any
	if env.name != "none" {
		external = "https://" + env.slug() + ".example.com"
	}
	return map[string]any{
		"id": env.id, "name": env.name, "slug": env.slug(), "external_url": external, "state": env.state, "tier": "development",
		"created_at": "2026-01-05T09:00:00.000Z", "updated_at": "2026-01-05T09:00:00.000Z", "auto_stop_at": nil, "description": nil,
		"cluster_agent": nil, "kubernetes_namespace": nil, "flux_resource_path": nil,
	}
}

func (env *environment) slug() string { return strings.ReplaceAll(env.name, "/", "-") + "-x1" }

func (g *GitLab) deployments(w http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
	query := r.URL.Query()
	var items []any
	for _, d := range repo.deploys {
		if name := query.Get("environment"); name != "" && name != d.environment.name {
			continue
		}
		if status := query.Get("status"); status != "" && status != d.status {
			continue
		}
		items = append(items, map[string]any{
			"id": d.id, "iid": d.id, "ref": d.ref, "sha": d.sha, "status": d.status, "environment": d.environment.json(),
			"created_at": "2026-01-05T09:00:00.000Z", "updated_at": "2026-01-05T09:00:00.000Z",
			"user":       map[string]any{"id": 1, "username": d.who, "name": d.who, "state": "active"},
			"deployable": map[string]any{"id": d.id, "status": d.status, "name": "deploy", "coverage": nil, "commit": refJSON("x", d.sha)["commit"]},
		})
	}
	if query.Get("sort") == "desc" {
		slices.Reverse(items)
	}
	return g.page(w, r, items), nil
}
