// SPDX-License-Identifier: Apache-2.0

// Package gittest gives tests real Git repositories and real Git servers: a smart HTTP
// server that runs `git http-backend`, and an SSH server that runs git's own server
// programs. Nothing about Git is faked, so a test sees what users' servers do: refused
// pushes, lost races, hooks. It needs the git command, like the tests that use it.
package gittest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Run runs git in a folder and returns what it prints, without the last line feed.
// The user's own configuration is left out. The test ends if git fails.
func Run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := Try(dir, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Try is Run for when git may fail. What it returns includes the error output then.
func Try(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = Env()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		return strings.TrimRight(stdout.String()+stderr.String(), "\n"), err
	}
	return strings.TrimRight(stdout.String(), "\n"), nil
}

// Env is an environment in which git reads no configuration but that of its repository.
func Env() []string {
	env := make([]string, 0, len(os.Environ())+8)
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "GIT_") {
			env = append(env, entry)
		}
	}
	return append(env,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Somebody Else", "GIT_AUTHOR_EMAIL=somebody@example.com",
		"GIT_COMMITTER_NAME=Somebody Else", "GIT_COMMITTER_EMAIL=somebody@example.com",
	)
}

// A Repo is a bare repository on disk, as a server has it.
type Repo struct {
	t   testing.TB
	Dir string
}

// NewRepo makes an empty bare repository with the default branch main. When the test
// ends, `git fsck --strict` must find nothing wrong with it.
func NewRepo(t testing.TB) *Repo {
	t.Helper()
	return NewRepoAt(t, filepath.Join(t.TempDir(), "repo.git"))
}

// NewRepoAt is NewRepo in a given folder.
func NewRepoAt(t testing.TB, dir string) *Repo {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	Run(t, dir, "init", "--quiet", "--bare", "--initial-branch=main", "--template=", ".")
	r := &Repo{t: t, Dir: dir}
	r.append("config", "[core]\n\tfsync = none\n[http]\n\treceivepack = true\n[receive]\n\tdenyNonFastForwards = true\n\tautogc = false\n[gc]\n\tauto = 0\n")
	t.Cleanup(r.Fsck)
	return r
}

func (r *Repo) append(name, text string) {
	r.t.Helper()
	f, err := os.OpenFile(filepath.Join(r.Dir, name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		r.t.Fatal(err)
	}
}

// URL is the file:// URL.
func (r *Repo) URL() string { return "file://" + r.Dir }

// Git runs git in the repository.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	return Run(r.t, r.Dir, args...)
}

// Config sets a configuration value of the repository.
func (r *Repo) Config(key, value string) {
	r.t.Helper()
	r.Git("config", key, value)
}

// Head is the hash at the tip of a branch, or empty if there is no such branch.
func (r *Repo) Head(branch string) string {
	out, err := Try(r.Dir, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
	if err != nil {
		return ""
	}
	return out
}

// Fsck fails the test if git finds anything wrong.
func (r *Repo) Fsck() {
	r.t.Helper()
	if out, err := Try(r.Dir, "fsck", "--strict", "--no-dangling"); err != nil {
		r.t.Errorf("git fsck --strict: %v\n%s", err, out)
	}
}

// Files lists the paths at the tip of a branch.
func (r *Repo) Files(branch string) []string {
	r.t.Helper()
	out := r.Git("ls-tree", "-r", "--name-only", branch)
	if out == "" {
		return nil
	}
	return strings.Split(out, "\n")
}

// Read is the content of a file at the tip of a branch.
func (r *Repo) Read(branch, path string) string {
	r.t.Helper()
	cmd := exec.Command("git", "show", branch+":"+path)
	cmd.Dir, cmd.Env = r.Dir, Env()
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("git show %s:%s: %v", branch, path, err)
	}
	return string(out)
}

// Commit adds a commit to a branch, made if it does not exist, as another user does,
// and returns it. Files whose content is empty text are removed. It is written
// straight into the repository, in one process: hooks do not see it.
func (r *Repo) Commit(branch, message string, files map[string]string) string {
	r.t.Helper()
	var in bytes.Buffer
	now := fmt.Sprintf("%d +0000", time.Now().Unix())
	ref := "refs/heads/" + branch
	fmt.Fprintf(&in, "commit %s\nauthor Somebody Else <somebody@example.com> %s\ncommitter Somebody Else <somebody@example.com> %s\n", ref, now, now)
	fmt.Fprintf(&in, "data %d\n%s\n", len(message)+1, message)
	if r.Head(branch) != "" {
		fmt.Fprintf(&in, "from %s^0\n", ref)
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if text := files[path]; text == "" {
			fmt.Fprintf(&in, "D %q\n", path)
		} else {
			fmt.Fprintf(&in, "M 100644 inline %q\ndata %d\n%s\n", path, len(text), text)
		}
	}
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Env, cmd.Stdin = r.Dir, Env(), &in
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("git fast-import: %v\n%s", err, out)
	}
	return r.Head(branch)
}

// Hook installs a shell script as one of the repository's hooks.
func (r *Repo) Hook(name, script string) {
	r.t.Helper()
	path := filepath.Join(r.Dir, "hooks", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// A Clone is somebody else's work tree of a repository.
type Clone struct {
	t      testing.TB
	Dir    string
	branch string
}

// Clone clones a branch, which may not exist yet.
func (r *Repo) Clone(branch string) *Clone {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), "clone")
	if r.Head(branch) != "" {
		Run(r.t, "", "clone", "--quiet", "--branch", branch, r.URL(), dir)
	} else {
		Run(r.t, "", "clone", "--quiet", r.URL(), dir)
		Run(r.t, dir, "checkout", "--quiet", "--orphan", branch)
		_, _ = Try(dir, "rm", "-r", "-f", "--quiet", ".") // fails where there is nothing to remove
	}
	return &Clone{t: r.t, Dir: dir, branch: branch}
}

// Git runs git in the clone.
func (c *Clone) Git(args ...string) string {
	c.t.Helper()
	return Run(c.t, c.Dir, args...)
}

// Write writes files into the work tree; empty content removes.
func (c *Clone) Write(files map[string]string) {
	c.t.Helper()
	for name, content := range files {
		path := filepath.Join(c.Dir, name)
		if content == "" {
			if err := os.Remove(path); err != nil {
				c.t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			c.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
}

// CommitAndPush commits everything in the work tree, pushes it without force, and
// returns the commit's hash.
func (c *Clone) CommitAndPush(message string) string {
	c.t.Helper()
	c.Git("add", "-A")
	c.Git("commit", "--quiet", "--allow-empty", "-m", message)
	c.Git("push", "--quiet", "origin", "HEAD:refs/heads/"+c.branch)
	return c.Git("rev-parse", "HEAD")
}
