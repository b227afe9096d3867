// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/internal/listing"
	"resourceset.example/renderer/internal/schedule"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/gitwriter"
)

// A request is why a pass is done, and what it shall fetch beyond what is due.
type request struct {
	trigger string
	targets []Target
}

// A pass is one run of the loop's four stages.
type pass struct {
	request
	report *Report
	flux   bool         // ResourceSets are handed to Flux
	defs   *definitions // that the plans are made from; nil without any
	plans  []*plan      // of the last attempt to write

	root    *listing.List       // of the target path, as the last attempt found it
	held    map[string]HeldPlan // by ResourceSet
	settled map[string]bool     // ResourceSets of which nothing is held; true when all providers agree
}

// pass runs the stages. Whatever fails is in the report; what it concerns stays
// as it is committed.
func (r *Reconciler) pass(ctx context.Context, req request) *Report {
	began := r.now()
	r.mu.Lock()
	r.began = began
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.began = time.Time{}
		r.mu.Unlock()
	}()

	r.trigger = req.trigger
	p, head := r.prepare(ctx, req)
	if head != nil {
		if r.delivery != nil {
			r.writeByRequest(ctx, p, head)
		} else {
			r.write(ctx, p, head)
		}
		p.addProviders(r)
	}
	report := p.finish()
	report.Began, report.Ended = began, r.now()
	status := r.statusOf(p)
	r.mu.Lock()
	r.status = status
	r.mu.Unlock()
	return report
}

// prepare does all of a pass but the writing: it reads the definitions, looks at
// the target and fetches what is due. The snapshot is nil when one of the first two
// failed.
func (r *Reconciler) prepare(ctx context.Context, req request) (*pass, *gitwriter.Snapshot) {
	p := &pass{request: req, report: &Report{}, flux: r.cfg.Target.Flux != nil}
	before := r.defs
	sourceRead := r.sourceIsDue(req)
	if sourceRead {
		if err := r.readDefinitions(ctx); err != nil {
			p.fail("definitions", err)
		}
	} else if r.sourceErr != nil {
		p.fail("definitions", r.sourceErr)
	}
	if r.defs == nil {
		return p, nil // nothing was ever read: nothing can be said about what is committed
	}
	if before != nil && before != r.defs && (req.trigger == TriggerSchedule || req.trigger == TriggerWebhook && len(req.targets) == 0) {
		p.trigger = TriggerSource
	}
	p.defs = r.defs

	// The listings must not be older than the commits that they are compared with,
	// so the target's head is looked at before anything is fetched.
	head, err := r.targetHead(ctx, sourceRead)
	if err != nil {
		p.fail("target", fmt.Errorf("target repository: %w", err))
		return p, nil
	}
	if err := r.scan(head); err != nil {
		p.fail("target", err)
		return p, nil
	}
	r.fetch(ctx, r.dueProviders(req), r.patience)
	if p.trigger == TriggerSchedule || p.trigger == TriggerSource {
		p.trigger = foremost(p.trigger, r.cause)
	}
	r.cause = ""
	return p, head
}

func (p *pass) fail(object string, err error) {
	p.report.Problems = append(p.report.Problems, &Problem{Object: object, Err: err})
}

func (p *pass) finish() *Report {
	if p.defs != nil {
		p.report.Revision, p.report.Annotations = p.defs.revision, eventAnnotations(p.defs.Definitions)
		problems, warnings := p.defs.definitionProblems(p.flux)
		p.report.Problems = append(p.report.Problems, problems...)
		p.report.Warnings = append(p.report.Warnings, warnings...)
	}
	sortProblems(p.report.Problems)
	sortProblems(p.report.Warnings)
	p.report.Trigger = p.trigger
	return p.report
}

// addProviders reports the providers that failed, and what the others said.
func (p *pass) addProviders(r *Reconciler) {
	for _, state := range r.providers {
		if disabled(state.object.Annotations) {
			continue
		}
		if state.err != nil {
			p.report.Problems = append(p.report.Problems, &Problem{
				Pos: state.object.Pos, Object: state.object.String(), Err: state.err,
			})
		}
		for _, w := range state.warnings {
			p.report.Warnings = append(p.report.Warnings, &Problem{
				Pos: state.object.Pos, Object: state.object.String(), Err: errors.New(w),
			})
		}
	}
}

// addPlans reports what the plans could not do.
func (p *pass) addPlans() {
	for _, plan := range p.plans {
		p.report.Problems = append(p.report.Problems, plan.problems...)
		p.report.Warnings = append(p.report.Warnings, plan.warnings...)
	}
}

// addRoot reports what others added to the list of the target path.
func (p *pass) addRoot(file string) {
	if p.root != nil && len(p.root.Added)+len(p.root.Fields) > 0 {
		p.report.Warnings = append(p.report.Warnings, &Problem{Object: "target", Err: &listError{File: file, Added: p.root.Added, Fields: p.root.Fields}})
	}
}

// sourceIsDue: a webhook that names anything but providers and ResourceSets
// speaks of the definitions.
func (r *Reconciler) sourceIsDue(req request) bool {
	if r.defs == nil || req.trigger != TriggerSchedule && req.trigger != TriggerWebhook {
		return true
	}
	for _, t := range req.targets {
		if t.Kind != api.KindInputProvider && t.Kind != api.KindResourceSet {
			return true
		}
	}
	return !r.now().Before(r.sourceDue)
}

// dueProviders are the providers that a pass fetches, in the order of their names.
func (r *Reconciler) dueProviders(req request) []*providerState {
	asked := r.askedFor(req)
	var due []*providerState
	for key, p := range r.providers {
		d := r.decide(p)
		if d.Missed.After(p.missed) {
			p.missed = d.Missed
			r.log.Warn("missed a scheduled fetch: its window has passed", "provider", key, "scheduled", d.Missed.UTC().Format(time.RFC3339))
		}
		if p.fetching {
			continue
		}
		if d.Due || d.Allowed && asked[key] {
			due = append(due, p)
		}
	}
	slices.SortFunc(due, func(a, b *providerState) int {
		return strings.Compare(a.object.NamespacedName(), b.object.NamespacedName())
	})
	return due
}

// askedFor are the providers that somebody wants fetched now: all of them with
// --once and on demand; those that a webhook names, itself or through a ResourceSet.
func (r *Reconciler) askedFor(req request) map[string]bool {
	asked := map[string]bool{}
	if req.trigger == TriggerOnce || req.trigger == TriggerManual {
		for key := range r.providers {
			asked[key] = true
		}
		return asked
	}
	for _, t := range req.targets {
		switch t.Kind {
		case api.KindInputProvider:
			asked[t.Namespace+"/"+t.Name] = true
		case api.KindResourceSet:
			for _, rs := range r.defs.ResourceSets {
				if rs.Namespace == t.Namespace && rs.Name == t.Name {
					for _, p := range r.matching(rs) {
						asked[p.NamespacedName()] = true
					}
				}
			}
		}
	}
	return asked
}

// targetHead is the target branch as it is now. Where source and target are one
// branch, and it has just been read, that is it.
func (r *Reconciler) targetHead(ctx context.Context, sourceRead bool) (*gitwriter.Snapshot, error) {
	if sourceRead && r.definitions == nil && r.source == r.target && r.sourceErr == nil {
		return r.sourceHead, nil
	}
	head, err := r.target.Fetch(ctx)
	if err == nil && head.Hash().IsZero() && !r.target.Snapshot().Hash().IsZero() {
		return nil, &lostBranchError{Branch: r.cfg.Target.Branch, State: r.cfg.State.Directory}
	}
	return head, err
}

// A lostBranchError is a target branch that was there and is not any more. Begun
// anew it would hold only what can be rendered now: all that was kept for failing
// inputs or by the prune guard would be gone, and with it, in the cluster, the rest.
type lostBranchError struct{ Branch, State string }

func (e *lostBranchError) Error() string {
	return fmt.Sprintf("branch %q was there before, and is gone", e.Branch)
}

// Suggestion is what to do about it.
func (e *lostBranchError) Suggestion() string {
	return "push the branch again; if it is meant to begin anew, stop renderer and remove " + e.State
}

// write makes the target tree equal to the plan. A pass without changes does not
// talk to the server again.
func (r *Reconciler) write(ctx context.Context, p *pass, head *gitwriter.Snapshot) {
	var result gitwriter.Result
	err := r.withHistory(ctx, head, func(head *gitwriter.Snapshot) (err error) {
		result, err = r.planAndPush(ctx, p, head)
		return err
	})
	if err != nil {
		p.fail("target", fmt.Errorf("target repository: %w", err))
	}
	p.addPlans()
	p.addRoot(path.Join(r.cfg.Target.Path, kustomizationFile))
	if err == nil {
		r.landed(p, result)
	}
	held := slices.ContainsFunc(p.plans, func(pl *plan) bool { return pl.takenBack })
	if err == nil && len(result.Commits) == 0 && result.New == r.scanned && !held {
		r.accepted.setHead(result.New) // a folder that is not there is known not to be, too
	}
	if err := errors.Join(r.remember(p, len(result.Commits) > 0), r.accepted.save()); err != nil {
		p.report.Warnings = append(p.report.Warnings, &Problem{Object: "state folder", Err: err})
	}
}

// withHistory calls f with head, and again with more history below the head as long
// as it asks for it.
func (r *Reconciler) withHistory(ctx context.Context, head *gitwriter.Snapshot, f func(head *gitwriter.Snapshot) error) error {
	r.past, r.wholePast = nil, false
	err := f(head)
	for _, n := range lookback() {
		if !errors.Is(err, errNeedHistory) {
			return err
		}
		deeper, deepenErr := r.target.Deepen(ctx, n)
		if deepenErr != nil {
			return deepenErr
		}
		if err = r.scan(deeper); err != nil {
			return err
		}
		r.past, r.wholePast = nil, n == maxLookback()
		err = f(deeper)
	}
	return err
}

// planNewest plans from definitions that are not older than what another writer has
// committed (DESIGN, rule 10). Where they cannot be read again, nothing is written.
func (r *Reconciler) planNewest(ctx context.Context, base *gitwriter.Snapshot, p *pass) ([]gitwriter.Commit, error) {
	commits, err := r.plan(ctx, base, p)
	if err != nil || len(commits) == 0 || !r.definitionsOlder(base) {
		return commits, err
	}
	if r.sourceSeen > 0 { // at first nothing is known of what was committed before
		r.log.Info("reading the definitions again: another writer has changed what is committed since", "revision", r.defs.revision)
	}
	if err := r.readAgain(ctx, base); err != nil {
		return nil, fmt.Errorf("the definitions may be older than what another writer committed: %w", err)
	}
	p.defs = r.defs
	return r.plan(ctx, base, p)
}

// planAndPush computes what is to be committed on head and pushes it, if it is anything.
func (r *Reconciler) planAndPush(ctx context.Context, p *pass, head *gitwriter.Snapshot) (gitwriter.Result, error) {
	commits, err := r.planNewest(ctx, head, p)
	if err != nil || len(commits) == 0 {
		return gitwriter.Result{New: head.Hash()}, err
	}
	if !r.mayPush() {
		return gitwriter.Result{New: head.Hash()}, r.pushErr
	}
	return r.push(ctx, p, head, commits)
}

// push pushes the commits that were planned on head; where the branch has moved
// meanwhile, the plan is made again on what is there then.
func (r *Reconciler) push(ctx context.Context, p *pass, head *gitwriter.Snapshot, commits []gitwriter.Commit) (gitwriter.Result, error) {
	if err := r.verifyBase(head); err != nil {
		return gitwriter.Result{}, err
	}
	result, err := r.target.Update(ctx, func(ctx context.Context, base *gitwriter.Snapshot) ([]gitwriter.Commit, error) {
		if base.Hash() == head.Hash() {
			return commits, nil
		}
		if base.Hash().IsZero() {
			return nil, &lostBranchError{Branch: r.cfg.Target.Branch, State: r.cfg.State.Directory}
		}
		if err := r.verifyBase(base); err != nil {
			return nil, err
		}
		if err := r.scan(base); err != nil {
			return nil, err
		}
		return r.planNewest(ctx, base, p)
	})
	if errors.Is(err, errNeedHistory) {
		return gitwriter.Result{}, err
	}
	if err != nil {
		r.pushFailures++
		r.pushErr = err
		r.pushDue = r.now().Add(jitter(schedule.Backoff(r.pushFailures)))
		return gitwriter.Result{}, r.pushErr
	}
	r.pushFailures, r.pushErr, r.pushDue = 0, nil, time.Time{}
	return result, nil
}

// mayPush keeps a refused push from being tried again at every tick; whatever
// else happens (a new commit, a webhook) is worth a try.
func (r *Reconciler) mayPush() bool {
	return r.trigger != TriggerSchedule || !r.now().Before(r.pushDue)
}

// landed records what a push did.
func (r *Reconciler) landed(p *pass, result gitwriter.Result) {
	p.report.Head = result.New.String()
	p.report.Lost = max(result.Attempts-1, 0)
	if len(result.Commits) == 0 {
		return
	}
	n := 0
	for _, plan := range p.plans {
		if plan.commits == 0 {
			continue
		}
		c := CommitReport{ResourceSet: plan.name, Message: withoutTrailers(plan.message)}
		for _, change := range plan.changes {
			switch change.Kind {
			case added:
				c.Added++
			case updated:
				c.Updated++
			case removed:
				c.Removed++
			}
		}
		if n < len(result.Commits) {
			c.Hash = result.Commits[n].String()
		}
		if !r.perPass() {
			n++
		}
		p.report.Commits = append(p.report.Commits, c)
		r.log.Info("pushed", "resourceset", c.ResourceSet, "commit", c.Hash, "added", c.Added, "updated", c.Updated,
			"removed", c.Removed, "trigger", p.trigger, "revision", p.defs.revision)
		r.wrote(plan, result.New)
	}
	if !r.perPass() && n < len(result.Commits) || r.perPass() && len(p.report.Commits) == 0 {
		hash := result.Commits[len(result.Commits)-1].String()
		p.report.Commits = append(p.report.Commits, CommitReport{Hash: hash, Message: onlyListed})
		r.log.Info("listed only the ResourceSets that there are", "commit", hash, "trigger", p.trigger)
	}
	if p.report.Lost > 0 {
		r.log.Info("pushed after another writer", "attempts", result.Attempts, "head", p.report.Head)
	}
}

// wrote takes over what our own push left in Git, so that the next scan does not
// take it for somebody else's. A folder in which something is held as a person left
// it is never ours altogether.
func (r *Reconciler) wrote(plan *plan, head plumbing.Hash) {
	if plan.removed && plan.out == nil {
		delete(r.committed, plan.dir)
		delete(r.written, plan.dir)
		r.accepted.set(plan.dir, plumbing.ZeroHash)
		return
	}
	if state := r.sets[plan.name]; state != nil {
		r.written[plan.dir] = written{rs: state.rs, looked: plan.looked, inputs: plan.lock.InputsDigest(), lock: plan.lockHash}
	}
	c := &committed{dir: plan.dir, hash: plan.lockHash, lock: plan.lock}
	r.committed[plan.dir] = c
	r.accepted.set(plan.dir, plumbing.ZeroHash)
	at := r.target.Snapshot()
	if at == nil || at.Hash() != head || plan.takenBack || !plan.lists.inOrder() {
		return // the next pass looks for itself
	}
	tree, err := r.folderHash(at, plan.dir)
	if err != nil {
		return
	}
	c.tree = tree
	r.accepted.set(plan.dir, tree)
}
