// SPDX-License-Identifier: Apache-2.0

// Package server is what renderer listens with: webhooks of forges at the paths
// that Flux computes, health and readiness for Kubernetes, metrics, and a page with
// the status of the loop.
//
// A webhook is a hint and nothing more. Its body is checked against the
// receiver's token and then thrown away unparsed; what it leads to is a refresh
// of the objects that the Receiver names, whose state is then asked from where it
// really is. So a forged or replayed call can at worst cause a look too many.
//
// A request for a hook passes, in this order: the method, the declared length of
// its body, the path, the body's true length, the signature, the kind of event.
// The body is hashed as it comes and never held in memory. Then the call is
// answered, at once, and its targets wait for a quiet moment (see debounce)
// before the [Refresher] gets them.
//
// The path of a hook is made from its token. It is part of no log line, no metric
// and no answer.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"resourceset.example/renderer/internal/debounce"
)

// Limits of a connection. Forges send small requests fast: GitHub gives up after
// 10 s, and so does GitLab. Their largest body is GitHub's, 25 MB.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 20 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
	maxBody           = 25 << 20
	shutdownGrace     = 10 * time.Second
)

// A pull request event is to be a commit within two seconds, so most of these are
// left to the run itself.
const (
	quietTime = 150 * time.Millisecond
	quietCap  = time.Second
)

// A Target names an object that a webhook asks to have refreshed.
type Target struct {
	Kind, Namespace, Name string
}

// A Refresher takes targets when it is quiet. It must not block for long, and it
// is called by one goroutine at a time.
type Refresher interface {
	Refresh(targets []Target)
}

// A Checker tells how the loop is doing. An error's text is shown to whoever asks.
type Checker interface {
	Healthy() error // nil while the loop is alive
	Ready() error   // nil after the first full pass
}

// Config is all that a Server needs.
type Config struct {
	Refresher Refresher
	Checker   Checker
	Registry  *prometheus.Registry // for /metrics, and for the server's own; none if nil
	Status    http.Handler         // all other paths; a line of text at / if nil
	Log       *slog.Logger
	MaxBody   int64 // of a webhook; 25 MiB if 0
}

// A Server is one HTTP server. It is made with [New].
type Server struct {
	cfg       Config
	receivers atomic.Pointer[table]
	queue     *debounce.Debouncer[Target]
	metrics   http.Handler
	hooks     *prometheus.CounterVec
}

// New makes a Server without receivers.
func New(cfg Config) (*Server, error) {
	if cfg.Refresher == nil || cfg.Checker == nil || cfg.Log == nil {
		return nil, errors.New("server: Refresher, Checker and Log are required")
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = maxBody
	}
	s := &Server{cfg: cfg, queue: debounce.New(quietTime, quietCap, cfg.Refresher.Refresh)}
	s.receivers.Store(&table{})
	s.hooks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "renderer_webhooks_total",
		Help: "Webhook calls by what became of them: accepted, ignored, refused or unknown.",
	}, []string{"result"})
	s.metrics = http.NotFoundHandler()
	if cfg.Registry != nil {
		if err := cfg.Registry.Register(s.hooks); err != nil {
			return nil, fmt.Errorf("server: %w", err)
		}
		s.metrics = promhttp.HandlerFor(cfg.Registry, promhttp.HandlerOpts{Registry: cfg.Registry})
	}
	return s, nil
}

// Listen opens the address of server.listen.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", address)
}

// Serve answers on a listener, which it closes, until the context ends. Then it
// finishes the requests under way, hands over what they asked for, and returns.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	settled, stopQueue := context.WithCancel(context.WithoutCancel(ctx))
	flushed := make(chan struct{})
	go func() { defer close(flushed); s.queue.Run(settled) }()
	defer func() { stopQueue(); <-flushed }()

	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(settled, shutdownGrace)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		return fmt.Errorf("requests under way did not end within %s: %w", shutdownGrace, errors.Join(err, srv.Close()))
	}
	return nil
}

// ServeHTTP answers one request. It does without http.ServeMux, which redirects
// paths that are not clean and would repeat them in the answer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, HookPrefix):
		s.hook(w, r)
	case path == "/healthz":
		check(w, r, s.cfg.Checker.Healthy)
	case path == "/readyz":
		check(w, r, s.cfg.Checker.Ready)
	case path == "/metrics":
		s.metrics.ServeHTTP(w, r)
	case s.cfg.Status != nil:
		s.cfg.Status.ServeHTTP(w, r)
	case path == "/":
		say(w, http.StatusOK, "renderer")
	default:
		say(w, http.StatusNotFound, "not found")
	}
}

func check(w http.ResponseWriter, r *http.Request, ask func() error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		say(w, http.StatusMethodNotAllowed, "only GET")
		return
	}
	if err := ask(); err != nil {
		say(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	say(w, http.StatusOK, "ok")
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	// A client that is gone cannot be told.
	_, _ = fmt.Fprintln(w, text)
}
