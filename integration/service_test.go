// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A service is a running `renderer run`.
type service struct {
	t     testing.TB
	cmd   *exec.Cmd
	ended chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// Write takes what the service logs.
func (s *service) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *service) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// start runs the service until it is killed or stopped, at the latest when the test ends.
func (s *setup) start() *service {
	s.w.t.Helper()
	run := &service{t: s.w.t, ended: make(chan struct{})}
	run.cmd = s.command(context.WithoutCancel(s.w.t.Context()), "run", "--config", s.config())
	run.cmd.Stdout, run.cmd.Stderr = run, run
	if err := run.cmd.Start(); err != nil {
		s.w.t.Fatal(err)
	}
	go func() {
		defer close(run.ended)
		_ = run.cmd.Wait() // who ends it looks at the exit code
	}()
	s.w.t.Cleanup(func() {
		_, before := run.code()
		run.kill()
		if s.w.t.Failed() && !before { // those that ended before have been looked at

			s.w.t.Logf("%s logged:\n%s", s.name, run.logged())
		}
	})
	return run
}

// kill ends the service as the kernel does it when memory is short.
func (s *service) kill() {
	select {
	case <-s.ended:
	default:
		_ = s.cmd.Process.Kill() // it may end by itself in this moment
		<-s.ended
	}
}

// code is the exit code, if the service has ended.
func (s *service) code() (code int, ended bool) {
	select {
	case <-s.ended:
		return s.cmd.ProcessState.ExitCode(), true
	default:
		return 0, false
	}
}

// killed reports that kill ended the service, and not something before.
func (s *service) killed() bool {
	status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// stop ends the service as Kubernetes does, and returns the exit code.
func (s *service) stop() int {
	s.t.Helper()
	s.address() // before it is up it has no handler for the signal yet, and just dies
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.t.Fatalf("still there %s after SIGTERM", patience)
	}
	return s.cmd.ProcessState.ExitCode()
}

// address waits for the service to listen.
func (s *service) address() string {
	s.t.Helper()
	address := ""
	eventually(s.t, "the service listens", func() bool {
		for line := range strings.Lines(s.logged()) {
			var entry struct{ Msg, Address string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "listening" {
				address = entry.Address
			}
		}
		return address != ""
	})
	return "http://" + address
}

// ready waits for the first full pass.
func (s *service) ready() {
	s.t.Helper()
	address := s.address()
	eventually(s.t, "the service is ready", func() bool { return s.status(http.MethodGet, address+"/readyz") == http.StatusOK })
}

// hook tells the service that the orchestrator has changed.
func (s *service) hook() {
	s.t.Helper()
	path := sha256.Sum256([]byte(hookToken + "desk" + "apps"))
	if status := s.status(http.MethodPost, s.address()+"/hook/"+hex.EncodeToString(path[:])); status != http.StatusOK {
		s.t.Errorf("the hook gets status %d", status)
	}
}

func (s *service) status(method, url string) int {
	req, err := http.NewRequestWithContext(s.t.Context(), method, url, http.NoBody)
	if err != nil {
		s.t.Error(err)
		return 0
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}
