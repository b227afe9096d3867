// SPDX-License-Identifier: Apache-2.0

// Package demo shows the product at work on one machine: no network, no account,
// no cluster.
//
// It makes two bare Git repositories (definitions, which people write, and
// manifests, which Flux would apply), starts a small orchestrator on loopback
// that knows which tenant runs what, and runs the real service between them.
// Then it plays a story: tenants come, change and go, the orchestrator breaks,
// a definition changes. After each event it shows the commits that land. Then it
// proves the trail, edits a manifest by hand, and shows who notices.
//
// The service and the other commands are functions that the command hands in
// ([Options]): the demo uses them as any operator does.
package demo

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"resourceset.example/renderer/internal/server"
)

//go:embed definitions/*.yaml
var definitions embed.FS

// patience is how long the demo waits for what should take a moment.
const patience = 30 * time.Second

// Options are what a demo needs.
type Options struct {
	// Directory gets everything that is made. It must be empty or not exist.
	Directory string
	// Keep leaves service and orchestrator running until the context ends.
	Keep bool
	// Out is where the story is told, in colour if that is wanted.
	Out    io.Writer
	Colour bool
	// Serve runs the service with a configuration file until the context ends, and
	// logs to a writer.
	Serve func(ctx context.Context, configFile string, logs io.Writer) error
	// Program is how the user called the program.
	Program string
	// Command runs another command of the program, and returns its exit code.
	Command func(ctx context.Context, args []string, stdout, stderr io.Writer) int
}

// A stage is everything that the story needs: the folders, the two services, and
// what was last seen of the manifests.
type stage struct {
	*printer
	dir          string
	definitions  *repository
	manifests    *repository
	orchestrator *orchestrator
	listen       string // of the service
	seen         plumbing.Hash
	program      string
	command      func(ctx context.Context, args []string, stdout, stderr io.Writer) int
	stopped      chan struct{} // closed when the service has ended
	serviceErr   error         // to be read after stopped
}

// Run plays the story. It returns nil when the context ends while it keeps the
// services running.
func Run(ctx context.Context, opts Options) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, err := newStage(ctx, opts)
	if err != nil {
		return err
	}
	defer s.orchestrator.close()
	logs, err := os.Create(filepath.Join(s.dir, "renderer.log"))
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer logs.Close()

	began := time.Now()
	go func() {
		defer close(s.stopped)
		s.serviceErr = opts.Serve(ctx, filepath.Join(s.dir, "config.yaml"), logs)
	}()
	defer func() { stop(); <-s.stopped }()

	if err := s.play(ctx, began); err != nil {
		return fmt.Errorf("%w (the service's log is %s)", err, logs.Name())
	}
	s.whereToLook(opts.Keep)
	if !opts.Keep {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.stopped:
		return s.ended()
	}
}

// newStage makes the repositories, starts the orchestrator and writes the
// configuration and secrets of the service.
func newStage(ctx context.Context, opts Options) (*stage, error) {
	dir, err := emptyDirectory(opts.Directory)
	if err != nil {
		return nil, err
	}
	s := &stage{
		printer: &printer{w: opts.Out, colour: opts.Colour},
		dir:     dir, stopped: make(chan struct{}), program: cmp.Or(opts.Program, "renderer"), command: opts.Command,
	}
	if s.listen, err = freeAddress(ctx); err != nil {
		return nil, err
	}
	if s.definitions, err = newRepository(filepath.Join(dir, "definitions.git")); err != nil {
		return nil, err
	}
	if s.manifests, err = newRepository(filepath.Join(dir, "manifests.git")); err != nil {
		return nil, err
	}
	asking, calling := newToken(), newToken()
	s.orchestrator, err = startOrchestrator(ctx, asking, hook{
		url: "http://" + s.listen + server.HookPath([]byte(calling), "orchestrator", "apps"), token: calling,
	}, firstTenants())
	if err != nil {
		return nil, err
	}
	if err := s.publish("Deploy app1 for each tenant", unchanged); err != nil {
		return nil, errors.Join(err, s.orchestrator.close())
	}
	if err := s.configure(asking, calling); err != nil {
		return nil, errors.Join(err, s.orchestrator.close())
	}
	return s, nil
}

// configure writes the configuration of the service, and the secrets that its
// definitions name.
func (s *stage) configure(asking, calling string) error {
	files := map[string]string{
		"config.yaml":                           s.config(),
		"secrets/apps/orchestrator-token/token": asking,
		"secrets/apps/receiver-token/token":     calling,
	}
	for name, text := range files {
		file := filepath.Join(s.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
	}
	return nil
}

func emptyDirectory(name string) (string, error) {
	dir, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("demo: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("demo: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("demo: %w", err)
	}
	if len(entries) > 0 {
		return "", &NotEmptyError{Directory: dir}
	}
	return dir, nil
}

// A NotEmptyError is a directory that holds something already.
type NotEmptyError struct{ Directory string }

func (e *NotEmptyError) Error() string { return e.Directory + " is not empty" }

// Suggestion says what to do about it.
func (e *NotEmptyError) Suggestion() string {
	return "name a folder that does not exist yet, or leave --directory out"
}

// freeAddress is a port that nobody listens on now. The configuration has to name
// it before the service opens it.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("demo: %w", err)
	}
	address := listener.Addr().String()
	return address, listener.Close()
}

func (s *stage) config() string {
	return fmt.Sprintf(`# The service of the demo: renderer run --config %[1]s/config.yaml
source:
  url: %[2]s
  path: ./apps
  interval: 1s
target:
  url: %[3]s
  path: ./generated
secrets: {directory: %[1]s/secrets}
state: {directory: %[1]s/state}
server: {listen: "%[4]s"}
log: {level: info, format: text}
`, s.dir, s.definitions.url(), s.manifests.url(), s.listen)
}

// publish commits the definitions, with the orchestrator's address in them.
func (s *stage) publish(message string, edit func(name, text string) string) error {
	files := map[string]string{}
	for _, name := range []string{"app1.yaml", "orchestrator.yaml"} {
		text, err := definitions.ReadFile("definitions/" + name)
		if err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		files["apps/"+name] = edit(name, strings.ReplaceAll(string(text), "ORCHESTRATOR", s.orchestrator.url()))
	}
	return s.definitions.commit(message, files)
}

// landed waits for at least n commits that the last look has not seen, and shows them.
func (s *stage) landed(ctx context.Context, since time.Time, n int) error {
	var commits []*object.Commit
	err := s.until(ctx, "a commit", func() (bool, error) {
		hash, _, err := s.manifests.head()
		if err != nil || hash == s.seen {
			return false, err
		}
		commits, err = s.manifests.since(s.seen)
		return len(commits) >= n, err
	})
	if err != nil {
		return err
	}
	took := time.Since(since)
	for _, c := range commits {
		if err := s.commit(ctx, c, took); err != nil {
			return err
		}
		s.seen = c.Hash
	}
	return nil
}

// ready waits for the service to answer.
func (s *stage) ready(ctx context.Context) error {
	return s.until(ctx, "the service to be ready", func() (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.listen+"/readyz", nil)
		if err != nil {
			return false, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false, nil // not listening yet
		}
		return resp.StatusCode == http.StatusOK, resp.Body.Close()
	})
}

// until asks again and again, as long as there is hope.
func (s *stage) until(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-s.stopped:
			return s.ended()
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("waited %s in vain for %s", patience, what)
			}
			return ctx.Err()
		}
	}
}

// ended is why the service ended before the story did.
func (s *stage) ended() error {
	if s.serviceErr != nil {
		return s.serviceErr
	}
	return errors.New("the service ended by itself")
}
