// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Ways in which a Registry asks for a credential.
const (
	Basic  = "Basic"
	Bearer = "Bearer" // by way of its token service, at /token
)

// A Registry speaks the part of the OCI distribution API that lists tags and tells
// what they point to, with pages, ETags and a token service.
type Registry struct {
	*httptest.Server
	front
	mu        sync.Mutex
	repos     map[string]map[string]string // tag → digest
	pageLimit int
	scheme    string
	username  string
	password  string
	refresh   string // the refresh token that is good as well
	issued    int
	scopes    []string // that the token service was asked for
	hide      bool
	exchanges map[string]http.HandlerFunc
}

// NewRegistry starts a registry without repositories that lets everybody in.
func NewRegistry() *Registry {
	r := newRegistry()
	r.Server = httptest.NewServer(&r.front)
	return r
}

func newRegistry() *Registry {
	r := &Registry{repos: map[string]map[string]string{}, pageLimit: 1000, exchanges: map[string]http.HandlerFunc{}}
	r.next = http.HandlerFunc(r.serve)
	return r
}

// Ref is how a definition names a repository of this registry.
func (r *Registry) Ref(repo string) string {
	return "oci://" + strings.TrimPrefix(r.URL, "http://") + "/" + repo
}

// SetTag points a tag to a digest.
func (r *Registry) SetTag(repo, tag, digest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.repos[repo] == nil {
		r.repos[repo] = map[string]string{}
	}
	r.repos[repo][tag] = digest
}

// DeleteTag removes a tag; the repository stays.
func (r *Registry) DeleteTag(repo, tag string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.repos[repo], tag)
}

// Create makes a repository without tags.
func (r *Registry) Create(repo string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.repos[repo] = map[string]string{}
}

// RequireLogin lets nobody in without a user and password.
func (r *Registry) RequireLogin(scheme, username, password string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scheme, r.username, r.password = scheme, username, password
}

// AcceptRefreshToken makes the token service take a refresh token (OAuth 2).
func (r *Registry) AcceptRefreshToken(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refresh = token
}

// LimitPages makes pages at most this long, whatever a client asks for.
func (r *Registry) LimitPages(limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pageLimit = limit
}

// HideDigests leaves the digest out of answers about manifests, as some do.
func (r *Registry) HideDigests() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hide = true
}

// Expire makes all tokens worthless that were given out.
func (r *Registry) Expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.issued++
}

// Scopes are what the token service was asked for.
func (r *Registry) Scopes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.scopes)
}

// Handle adds an endpoint of one cloud's registry.
func (r *Registry) Handle(path string, handler http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exchanges[path] = handler
}

func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if handler, ok := r.exchanges[req.URL.Path]; ok {
		handler(w, req)
		return
	}
	if req.URL.Path == "/token" {
		r.issue(w, req)
		return
	}
	path, ok := strings.CutPrefix(req.URL.Path, "/v2/")
	if !ok {
		refuse(w, http.StatusNotFound, "NAME_UNKNOWN", "page not found")
		return
	}
	if !r.allowed(req) {
		w.Header().Set("Www-Authenticate", r.challenge(req))
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
		return
	}
	if repo, ok := strings.CutSuffix(path, "/tags/list"); ok {
		r.list(w, req, repo)
		return
	}
	repo, tag, _ := strings.Cut(path, "/manifests/")
	r.manifest(w, req, repo, tag)
}

func (r *Registry) bearer() string { return fmt.Sprintf("token-%d-of-the-registry", r.issued) }

func (r *Registry) allowed(req *http.Request) bool {
	username, password, _ := req.BasicAuth()
	switch r.scheme {
	case Basic:
		return username == r.username && password == r.password
	case Bearer:
		return req.Header.Get("Authorization") == "Bearer "+r.bearer()
	}
	return true
}

func (r *Registry) challenge(req *http.Request) string {
	if r.scheme == Basic {
		return `Basic realm="registry, of a test",service="registry"`
	}
	repo := strings.TrimPrefix(req.URL.Path, "/v2/")
	repo, _, _ = strings.Cut(strings.TrimSuffix(repo, "/tags/list"), "/manifests/")
	return fmt.Sprintf(`Bearer realm="http://%s/token",service="registry",scope="repository:%s:pull"`, req.Host, repo)
}

// issue is the token service. The credential is checked for everybody: what may be
// pulled by anybody is in a registry that has no users at all.
func (r *Registry) issue(w http.ResponseWriter, req *http.Request) {
	username, password, _ := req.BasicAuth()
	_ = req.ParseForm() // a broken one has no values
	r.scopes = append(r.scopes, req.Form["scope"]...)
	refreshed := r.refresh != "" && req.Method == http.MethodPost && req.PostForm.Get("refresh_token") == r.refresh
	if !refreshed && (username != r.username || password != r.password) {
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "incorrect username or password")
		return
	}
	field := "token"
	if refreshed {
		field = "access_token"
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{field: r.bearer(), "expires_in": 300})
}

func (r *Registry) list(w http.ResponseWriter, req *http.Request, repo string) {
	tags, ok := r.repos[repo]
	if !ok {
		refuse(w, http.StatusNotFound, "NAME_UNKNOWN", "repository name not known to registry")
		return
	}
	size, _ := strconv.Atoi(req.URL.Query().Get("n"))
	size = min(cmp.Or(size, 100), r.pageLimit)
	page, names := pageOf(req), slices.Sorted(maps.Keys(tags))
	from, to := min((page-1)*size, len(names)), min(page*size, len(names))
	if to < len(names) {
		w.Header().Set("Link", fmt.Sprintf(`</v2/%s/tags/list?page=%d&next_page=gAAA%%3D&n=%d>; rel="next"`, repo, page+1, size))
	}
	body, err := json.Marshal(map[string]any{"name": repo, "tags": append([]string{}, names[from:to]...)})
	if err != nil {
		refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	_, _ = w.Write(body)
}

func (r *Registry) manifest(w http.ResponseWriter, req *http.Request, repo, tag string) {
	digest, ok := r.repos[repo][tag]
	if !ok {
		refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "manifest unknown")
		return
	}
	const kind = "application/vnd.oci.image.index.v1+json"
	if !strings.Contains(req.Header.Get("Accept"), kind) {
		refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN", "OCI index found, but accept header does not support OCI indexes")
		return
	}
	w.Header().Set("Content-Type", kind)
	if !r.hide {
		w.Header().Set("Docker-Content-Digest", digest)
	}
	_, _ = fmt.Fprintf(w, `{"schemaVersion":2,"mediaType":%q,"manifests":[]}`, kind)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]any{"code": code, "message": message}}})
}
