// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// apiPrefix is where GitHub Enterprise Server has its REST API.
const apiPrefix = "/api/v3"

// epoch is when the first thing on a server was made; every later one a minute after.
var epoch = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)

// A GitHub is a GitHub Enterprise Server with the REST API below /api/v3/:
// repositories with pull requests, branches and tags, paged with Link headers,
// with ETags and rate-limit headers, and the token calls of GitHub Apps.
type GitHub struct {
	*httptest.Server
	front
	mu         sync.Mutex
	token      string // wanted, if set
	pageLimit  int
	repos      map[string]*Repo
	apps       map[string]*App
	lastID     int64
	events     int
	remaining  int
	conditions int
}

// NewGitHub starts a server without repositories that lets everybody in.
func NewGitHub() *GitHub {
	g := newModel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+apiPrefix+"/repos/{owner}/{name}/{list}", g.byName)
	mux.HandleFunc("GET "+apiPrefix+"/repositories/{id}/{list}", g.byID)
	mux.HandleFunc("GET "+apiPrefix+"/orgs/{owner}/installation", g.installation)
	mux.HandleFunc("GET "+apiPrefix+"/users/{owner}/installation", g.installation)
	mux.HandleFunc("POST "+apiPrefix+"/app/installations/{id}/access_tokens", g.mint)
	g.requests(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		Status(http.StatusNotFound, "Not Found")(w, r, nil)
	})
	g.next = mux
	g.Server = httptest.NewServer(&g.front)
	return g
}

func newModel() *GitHub {
	return &GitHub{pageLimit: 100, repos: map[string]*Repo{}, apps: map[string]*App{}, remaining: 5000}
}

// RequireToken makes the server refuse requests without this token. It sees
// requests with a token that it does not know as those of a stranger: 401, and
// those without any as 404, as for a private repository.
func (g *GitHub) RequireToken(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.token = token
}

// LimitPages makes pages at most this long, whatever a client asks for.
func (g *GitHub) LimitPages(limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pageLimit = limit
}

// NotModified counts the answers with status 304, which cost no rate limit.
func (g *GitHub) NotModified() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conditions
}

// Spent counts what was taken from the rate limit.
func (g *GitHub) Spent() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return 5000 - g.remaining
}

// Repo returns the repository "owner/name", made when asked for the first time.
func (g *GitHub) Repo(fullName string) *Repo {
	g.mu.Lock()
	defer g.mu.Unlock()
	if repo, ok := g.repos[strings.ToLower(fullName)]; ok {
		return repo
	}
	g.lastID++
	repo := &Repo{github: g, id: 100000 + g.lastID, fullName: fullName}
	g.repos[strings.ToLower(fullName)] = repo
	return repo
}

// tick returns the server's time, which goes on by a minute with each event.
func (g *GitHub) tick() time.Time {
	g.events++
	return epoch.Add(time.Duration(g.events) * time.Minute)
}

func (g *GitHub) byName(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list(w, r, g.repos[strings.ToLower(r.PathValue("owner")+"/"+r.PathValue("name"))])
}

func (g *GitHub) byID(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, repo := range g.repos {
		if strconv.FormatInt(repo.id, 10) == r.PathValue("id") {
			g.list(w, r, repo)
			return
		}
	}
	g.list(w, r, nil)
}

func (g *GitHub) list(w http.ResponseWriter, r *http.Request, repo *Repo) {
	switch g.allowed(r) {
	case http.StatusUnauthorized:
		Status(http.StatusUnauthorized, "Bad credentials")(w, r, nil)
		return
	case http.StatusNotFound:
		repo = nil
	}
	var items []any
	switch {
	case repo == nil:
	case r.PathValue("list") == "pulls":
		items = repo.pulls(r.URL.Query())
	case r.PathValue("list") == "branches":
		items = repo.branches()
	case r.PathValue("list") == "tags":
		items = repo.tags()
	default:
		repo = nil
	}
	if repo == nil {
		Status(http.StatusNotFound, "Not Found")(w, r, nil)
		return
	}
	g.page(w, r, repo, items)
}

func (g *GitHub) allowed(r *http.Request) int {
	header := r.Header.Get("Authorization")
	token := strings.TrimPrefix(strings.TrimPrefix(header, "Bearer "), "token ")
	if _, password, ok := r.BasicAuth(); ok {
		token = password // all forges take a token for it
	} else if job := r.Header.Get("Job-Token"); job != "" { // of GitLab alone
		header, token = job, job
	}
	switch {
	case g.token == "" && len(g.apps) == 0:
		return http.StatusOK
	case header == "":
		return http.StatusNotFound
	case g.token != "" && token == g.token:
		return http.StatusOK
	}
	for _, app := range g.apps {
		if app.valid[token] {
			return http.StatusOK
		}
	}
	return http.StatusUnauthorized
}

// page answers with one page of items, its neighbours, and an ETag.
func (g *GitHub) page(w http.ResponseWriter, r *http.Request, repo *Repo, items []any) {
	size, err := strconv.Atoi(r.URL.Query().Get("per_page"))
	if err != nil || size < 1 {
		size = 30
	}
	size = min(size, g.pageLimit)
	page, last := pageOf(r), max(1, (len(items)+size-1)/size)
	from, to := min((page-1)*size, len(items)), min(page*size, len(items))
	body, err := json.Marshal(append([]any{}, items[from:to]...))
	if err != nil {
		Status(http.StatusInternalServerError, err.Error())(w, r, nil)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Github-Media-Type", "github.v3; format=json")
	if links := g.links(r, repo, page, last); links != "" {
		w.Header().Set("Link", links)
	}
	sum := sha256.Sum256(append(body, w.Header().Get("Link")...))
	etag := `W/"` + hex.EncodeToString(sum[:]) + `"`
	w.Header().Set("Etag", etag)
	unchanged := r.Header.Get("If-None-Match") == etag
	if unchanged {
		g.conditions++
	} else {
		g.remaining--
	}
	w.Header().Set("X-Ratelimit-Limit", "5000")
	w.Header().Set("X-Ratelimit-Remaining", strconv.Itoa(g.remaining))
	w.Header().Set("X-Ratelimit-Used", strconv.Itoa(5000-g.remaining))
	w.Header().Set("X-Ratelimit-Reset", strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10))
	w.Header().Set("X-Ratelimit-Resource", "core")
	if unchanged {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(body)
}

// links are what GitHub puts into Link: addresses by the repository's number.
func (g *GitHub) links(r *http.Request, repo *Repo, page, last int) string {
	var links []string
	add := func(rel string, to int) {
		query := r.URL.Query()
		query.Set("page", strconv.Itoa(to))
		u := url.URL{Path: fmt.Sprintf("%s/repositories/%d/%s", apiPrefix, repo.id, r.PathValue("list")), RawQuery: query.Encode()}
		links = append(links, fmt.Sprintf("<%s%s>; rel=%q", g.URL, u.String(), rel))
	}
	if page > 1 {
		add("prev", page-1)
	}
	if page < last {
		add("next", page+1)
		add("last", last)
	}
	if page > 1 {
		add("first", 1)
	}
	return strings.Join(links, ", ")
}
