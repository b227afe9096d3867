// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// A Request is what a pull or merge request has become, for tests to look at.
type Request struct {
	Number      int
	Branch      string
	Title, Body string
	State       string // open, closed or merged
	SHA         string
	Labels      []string
	Comments    []string
}

// Host makes a bare repository on disk the one behind this one: pull requests can be
// opened from its branches then, and follow them.
func (r *Repo) Host(dir string) {
	r.github.mu.Lock()
	defer r.github.mu.Unlock()
	r.git = dir
}

// Requests are all pull requests, oldest first.
func (r *Repo) Requests() []Request {
	r.github.mu.Lock()
	defer r.github.mu.Unlock()
	r.follow()
	list := make([]Request, len(r.prs))
	for i, p := range r.prs {
		list[i] = Request{
			Number: p.number, Branch: p.Branch, Title: p.Title, Body: p.body, State: p.state(), SHA: p.SHA,
			Labels: slices.Clone(p.Labels), Comments: slices.Clone(p.comments),
		}
	}
	return list
}

// Merged marks a pull request as merged; the test has merged the branch.
func (r *Repo) Merged(number int) {
	r.github.mu.Lock()
	r.follow()
	r.github.mu.Unlock()
	r.change(number, func(p *pull) { p.open, p.merged = false, true })
}

// Describe changes a pull request's text.
func (r *Repo) Describe(number int, body string) { r.change(number, func(p *pull) { p.body = body }) }

func (p *pull) state() string {
	switch {
	case p.merged:
		return "merged"
	case p.open:
		return "open"
	}
	return "closed"
}

func (r *Repo) owner() string {
	owner, _, _ := strings.Cut(r.fullName, "/")
	return owner
}

// follow moves the heads of open pull requests to where their branches are. One whose
// branch is gone is closed.
func (r *Repo) follow() {
	for _, p := range r.prs {
		if !p.made || !p.open {
			continue
		}
		if sha := r.head(p.Branch); sha != "" {
			p.SHA = sha
		} else {
			p.open = false
		}
	}
}

// head is the commit of a branch of the hosted repository, or empty.
func (r *Repo) head(branch string) string {
	out, err := r.run("rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

func (r *Repo) run(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", r.git}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	out, err := cmd.Output()
	return string(out), err
}

// A refusal is an answer other than success.
type refusal struct {
	status  int
	message string
}

func (f *refusal) serve(w http.ResponseWriter, r *http.Request) {
	Status(f.status, f.message)(w, r, nil)
}

// create opens a pull request from a branch, as far as a forge would.
func (r *Repo) create(pr PR, body string) (*pull, *refusal) {
	r.follow()
	head := ""
	if r.git != "" {
		head = r.head(pr.Branch)
	}
	switch {
	case head == "" || r.head(pr.Target) == "":
		return nil, &refusal{http.StatusUnprocessableEntity, "Validation Failed"}
	case head == r.head(pr.Target), strings.TrimSpace(pr.Title) == "":
		return nil, &refusal{http.StatusUnprocessableEntity, "Validation Failed"}
	case slices.ContainsFunc(r.prs, func(p *pull) bool { return p.open && p.Branch == pr.Branch && p.Target == pr.Target }):
		return nil, &refusal{http.StatusConflict, "a pull request for this branch exists already"}
	}
	r.last++
	now := r.github.tick()
	pr.SHA, pr.Author = head, "renderer-bot"
	p := &pull{PR: pr, number: r.last, open: true, made: true, body: body, created: now, updated: now}
	r.prs = append(r.prs, p)
	return p, nil
}

func (r *Repo) find(number string) (*pull, *refusal) {
	r.follow()
	for _, p := range r.prs {
		if fmt.Sprint(p.number) == number {
			return p, nil
		}
	}
	return nil, &refusal{http.StatusNotFound, "Not Found"}
}

// edit changes what is given.
func (p *pull) edit(r *Repo, title, body *string) {
	if title != nil && *title != "" {
		p.Title = *title
	}
	if body != nil {
		p.body = *body
	}
	p.updated = r.github.tick()
}

func (p *pull) label(r *Repo, names ...string) {
	for _, name := range names {
		if !slices.Contains(p.Labels, name) {
			p.Labels = append(p.Labels, name)
		}
		if !slices.Contains(r.labels, name) {
			r.labels = append(r.labels, name)
		}
	}
	p.updated = r.github.tick()
}

// A commit is what servers tell of one.
type commit struct {
	hash, tree, message string
	parents             []string
	author, committer   [2]string // name, address
	date                string
}

func (r *Repo) commit(hash string) (*commit, *refusal) {
	missing := &refusal{http.StatusNotFound, "Not Found"}
	if r.git == "" || strings.HasPrefix(hash, "-") {
		return nil, missing
	}
	out, err := r.run("show", "--no-patch", "--format=%H%x00%T%x00%P%x00%an%x00%ae%x00%cn%x00%ce%x00%cI%x00%B", hash)
	fields := strings.SplitN(out, "\x00", 9)
	if err != nil || len(fields) < 9 {
		return nil, missing
	}
	return &commit{
		hash: fields[0], tree: fields[1], parents: strings.Fields(fields[2]), author: [2]string{fields[3], fields[4]},
		committer: [2]string{fields[5], fields[6]}, date: fields[7], message: strings.TrimRight(fields[8], "\n") + "\n",
	}, nil
}
