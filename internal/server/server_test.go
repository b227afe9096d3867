// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestHealth(t *testing.T) {
	f := newFixture(t, Receiver{Type: TypeGeneric})
	f.loop.unready = errors.New("the first pass is not done")
	for _, tt := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/healthz", 200, "ok\n"},
		{"HEAD", "/healthz", 200, "ok\n"},
		{"POST", "/healthz", 405, "only GET\n"},
		{"GET", "/readyz", 503, "the first pass is not done\n"},
		{"GET", "/", 200, "renderer\n"},
		{"GET", "/nosuch", 404, "not found\n"},
		{"GET", "//hook/x", 404, "not found\n"},
	} {
		if got := f.call(tt.method, tt.path, ""); got.Code != tt.status || got.Body.String() != tt.body {
			t.Errorf("%s %s: %d %q, want %d %q", tt.method, tt.path, got.Code, got.Body, tt.status, tt.body)
		}
	}
	f.loop.unready, f.loop.healthy = nil, errors.New("stuck")
	if got := f.call("GET", "/readyz", ""); got.Code != 200 {
		t.Errorf("ready: %d", got.Code)
	}
	if got := f.call("GET", "/healthz", ""); got.Code != 503 || got.Body.String() != "stuck\n" {
		t.Errorf("stuck: %d %q", got.Code, got.Body)
	}
}

func TestStatusHandlerGetsTheRest(t *testing.T) {
	l := &loop{}
	s, err := New(Config{Refresher: l, Checker: l, Log: newFixture(t, Receiver{Type: TypeGeneric}).cfg.Log,
		Status: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { say(w, 200, "page "+r.URL.Path) })})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Server: s}
	for path, want := range map[string]string{"/": "page /\n", "/api/v1/x": "page /api/v1/x\n", "/hook/x": "only POST\n", "/healthz": "ok\n"} {
		if got := f.call("GET", path, "").Body.String(); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := f.call("GET", "/metrics", ""); got.Code != 404 {
		t.Errorf("metrics without a registry: %d", got.Code)
	}
}

func TestNewFaults(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("a server without a loop")
	}
	f := newFixture(t, Receiver{Type: TypeGeneric})
	cfg := f.cfg
	cfg.Registry = prometheus.NewRegistry()
	if _, err := New(cfg); err != nil {
		t.Error(err)
	}
	if _, err := New(cfg); err == nil {
		t.Error("two servers count in one registry")
	}
}

// serve runs the server on loopback until stop is called, which returns what Serve did.
func (f *fixture) serve(t *testing.T) (address string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- f.Serve(ctx, listener) }()
	stop = func() error { cancel(); return <-done }
	t.Cleanup(cancel)
	return listener.Addr().String(), stop
}

func TestHookReachesTheLoop(t *testing.T) {
	f := newFixture(t, Receiver{Type: TypeGeneric})
	address, stop := f.serve(t)
	for range 3 {
		resp, err := http.Post("http://"+address+f.path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	<-f.loop.refreshed
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := f.loop.targets(); len(got) != 1 || got[0].Name != "podinfo-pull-requests" {
		t.Errorf("got %v", got)
	}
}

// FR-71: what was answered with 200 is handed over, also when the end comes at once.
func TestStopLosesNothing(t *testing.T) {
	f := newFixture(t, Receiver{Type: TypeGeneric})
	address, stop := f.serve(t)
	resp, err := http.Post("http://"+address+f.path, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := f.loop.targets(); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

// FR-73: headers are limited, too.
func TestHeaderLimit(t *testing.T) {
	f := newFixture(t, Receiver{Type: TypeGeneric})
	address, stop := f.serve(t)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { // the server stops reading at some point, and closes
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nX-Long: %s\r\n\r\n", f.path, strings.Repeat("x", 1<<20))
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d", resp.StatusCode)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// FR-73: a chunked body without an end is answered before it ends.
func TestChunkedFlood(t *testing.T) {
	f := newFixture(t, Receiver{Type: TypeGitHub})
	address, _ := f.serve(t)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", f.path)
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 4096, strings.Repeat("x", 4096))
		for {
			if _, err := conn.Write([]byte(chunk)); err != nil {
				return // the server has hung up
			}
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Close {
		t.Errorf("status %d, close %t", resp.StatusCode, resp.Close)
	}
}

// A pipe is a listener with one connection, in memory, on which deadlines follow
// the fake clock of a synctest bubble.
type pipe struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conn:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipe) Close() error   { close(p.closed); return nil }
func (p *pipe) Addr() net.Addr { return &net.TCPAddr{} }

// FR-73: who sends headers or a body by the byte is hung up on.
func TestSlowClients(t *testing.T) {
	for _, tt := range []struct {
		name, head string
		limit      time.Duration
	}{
		{"headers", "POST /hook/x HTTP/1.1\r\nHost: x\r\n", readHeaderTimeout},
		{"body", "POST PATH HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n", readTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, Receiver{Type: TypeGeneric})
				client, conn := net.Pipe()
				p := &pipe{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
				p.conn <- conn
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- f.Serve(ctx, p) }()
				go func() { _, _ = io.Copy(io.Discard, client) }()

				began := time.Now()
				_, err := client.Write([]byte(strings.ReplaceAll(tt.head, "PATH", f.path)))
				for err == nil && time.Since(began) < time.Hour {
					time.Sleep(time.Second)
					_, err = client.Write([]byte("x"))
				}
				if took := time.Since(began); took > tt.limit+2*time.Second {
					t.Errorf("still open after %s", took)
				}
				client.Close()
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if f.pending(t) {
					t.Error("accepted")
				}
			})
		})
	}
}
