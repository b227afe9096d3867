// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/forge"
	"resourceset.example/renderer/internal/schedule"
	"resourceset.example/renderer/pkg/gitwriter"
)

// A delivery brings changes to the target branch by pull requests (target.mode). Its
// only lasting state is what Git and the forge have: branches of ours, whose commits
// say in trailers what they propose, and requests with people's answers. What is
// remembered here saves questions.
type delivery struct {
	own    *gitwriter.Own
	scope  string // see branchScope
	client forgeClient
	made   string // what tells the secret and token that the client was made from
	// credentials are those of a GitHub App, where the secret is one.
	credentials *GitCredentials

	branches map[string]*branchState // by name
	listed   bool                    // the server's branches have been looked at since the start
	origins  map[string]origin       // by commit
	released map[string]string       // approved removals that wait to be merged, by ResourceSet
}

// branchState is what is remembered of one branch.
type branchState struct {
	settled string // what was the case when there was nothing left to do
	notice  string // what people should know about it meanwhile

	failures int
	due      time.Time // no further attempt before this, unless something else happens
	err      error
}

func (r *Reconciler) newDelivery() (*delivery, error) {
	own, err := r.target.Own(config.OwnBranches)
	if err != nil {
		return nil, fmt.Errorf("target.branch: %w", err)
	}
	return &delivery{
		own: own, scope: branchScope(r.cfg.Target.Branch, r.cfg.Target.Path),
		credentials: NewGitCredentials(r.cfg.Target.PullRequest.BaseURL+"/"+r.cfg.TargetRepository(),
			config.Auth{Secret: r.forgeSecret()}, r.secrets, r.redactor, r.userAgent),
		branches: map[string]*branchState{}, origins: map[string]origin{}, released: map[string]string{},
	}, nil
}

// nextDue is when a failed delivery is tried again; zero if none waits.
func (d *delivery) nextDue(now time.Time) time.Time {
	var next time.Time
	if d == nil {
		return next
	}
	for _, state := range d.branches {
		if state.due.After(now) && (next.IsZero() || state.due.Before(next)) {
			next = state.due
		}
	}
	return next
}

func (d *delivery) state(name string) *branchState {
	state := d.branches[name]
	if state == nil {
		state = &branchState{}
		d.branches[name] = state
	}
	return state
}

// writeByRequest is the last stage of a pass in mode pull-request. The target branch
// itself is never written to.
func (r *Reconciler) writeByRequest(ctx context.Context, p *pass, head *gitwriter.Snapshot) {
	err := r.withHistory(ctx, head, func(deeper *gitwriter.Snapshot) error {
		head = deeper
		_, err := r.planNewest(ctx, head, p)
		return err
	})
	if err != nil {
		p.fail("target", err)
		return
	}
	if err := r.deliver(ctx, p, head); err != nil {
		p.fail("target", fmt.Errorf("target repository: %w", err))
	}
	p.addPlans()
	p.report.Head = head.Hash().String()
	// Nothing is on the target branch yet, so nothing that was held back has been done.
	if err := r.remember(p, false); err != nil {
		p.report.Warnings = append(p.report.Warnings, &Problem{Object: "state folder", Err: err})
	}
}

// deliver brings the pull requests in line with the plans. What fails concerns one
// request: the others go on.
func (r *Reconciler) deliver(ctx context.Context, p *pass, head *gitwriter.Snapshot) error {
	d := r.delivery
	if head.Tree() == nil {
		return &noBaseError{Branch: r.cfg.Target.Branch}
	}
	proposals, err := r.proposals(p, head)
	if err != nil {
		return err
	}
	if len(proposals)+len(d.branches) == 0 && d.listed {
		return r.useApprovals(p)
	}
	heads, err := d.own.List(ctx)
	if err != nil {
		return fmt.Errorf("branches %s/*: %w", config.OwnBranches, err)
	}
	d.listed = true
	wanted := map[string]bool{}
	for _, pr := range proposals {
		wanted[pr.name] = true
		r.attempt(p, pr.name, heads[pr.name], pr.wanted+" "+pr.base+fmt.Sprint(pr.recorded), func(at plumbing.Hash) (plumbing.Hash, error) {
			return r.propose(ctx, p, pr, head, at)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(heads)) {
		if wanted[name] || !strings.HasSuffix(name, "-"+d.scope) {
			continue
		}
		wanted[name] = true
		why, idle := r.retirable(p, name)
		if !idle {
			d.state(name) // it stays in mind
			continue
		}
		r.attempt(p, name, heads[name], "retire "+why.wanted, func(at plumbing.Hash) (plumbing.Hash, error) {
			return r.retire(ctx, p, name, why, at)
		})
	}
	maps.DeleteFunc(d.branches, func(name string, _ *branchState) bool { return !wanted[name] })
	if len(d.origins) > maxOrigins {
		clear(d.origins) // it saves questions, no more
	}
	return r.useApprovals(p)
}

// attempt does what is to be done for one branch, unless that is done already, or has
// just failed and nothing but time has passed.
func (r *Reconciler) attempt(p *pass, name string, at plumbing.Hash, key string, act func(plumbing.Hash) (plumbing.Hash, error)) {
	d := r.delivery
	state := d.state(name)
	object := "pull request of " + d.own.Branch(name)
	switch {
	case state.settled == key+" "+at.String():
	case p.trigger == TriggerSchedule && state.err != nil && r.now().Before(state.due):
		p.fail(object, state.err)
		return
	default:
		state.notice = ""
		now, err := act(at)
		if err != nil {
			state.failures++
			state.err, state.settled = err, ""
			state.due = r.now().Add(jitter(schedule.Backoff(state.failures)))
			p.fail(object, err)
			return
		}
		*state = branchState{settled: key + " " + now.String(), notice: state.notice}
		if now.IsZero() {
			delete(d.branches, name)
		}
	}
	if state.notice != "" {
		p.report.Warnings = append(p.report.Warnings, &Problem{Object: object, Err: noticeError(state.notice)})
	}
}

// propose makes branch and request of a proposal what they should be, and returns the
// branch's head. While the forge's API is down the branch is pushed all the same.
func (r *Reconciler) propose(ctx context.Context, p *pass, pr *proposal, head *gitwriter.Snapshot, at plumbing.Hash) (plumbing.Hash, error) {
	if pr.recorded && !at.IsZero() {
		return at, nil // a provider has not answered since the start: the request may know more than we do
	}
	branch := r.delivery.own.Branch(pr.name)
	var req *forge.Request
	client, forgeErr := r.forgeClient(ctx)
	if forgeErr == nil {
		req, forgeErr = client.Find(ctx, branch)
	}
	if req != nil && req.State != forge.Open {
		answered, err := r.answered(ctx, client, req, pr.wanted)
		if err != nil {
			return at, err
		}
		if answered {
			r.delivery.branches[pr.name].notice = answerNotice(req)
			return at, nil
		}
	}
	from, err := r.originOf(ctx, client, at)
	if err != nil {
		return at, cmp.Or(forgeErr, err)
	}
	current := !at.IsZero() && from.wanted == pr.wanted && from.base == pr.base
	switch {
	case current:
	case from.others:
		return at, &foreignBranchError{Branch: branch, Request: req}
	default:
		if at, err = r.pushProposal(ctx, pr, head, at); err != nil {
			return at, err
		}
	}
	if forgeErr != nil {
		return at, forgeErr
	}
	return at, r.request(ctx, p, client, pr, req, head)
}

func (r *Reconciler) pushProposal(ctx context.Context, pr *proposal, head *gitwriter.Snapshot, at plumbing.Hash) (plumbing.Hash, error) {
	if err := r.verifyBase(head); err != nil {
		return at, err
	}
	d := r.delivery
	pushed, err := d.own.Push(ctx, pr.name, at, head, pr.commits)
	if err != nil {
		return at, err
	}
	d.origins[pushed.String()] = origin{wanted: pr.wanted, base: pr.base}
	delete(d.origins, at.String())
	r.log.Info("pushed a proposal", "branch", d.own.Branch(pr.name), "commit", pushed.String(), "base", head.Hash().String())
	return pushed, nil
}

// request opens the request, or updates the open one if it says something else. What
// people change in the text of a request that is up to date stays as they like it.
func (r *Reconciler) request(ctx context.Context, p *pass, client forgeClient, pr *proposal, req *forge.Request, head *gitwriter.Snapshot) error {
	content := r.content(pr, head)
	branch := r.delivery.own.Branch(pr.name)
	action := "updated"
	switch {
	case req == nil || req.State != forge.Open:
		var err error
		if req, err = client.Create(ctx, branch, content); req == nil {
			return err
		}
		action = "opened"
		if err != nil { // it is there, without its labels
			r.reportRequest(p, branch, action, req)
			return err
		}
	case !strings.Contains(req.Body, mark(pr)):
		if err := client.Update(ctx, req, content); err != nil {
			return err
		}
	case len(req.Lacks(content.Labels)) > 0:
		return client.Update(ctx, req, forge.Content{Title: req.Title, Body: req.Body, Labels: content.Labels})
	default:
		return nil
	}
	r.reportRequest(p, branch, action, req)
	return nil
}

func (r *Reconciler) reportRequest(p *pass, branch, action string, req *forge.Request) {
	p.report.Requests = append(p.report.Requests, RequestReport{Branch: branch, Action: action, Number: req.Number, URL: req.URL})
	r.log.Info(action+" a pull request", "branch", branch, "number", req.Number, "url", req.URL)
}

// answered reports whether a closed request proposed exactly this: then it is
// answered. A merged one counts as well, for either the target branch that we look at
// is older than the merge, or somebody has undone it since.
func (r *Reconciler) answered(ctx context.Context, client forgeClient, req *forge.Request, wanted string) (bool, error) {
	if strings.Contains(req.Body, withdrawn) {
		return false, nil
	}
	if proposes(req.Body, wanted) {
		return true, nil
	}
	from, err := r.originOf(ctx, client, plumbing.NewHash(req.Head))
	return from.wanted == wanted, err
}

// maxOrigins bounds what is remembered of commits, most of which are old news.
const maxOrigins = 10_000

// maxOwnDepth is how many commits of others are looked through for one of ours.
const maxOwnDepth = 20

// originOf says what the branch at a commit proposes, and whether people have worked
// on it.
func (r *Reconciler) originOf(ctx context.Context, client forgeClient, at plumbing.Hash) (origin, error) {
	if at.IsZero() {
		return origin{}, nil
	}
	if found, ok := r.delivery.origins[at.String()]; ok {
		return found, nil
	}
	if client == nil {
		return origin{}, fmt.Errorf("commit %s of our branch is not known", at)
	}
	found := origin{others: true}
	others := false
	for hash, depth := at.String(), 0; depth < maxOwnDepth && hash != ""; depth++ {
		commit, err := client.Commit(ctx, hash)
		if err != nil {
			return origin{}, err
		}
		ours := commit.CommitterName == r.cfg.Target.Commit.Author.Name && commit.CommitterEmail == r.cfg.Target.Commit.Author.Email
		if wanted := trailerOf(commit.Message, trailerProposal); wanted != "" {
			found = origin{wanted: wanted, base: trailerOf(commit.Message, trailerBase), others: others || !ours}
			break
		}
		others = others || len(commit.Parents) < 2
		hash = ""
		if len(commit.Parents) > 0 {
			hash = commit.Parents[0]
		}
	}
	r.delivery.origins[at.String()] = found
	return found, nil
}
