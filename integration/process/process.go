// SPDX-License-Identifier: Apache-2.0

// Package process runs the servers that the tests stand on: each a program with a log
// file of its own, that can be killed and started again, and that is certainly gone
// in the end.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// grace is how long a program may take to end by itself.
const grace = 20 * time.Second

// A Process is a program that is started with the same arguments again and again.
type Process struct {
	Name string // of the program, in messages
	Path string
	Args []string
	Env  []string // all of it
	Dir  string
	Log  string // a file that every life of the program adds to
	User *syscall.Credential

	cmd   *exec.Cmd
	ended chan struct{}
}

// Start runs the program.
func (p *Process) Start() error {
	if p.running() {
		return fmt.Errorf("%s runs already", p.Name)
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the program has its own
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.Env, p.Dir, log, log
	cmd.SysProcAttr = attributes(p.User)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() {
		defer close(ended)
		_ = cmd.Wait() // who ends it knows why; who waits for it to serve sees that it is gone
	}()
	return nil
}

// Stop asks the program to end, and insists after a while.
func (p *Process) Stop() {
	if !p.running() {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may end by itself in this moment
	select {
	case <-p.ended:
	case <-time.After(grace):
		p.Kill()
	}
}

// Kill ends the program at once, as the kernel does it when memory is short.
func (p *Process) Kill() {
	if !p.running() {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
}

func (p *Process) running() bool {
	if p.ended == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Serves waits until a GET of the URL is answered with status 200.
func (p *Process) Serves(ctx context.Context, client *http.Client, url string) error {
	last := errors.New("it was not asked")
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve %s: %w\n%s", p.Name, url, last, p.Tail())
		case <-p.ended:
			return fmt.Errorf("%s has ended\n%s", p.Name, p.Tail())
		case <-tick.C:
		}
		if last = answers(ctx, client, url); last == nil {
			return nil
		}
	}
}

func answers(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // what there is of it
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	return nil
}

// Tail is the end of what the program logged.
func (p *Process) Tail() string {
	const most = 8000
	log, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	if len(log) > most {
		log = log[len(log)-most:]
		if at := bytes.IndexByte(log, '\n'); at >= 0 {
			log = log[at+1:]
		}
	}
	return fmt.Sprintf("--- the end of the log of %s:\n%s", p.Name, log)
}

// FreePorts finds ports on loopback that nobody listens on.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // after the last is found, so that all differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
