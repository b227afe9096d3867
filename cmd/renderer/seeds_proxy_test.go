// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"resourceset.example/renderer/internal/forgetest"
)

// An internet is all of the outside world that a renderer under test can reach: a
// CONNECT proxy on loopback, behind which host names are servers of the test. So
// the addresses in the seeds stay what they are, certificates included.
type internet struct {
	t     testing.TB
	proxy *httptest.Server

	mu     sync.Mutex
	hosts  map[string]string // host:port → where it really is
	lost   []string          // hosts that were asked for and do not exist
	tunnel []net.Conn
}

func newInternet(t testing.TB) *internet {
	n := &internet{t: t, hosts: map[string]string{}}
	n.proxy = httptest.NewServer(n)
	t.Cleanup(func() {
		n.proxy.Close()
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, conn := range n.tunnel {
			conn.Close()
		}
		if len(n.lost) > 0 {
			t.Errorf("hosts that nobody should have asked for: %s", strings.Join(n.lost, ", "))
		}
	})
	return n
}

// serve puts a server with a certificate of ca behind host:443. With clients it
// wants a client certificate of the same authority.
func (n *internet) serve(host string, ca *forgetest.CA, clients bool, handler http.Handler) {
	n.t.Helper()
	config, err := ca.ServerTLS(clients, host)
	if err != nil {
		n.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = config
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	n.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host+":443"] = server.Listener.Addr().String()
}

// ServeHTTP is the proxy.
func (n *internet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	address, known := n.hosts[r.Host]
	if !known && !slices.Contains(n.lost, r.Host) {
		n.lost = append(n.lost, r.Host)
	}
	n.mu.Unlock()
	if r.Method != http.MethodConnect || !known {
		http.Error(w, "no such host", http.StatusBadGateway)
		return
	}
	server, err := net.Dial("tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		server.Close()
		return
	}
	n.mu.Lock()
	n.tunnel = append(n.tunnel, client, server)
	n.mu.Unlock()
	_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	go pipe(server, buffered, client)
	go pipe(client, server, server)
}

// pipe copies until one side ends, and ends the other.
func pipe(to net.Conn, from io.Reader, source net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
	source.Close()
}

// publicGitHub makes a server of forgetest, which is one of GitHub Enterprise, look
// like the public one: the API is the host, and its links say so.
func publicGitHub(g *forgetest.GitHub) http.Handler {
	const prefix = "/api/v3"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := r.Clone(r.Context())
		inner.URL.Path = prefix + r.URL.Path
		g.ServeHTTP(&linkWriter{ResponseWriter: w, old: g.URL + prefix, new: "https://api.github.com"}, inner)
	})
}

// A linkWriter replaces the server's name in the header Link.
type linkWriter struct {
	http.ResponseWriter
	old, new string
	wrote    bool
}

func (w *linkWriter) WriteHeader(status int) {
	if !w.wrote {
		w.wrote = true
		if link := w.Header().Get("Link"); link != "" {
			w.Header().Set("Link", strings.ReplaceAll(link, w.old, w.new))
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *linkWriter) Write(p []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the real one.
func (w *linkWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
