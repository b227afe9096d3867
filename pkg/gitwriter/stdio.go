// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stdio is a conversation with a process, be it a child of ours or one at the other
// end of an SSH connection.
type stdio struct {
	c      *conversation
	in     io.WriteCloser
	out    io.Reader
	errors *tail
	end    func() // closes what is open and waits for the process
	asked  bool
	once   sync.Once
}

func (s *stdio) list() (io.ReadCloser, error) {
	return watched{dog: s.c.dog, Reader: s.out}, nil
}

func (s *stdio) exchange(write func(io.Writer) error) (io.ReadCloser, error) {
	s.asked = true
	w := bufio.NewWriterSize(watched{dog: s.c.dog, Writer: s.in}, 64<<10)
	err := write(w)
	if err == nil {
		err = w.Flush()
	}
	// A server that hangs up while it is written to has usually said why: its answer is
	// worth more than the broken pipe.
	if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, io.EOF) {
		return nil, s.c.unexpected(err)
	}
	if err := s.in.Close(); err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, io.EOF) {
		return nil, s.c.unexpected(err)
	}
	return watched{dog: s.c.dog, Reader: s.out}, nil
}

func (s *stdio) hangUp() {
	s.once.Do(func() {
		if !s.asked {
			_, _ = io.WriteString(s.in, "0000") // a polite end; the server may be gone
		}
		_ = s.in.Close()
		s.end()
	})
}

func (s *stdio) explain() string {
	s.asked = true // no polite end: something is wrong
	s.hangUp()
	return s.errors.String()
}

// tail keeps the last bytes of what a process writes to its standard error.
type tail struct {
	mu   sync.Mutex
	data []byte
}

const tailSize = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if over := len(t.data) - tailSize; over > 0 {
		t.data = append([]byte(nil), t.data[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.data))
}

// dialFile runs git's own server program on a local repository.
func dialFile(c *conversation, service string) (line, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, &ServerError{URL: c.remote.display, Text: "file:// repositories need git to be installed: " + err.Error()}
	}
	if _, err := os.Stat(c.remote.path); errors.Is(err, os.ErrNotExist) {
		return nil, &NotFoundError{URL: c.remote.display}
	}
	cmd := exec.CommandContext(c.ctx, git, strings.TrimPrefix(service, "git-"), c.remote.path)
	cmd.Env = withoutGit(os.Environ())
	cmd.WaitDelay = 2 * time.Second
	stderr := &tail{}
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end := func() {
		if service == serviceReceivePack {
			_, _ = io.Copy(io.Discard, out) // let its hooks finish
		} else {
			_ = cmd.Process.Kill() // it only reads, and may have much left to send
		}
		_ = cmd.Wait() // its exit code says nothing that the answer did not
	}
	return &stdio{c: c, in: in, out: out, errors: stderr, end: end}, nil
}

// withoutGit drops the variables that would make git look elsewhere or speak another
// version of the protocol.
func withoutGit(env []string) []string {
	kept := make([]string, 0, len(env))
	for _, entry := range env {
		if !strings.HasPrefix(entry, "GIT_") || strings.HasPrefix(entry, "GIT_CONFIG") || strings.HasPrefix(entry, "GIT_EXEC_PATH") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// isDiskError tells an error of our own disk from one of the server.
func isDiskError(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EIO)
}
