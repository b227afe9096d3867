// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/internal/gittest"
)

// People commit to the same branch with git, and pull and push again when they lose a
// race, as people do.
type people struct {
	t    testing.TB
	w    *world
	name string
	stop context.CancelFunc
	done chan error
	made []string // files that were pushed
}

// people starts a committer that pauses between its pushes.
func (w *world) people(name string, pause time.Duration) *people {
	w.t.Helper()
	clone := w.repo.Clone("main")
	ctx, cancel := context.WithCancel(w.t.Context())
	p := &people{t: w.t, w: w, name: name, stop: cancel, done: make(chan error, 1)}
	go func() { p.done <- p.work(ctx, clone.Dir, pause) }()
	w.t.Cleanup(cancel)
	return p
}

func (p *people) work(ctx context.Context, dir string, pause time.Duration) error {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		file := fmt.Sprintf("people/%s/%04d.txt", p.name, n)
		full := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(file), 0o600)); err != nil {
			return err
		}
		for _, args := range [][]string{{"add", file}, {"commit", "--quiet", "-m", "Add " + file}} {
			if out, err := gittest.Try(dir, args...); err != nil {
				return fmt.Errorf("git %s: %w: %s", args[0], err, out)
			}
		}
		if err := push(dir); err != nil {
			return err
		}
		p.made = append(p.made, file)
	}
}

// push pushes until it succeeds, on top of what others have pushed.
func push(dir string) error {
	var lost error
	for range 200 {
		out, err := gittest.Try(dir, "push", "--quiet", "origin", "HEAD:refs/heads/main")
		if err == nil {
			return nil
		}
		lost = fmt.Errorf("git push: %w: %s", err, out)
		if out, err := gittest.Try(dir, "pull", "--quiet", "--rebase", "origin", "main"); err != nil {
			return fmt.Errorf("git pull: %w: %s", err, out)
		}
	}
	return lost
}

// leave ends the work and checks that all of it is on the branch, each in one commit.
func (p *people) leave() int {
	p.t.Helper()
	p.stop()
	if err := <-p.done; err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command("git", "log", "--format=%s", "main")
	cmd.Dir, cmd.Env = p.w.repo.Dir, gittest.Env()
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatal(err)
	}
	subjects := map[string]int{}
	for line := range strings.Lines(string(out)) {
		subjects[strings.TrimSpace(line)]++
	}
	there := map[string]bool{}
	for _, file := range p.w.repo.Files("main") {
		there[file] = true
	}
	for _, file := range p.made {
		if subjects["Add "+file] != 1 || !there[file] {
			p.t.Errorf("%s was pushed: it is in %d commits, and in the tree: %t", file, subjects["Add "+file], there[file])
		}
	}
	return len(p.made)
}
