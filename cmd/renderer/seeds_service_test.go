// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"resourceset.example/renderer/internal/forgetest"
)

// patience is how long a test waits for what must happen, on a busy machine.
const patience = 30 * time.Second

// A service is a running `renderer run`.
type service struct {
	f       *fleet
	cmd     *exec.Cmd
	address string // http://127.0.0.1:port
	ended   chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// Write takes what the service logs.
func (s *service) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.f.keep(p)
	return s.log.Write(p)
}

func (s *service) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// start runs the service until the test ends it, or ends itself.
func (f *fleet) start() *service {
	f.t.Helper()
	s := &service{f: f, ended: make(chan struct{})}
	ctx, kill := context.WithCancel(context.WithoutCancel(f.t.Context()))
	s.cmd = f.command(ctx, "run", "--config", f.config())
	s.cmd.Stdout, s.cmd.Stderr = s, s
	if err := s.cmd.Start(); err != nil {
		kill()
		f.t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait() // the exit code is looked at by stop
	}()
	f.t.Cleanup(func() {
		kill()
		<-s.ended
		if f.t.Failed() {
			f.t.Log("the service logged:\n" + s.logged())
		}
	})
	f.eventually("the service listens", func() bool {
		for line := range strings.Lines(s.logged()) {
			var entry struct{ Msg, Address string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "listening" {
				s.address = "http://" + entry.Address
			}
		}
		return s.address != ""
	})
	return s
}

// stop ends the service with a signal, and returns its exit code and how long it took.
func (s *service) stop(signal syscall.Signal) (int, time.Duration) {
	s.f.t.Helper()
	began := time.Now()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.f.t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.f.t.Fatalf("still there %s after %s", patience, signal)
	}
	return s.cmd.ProcessState.ExitCode(), time.Since(began)
}

// eventually waits for a condition, and ends the test if it does not come.
func (f *fleet) eventually(what string, condition func() bool) {
	f.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			f.t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// get is the status of a GET, and what it says.
func (s *service) get(path string) (int, string) {
	s.f.t.Helper()
	resp, err := http.Get(s.address + path)
	if err != nil {
		s.f.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.f.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(body))
}

// pullRequestEvent is GitHub calling the seed's Receiver about a pull request, with
// a signature made with a key. The path is the one that Flux computes and writes
// into the Receiver's status.
func (s *service) pullRequestEvent(key string) int {
	s.f.t.Helper()
	path := sha256.Sum256([]byte(hookToken + "github-receiver" + "podinfo-preview"))
	body := `{"action":"synchronize","number":9,"pull_request":{"number":9,"state":"open"},"repository":{"full_name":"` + podinfo + `"}}`
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(body))
	req, err := http.NewRequestWithContext(s.f.t.Context(), http.MethodPost,
		s.address+"/hook/"+hex.EncodeToString(path[:]), strings.NewReader(body))
	if err != nil {
		s.f.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "GitHub-Hookshot/044aadd")
	req.Header.Set("X-GitHub-Event", "pull_request")
	req.Header.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.f.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// gate holds requests back until it is opened.
func gate() (fault forgetest.Fault, open func()) {
	opened := make(chan struct{})
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case <-opened:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}, sync.OnceFunc(func() { close(opened) })
}

// TestPreviewSeedService plays the first seed as a service: its provider is due
// every ten minutes, so what happens sooner is the Receiver's and the definitions'.
func TestPreviewSeedService(t *testing.T) {
	t.Parallel()
	f, github, repo := newPreviews(t)
	openMany(repo)
	fault, open := gate()
	defer open()
	github.Break(fault)

	s := f.start()
	if status, text := s.get("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz before the first pass: %d %s", status, text)
	}
	if status, text := s.get("/healthz"); status != http.StatusOK {
		t.Errorf("/healthz before the first pass: %d %s", status, text)
	}
	open()
	f.eventually("ready", func() bool { status, _ := s.get("/readyz"); return status == http.StatusOK })
	f.wantFiles(treeOf(120, 231, 9)...)
	mustContain(t, "first commit", f.message("main"), "\nTrigger: startup")

	github.Forget()
	t.Log("a call that is not GitHub's")
	if status := s.pullRequestEvent("guessed-" + hookToken); status != http.StatusForbidden {
		t.Errorf("a wrong signature gets status %d", status)
	}

	t.Log("changed definitions are found by themselves, and need no listing")
	old := f.repo.Head("main")
	changed := f.define(map[string]string{
		"resourceset.yaml": strings.ReplaceAll(seed(t, "preview-environments/resourceset.yaml"), "interval: 1h", "interval: 2h"),
	})
	f.eventually("changed definitions are rendered", func() bool { h := f.repo.Head("main"); return h != old && h != changed })
	mustContain(t, "commit of changed definitions", f.message("main"), "podinfo-preview/podinfo: update ", "\nTrigger: source")
	hr, _ := previewFiles(120)
	wantField(t, f.manifest(hr), "spec|interval", "2h")
	if n := len(github.Requests()); n > 0 {
		t.Errorf("GitHub was asked %d times; nobody with the right to had called", n)
	}

	t.Log("a push to a pull request, and GitHub's call about it")
	took := s.fromWebhookToCommit(func() { repo.Push(9, forgetest.SHA("footer 2")) })
	checkPreviewSHA(f, 9, forgetest.SHA("footer 2"))
	mustContain(t, "commit after the webhook", f.message("main"), "podinfo-preview/podinfo: update 9\n", "\nTrigger: webhook")
	// The promise is two seconds. A test machine may be busy with something else for
	// one moment, but not each time.
	for n := 3; took >= 2*time.Second && n <= 5; n++ {
		took = s.fromWebhookToCommit(func() { repo.Push(9, forgetest.SHA(fmt.Sprint("footer ", n))) })
	}
	if took >= 2*time.Second {
		t.Errorf("from webhook to pushed commit: %s, want less than 2 s", took)
	}

	code, ending := s.stop(syscall.SIGTERM)
	t.Logf("ended %s after SIGTERM", ending.Round(time.Millisecond))
	if code != 0 || ending > 5*time.Second {
		t.Errorf("SIGTERM: exit code %d after %s", code, ending)
	}
	f.quiet(0)
}

// fromWebhookToCommit changes something, calls as GitHub does, and measures the time
// until the commit is pushed.
func (s *service) fromWebhookToCommit(change func()) time.Duration {
	t := s.f.t
	t.Helper()
	old := s.f.repo.Head("main")
	change()
	began := time.Now()
	if status := s.pullRequestEvent(hookToken); status != http.StatusOK {
		t.Fatalf("the webhook gets status %d", status)
	}
	s.f.eventually("what changed is pushed", func() bool { return s.f.repo.Head("main") != old })
	took := time.Since(began)
	t.Logf("from webhook to pushed commit: %s", took.Round(time.Millisecond))
	return took
}

// checkPreviewSHA compares where a pull request's commit stands.
func checkPreviewSHA(f *fleet, number int, sha string) {
	f.t.Helper()
	hr, repo := previewFiles(number)
	wantField(f.t, f.manifest(repo), "spec|ref|commit", sha)
	wantField(f.t, f.manifest(hr), "spec|values|image|tag", sha)
}

// TestRule09_StopInFetch: told to end in the middle of a fetch, the service does not
// wait for it, and leaves what is committed.
func TestRule09_StopInFetch(t *testing.T) {
	t.Parallel()
	f, github, repo := newPreviews(t)
	openMany(repo)
	f.once(0)
	head := f.repo.Head("main")
	f.program = "renderer" // the test binary (TestMain), so that the race detector looks at a service, too
	github.Break(forgetest.Hang())
	github.Forget()
	repo.Close(9)
	s := f.start()
	f.eventually("GitHub is asked", func() bool { return len(github.Requests()) > 0 })
	code, took := s.stop(syscall.SIGTERM)
	if code != 0 || took > 5*time.Second {
		t.Errorf("SIGTERM: exit code %d after %s", code, took)
	}
	if f.repo.Head("main") != head {
		t.Error("a fetch that was broken off led to a commit")
	}
	github.Heal()
	f.once(0)
	f.wantFiles(treeOf(120, 231)...)
}
