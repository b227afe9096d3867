// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
)

// FromPush is a PR.Fork: the pull request was made by a push to refs/for/main, so
// its commit is in the repository, and on no branch of it.
const FromPush = "refs/for"

// head is how Gitea tells where a pull request comes from. Without a branch or
// repository, what is left is the reference that the server keeps.
func (g *Gitea) head(repo *Repo, p *pull) map[string]any {
	kept := fmt.Sprintf("refs/pull/%d/head", p.number)
	head := map[string]any{
		"label": p.Branch, "ref": p.Branch, "sha": p.SHA, "repo_id": repo.id,
		"repo": map[string]any{"id": repo.id, "full_name": repo.fullName},
	}
	switch {
	case p.Fork == FromPush:
		head["label"], head["ref"] = "", kept
	case p.ForkDeleted:
		head["ref"], head["repo_id"], head["repo"] = kept, -1, nil
	case p.Fork != "":
		head["repo_id"] = repo.id + 7000000
		head["repo"] = map[string]any{"id": repo.id + 7000000, "full_name": p.Fork}
	case p.made && repo.head(p.Branch) == "":
		head["ref"] = kept
	}
	return head
}

// branches has Link headers, and a body of null where there is no commit at all.
func (g *Gitea) branches(w http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
	names := slices.Sorted(maps.Keys(repo.refs["branches"]))
	if len(names) == 0 {
		w.Header().Set("X-Total-Count", "0")
		return nil, nil
	}
	items := make([]any, len(names))
	for i, name := range names {
		items[i] = map[string]any{
			"name": name, "protected": false, "required_approvals": 0, "enable_status_check": false, "status_check_contexts": []any{},
			"commit": map[string]any{"id": repo.refs["branches"][name], "message": "Change\n", "timestamp": "2026-01-05T09:00:00Z"},
		}
	}
	return g.page(w, r, items), nil
}

// tags has the number of all tags, and no Link headers.
func (g *Gitea) tags(w http.ResponseWriter, r *http.Request, repo *Repo) (any, *refusal) {
	var items []any
	for _, name := range slices.Sorted(maps.Keys(repo.refs["tags"])) {
		sha := repo.refs["tags"][name]
		items = append(items, map[string]any{
			"name": name, "message": "Change", "id": SHA("tag " + name),
			"commit":      map[string]any{"sha": sha, "url": g.URL + "/api/v1/repos/" + repo.fullName + "/git/commits/" + sha, "created": "2026-01-05T09:00:00Z"},
			"zipball_url": "", "tarball_url": "",
		})
	}
	page, _ := g.model.cut(r, len(items))
	w.Header().Set("X-Total-Count", strconv.Itoa(len(items)))
	return append([]any{}, items[page[0]:page[1]]...), nil
}
