// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// A Bitbucket is a server of one of the two kinds with the lists of the REST API:
// Cloud, below /2.0/, or Data Center, below /rest/api/1.0/. See
// https://developer.atlassian.com/cloud/bitbucket/rest/ and
// https://developer.atlassian.com/server/bitbucket/rest/.
type Bitbucket struct {
	hosting
	// ETags makes Cloud give validators.
	ETags bool
}

// NewBitbucketCloud starts a server like bitbucket.org. Its pull requests name
// commits by twelve characters.
func NewBitbucketCloud() *Bitbucket {
	b := &Bitbucket{hosting: hosting{model: newModel()}}
	mux := http.NewServeMux()
	const repo = "/2.0/repositories/{owner}/{name}"
	mux.HandleFunc("GET "+repo+"/pullrequests", b.in(func(w http.ResponseWriter, r *http.Request, repo *Repo) {
		b.cloudPage(w, r, each(repo.open(r.URL.Query().Get("state")), repo.cloudPull))
	}))
	mux.HandleFunc("GET "+repo+"/refs/{kind}", b.in(func(w http.ResponseWriter, r *http.Request, repo *Repo) {
		kind := r.PathValue("kind")
		b.cloudPage(w, r, each(repo.names(kind), func(name string) any {
			return map[string]any{"type": strings.TrimSuffix(kind, "s"), "name": name, "target": map[string]any{"type": "commit", "hash": repo.refs[kind][name]}}
		}))
	}))
	mux.HandleFunc("GET "+repo+"/commit/{hash}", b.in(func(w http.ResponseWriter, r *http.Request, _ *Repo) {
		full := b.full(r.PathValue("owner")+"/"+r.PathValue("name"), r.PathValue("hash"))
		if full == "" {
			b.refuse(w, r, http.StatusNotFound, "Commit not found")
			return
		}
		answerJSON(w, http.StatusOK, map[string]any{"type": "commit", "hash": full})
	}))
	b.start(mux)
	return b
}

// NewBitbucketServer starts a server like Bitbucket Data Center.
func NewBitbucketServer() *Bitbucket {
	b := &Bitbucket{hosting: hosting{model: newModel()}}
	mux := http.NewServeMux()
	const repo = "/rest/api/1.0/projects/{owner}/repos/{name}"
	mux.HandleFunc("GET "+repo+"/pull-requests", b.in(func(w http.ResponseWriter, r *http.Request, repo *Repo) {
		b.serverPage(w, r, each(repo.open(r.URL.Query().Get("state")), repo.serverPull))
	}))
	for _, kind := range []string{"branches", "tags"} {
		mux.HandleFunc("GET "+repo+"/"+kind, b.in(func(w http.ResponseWriter, r *http.Request, repo *Repo) {
			b.serverPage(w, r, each(repo.names(kind), func(name string) any { return repo.serverRef(kind, name) }))
		}))
	}
	b.start(mux)
	return b
}

// in finds the repository of a request, and whether it may be seen. A fork that is
// only a pull request's source may be seen where the pull request may.
func (b *Bitbucket) in(answer func(http.ResponseWriter, *http.Request, *Repo)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b.model.mu.Lock()
		defer b.model.mu.Unlock()
		_, password, basic := r.BasicAuth()
		header := r.Header.Get("Authorization")
		repo := b.model.repos[strings.ToLower(r.PathValue("owner")+"/"+r.PathValue("name"))]
		switch token := b.model.token; {
		case token == "" || header == "Bearer "+token || (basic && password == token):
		case header == "":
			repo = nil
		default:
			b.refuse(w, r, http.StatusUnauthorized, "Token is invalid, expired, or not supported for this endpoint.")
			return
		}
		if repo == nil && r.PathValue("hash") == "" {
			b.refuse(w, r, http.StatusNotFound, "Repository not found")
			return
		}
		answer(w, r, repo)
	}
}

func (b *Bitbucket) refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	if strings.HasPrefix(r.URL.Path, "/2.0/") {
		answerJSON(w, status, map[string]any{"type": "error", "error": map[string]any{"message": message}})
		return
	}
	answerJSON(w, status, map[string]any{"errors": []any{map[string]any{"context": nil, "message": message, "exceptionName": nil}}})
}

func each[T any](items []T, tell func(T) any) []any {
	told := make([]any, len(items))
	for i, item := range items {
		told[i] = tell(item)
	}
	return told
}

// cut returns the items from a start on, at most as many as are asked for.
func (b *Bitbucket) cut(items []any, asked string, start int) ([]any, int) {
	size, err := strconv.Atoi(asked)
	if err != nil || size < 1 {
		size = 10
	}
	size = min(size, b.model.pageLimit)
	from := min(start, len(items))
	return items[from:min(from+size, len(items))], size
}

func (b *Bitbucket) cloudPage(w http.ResponseWriter, r *http.Request, items []any) {
	query := r.URL.Query()
	page := pageOf(r)
	_, size := b.cut(items, query.Get("pagelen"), 0)
	values, _ := b.cut(items, query.Get("pagelen"), (page-1)*size)
	body := map[string]any{"pagelen": size, "size": len(items), "page": page, "values": append([]any{}, values...)}
	if page*size < len(items) {
		query.Set("page", strconv.Itoa(page+1))
		body["next"] = b.URL + r.URL.Path + "?" + query.Encode()
	}
	if b.ETags {
		text, _ := json.Marshal(body)
		sum := sha256.Sum256(text)
		etag := `"` + hex.EncodeToString(sum[:]) + `"`
		w.Header().Set("Etag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	answerJSON(w, http.StatusOK, body)
}

func (b *Bitbucket) serverPage(w http.ResponseWriter, r *http.Request, items []any) {
	start, _ := strconv.Atoi(r.URL.Query().Get("start"))
	values, size := b.cut(items, r.URL.Query().Get("limit"), start)
	body := map[string]any{
		"size": len(values), "limit": size, "start": start, "isLastPage": start+len(values) >= len(items), "values": append([]any{}, values...),
	}
	if body["isLastPage"] == false {
		body["nextPageStart"] = start + len(values)
	}
	answerJSON(w, http.StatusOK, body)
}

// open returns the pull requests in a state, oldest first.
func (r *Repo) open(state string) []*pull {
	return slices.DeleteFunc(slices.Clone(r.prs), func(p *pull) bool { return p.open != (state == "OPEN") })
}

func (r *Repo) names(kind string) []string {
	var names []string
	for name := range r.refs[kind] {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (p *pull) bitbucketState() string {
	if p.open {
		return "OPEN"
	}
	return "DECLINED"
}

func (r *Repo) cloudPull(p *pull) any {
	side := func(fullName, branch, sha string) map[string]any {
		return map[string]any{
			"branch": map[string]any{"name": branch}, "commit": map[string]any{"type": "commit", "hash": sha[:min(len(sha), 12)]},
			"repository": map[string]any{"type": "repository", "full_name": fullName, "uuid": "{" + SHA(fullName) + "}"},
		}
	}
	from := r.fullName
	if p.Fork != "" {
		from = p.Fork
	}
	source := side(from, p.Branch, p.SHA)
	if p.ForkDeleted {
		source["commit"], source["repository"] = nil, nil
	}
	var author any = map[string]any{"type": "user", "nickname": p.Author, "display_name": strings.ToUpper(p.Author), "uuid": "{1}"}
	if p.Ghost {
		author = nil
	}
	return map[string]any{
		"type": "pullrequest", "id": p.number, "title": p.Title, "description": p.body, "state": p.bitbucketState(), "draft": p.Draft,
		"author": author, "source": source, "destination": side(r.fullName, p.Target, SHA(p.Target)),
		"created_on": p.created.Format("2006-01-02T15:04:05.000000-07:00"), "updated_on": p.updated.Format("2006-01-02T15:04:05.000000-07:00"),
		"links": map[string]any{"html": map[string]any{"href": fmt.Sprintf("https://bitbucket.org/%s/pull-requests/%d", r.fullName, p.number)}},
	}
}

// full finds a commit at the head of a pull request by its first characters.
func (b *Bitbucket) full(fullName, hash string) string {
	for _, repo := range b.model.repos {
		for _, p := range repo.prs {
			if (repo.fullName == fullName || p.Fork == fullName) && strings.HasPrefix(p.SHA, hash) {
				return p.SHA
			}
		}
	}
	return ""
}

func (r *Repo) serverPull(p *pull) any {
	side := func(id int64, branch, sha string) map[string]any {
		return map[string]any{
			"id": "refs/heads/" + branch, "displayId": branch, "latestCommit": sha, "type": "BRANCH",
			"repository": map[string]any{"id": id, "slug": "web", "project": map[string]any{"key": "APP"}},
		}
	}
	from := r.id
	if p.Fork != "" || p.ForkDeleted {
		from += 7000000
	}
	user := map[string]any{"name": p.Author, "slug": p.Author, "displayName": strings.ToUpper(p.Author), "type": "NORMAL"}
	if p.Ghost {
		user = map[string]any{}
	}
	return map[string]any{
		"id": p.number, "version": 1, "title": p.Title, "description": p.body, "state": p.bitbucketState(), "open": p.open, "closed": !p.open, "draft": p.Draft,
		"createdDate": p.created.UnixMilli(), "updatedDate": p.updated.UnixMilli(), "locked": false,
		"fromRef": side(from, p.Branch, p.SHA), "toRef": side(r.id, p.Target, SHA(p.Target)),
		"author": map[string]any{"user": user, "role": "AUTHOR", "approved": false, "status": "UNAPPROVED"}, "reviewers": []any{}, "participants": []any{},
	}
}

// serverRef tells of a branch, or of a tag: one whose name begins with a v is
// annotated, and hash is then the tag itself.
func (r *Repo) serverRef(kind, name string) any {
	sha := r.refs[kind][name]
	ref := map[string]any{"id": "refs/" + kind + "/" + name, "displayId": name, "latestCommit": sha, "latestChangeset": sha}
	switch {
	case kind == "branches":
		ref["id"], ref["type"], ref["isDefault"] = "refs/heads/"+name, "BRANCH", name == "main"
	case strings.HasPrefix(name, "v"):
		ref["type"], ref["hash"] = "TAG", SHA("tag "+name)
	default:
		ref["type"], ref["hash"] = "TAG", nil
	}
	return ref
}
