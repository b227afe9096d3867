// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// A Git is a server that tells what branches and tags its one repository has, by
// the smart HTTP protocol, and gives no objects away.
type Git struct {
	*httptest.Server
	front
	mu       sync.Mutex
	refs     map[string]plumbing.Hash
	peeled   map[string]plumbing.Hash
	username string
	password string
}

// NewGit starts a server whose repository is empty and lets everybody in.
func NewGit() *Git {
	g := &Git{refs: map[string]plumbing.Hash{}, peeled: map[string]plumbing.Hash{}}
	g.next = http.HandlerFunc(g.advertise)
	g.Server = httptest.NewServer(&g.front)
	return g
}

// SetRef points a ref to a commit; the commit that an annotated tag is about may be
// empty.
func (g *Git) SetRef(name, hash, peeled string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refs[name] = plumbing.NewHash(hash)
	if peeled != "" {
		g.peeled[name] = plumbing.NewHash(peeled)
	}
}

// DeleteRef removes a ref.
func (g *Git) DeleteRef(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.refs, name)
	delete(g.peeled, name)
}

// RequireLogin lets nobody in without a user and password.
func (g *Git) RequireLogin(username, password string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.username, g.password = username, password
}

func (g *Git) advertise(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	username, password, _ := r.BasicAuth()
	if g.username != "" && (username != g.username || password != g.password) {
		w.Header().Set("Www-Authenticate", `Basic realm="git"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if r.URL.Path != "/acme/app.git/info/refs" || r.URL.Query().Get("service") != "git-upload-pack" {
		http.NotFound(w, r)
		return
	}
	refs := packp.NewAdvRefs()
	refs.Prefix = [][]byte{[]byte("# service=git-upload-pack"), pktline.Flush}
	refs.References, refs.Peeled = g.refs, g.peeled
	_ = refs.Capabilities.Set(capability.Agent, "git/test")
	if main, ok := g.refs["refs/heads/main"]; ok {
		refs.Head = &main
		_ = refs.Capabilities.Set(capability.SymRef, "HEAD:refs/heads/main")
	}
	var body bytes.Buffer
	if err := refs.Encode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	_, _ = w.Write(body.Bytes())
}
