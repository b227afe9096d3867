// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"resourceset.example/renderer/internal/schedule"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/gitwriter"
	"resourceset.example/renderer/pkg/source"
)

// readDefinitions brings the definitions up to date. When they cannot be read,
// the last good ones stand, and the error says so; r.defs is nil while there were
// never any.
func (r *Reconciler) readDefinitions(ctx context.Context) error {
	err := r.fetchDefinitions(ctx)
	now := r.now()
	if err != nil {
		r.sourceFailures++
		r.sourceErr = err
		r.sourceDue = now.Add(jitter(min(schedule.Backoff(r.sourceFailures), max(r.cfg.Source.Interval, time.Minute))))
		return err
	}
	r.sourceFailures, r.sourceErr = 0, nil
	r.sourceDue = now.Add(r.cfg.Source.Interval)
	return nil
}

func (r *Reconciler) fetchDefinitions(ctx context.Context) error {
	if r.definitions != nil {
		return r.takeDefinitions(ctx)
	}
	seen := r.seen
	head, err := r.source.Fetch(ctx)
	if err != nil {
		return fmt.Errorf("source repository: %w", err)
	}
	return r.readAt(ctx, head, seen)
}

// definitionsOlder reports whether another writer may know newer definitions than
// we do: it has changed what is committed since they were read. What it added for them
// would be removed, and what it rendered from them taken back (DESIGN, rule 10).
func (r *Reconciler) definitionsOlder(base *gitwriter.Snapshot) bool {
	return r.definitions == nil && r.sourceSeen < r.seen && (!r.cfg.SameTree() || r.defs.hash != base.Hash())
}

// readAgain reads the definitions after the commit that a plan is made on.
func (r *Reconciler) readAgain(ctx context.Context, base *gitwriter.Snapshot) error {
	if r.cfg.SameTree() {
		return r.readAt(ctx, base, r.seen) // the mirror is busy with a push, maybe
	}
	return r.readDefinitions(ctx)
}

// readAt reads the definitions at head, which was fetched when r.seen was seen.
func (r *Reconciler) readAt(ctx context.Context, head *gitwriter.Snapshot, seen uint64) error {
	r.sourceHead, r.sourceRead = head, r.now()
	if r.defs != nil && r.defs.hash == head.Hash() {
		r.sourceSeen = seen
		return nil
	}
	if head.Tree() == nil {
		return &emptySourceError{URL: r.cfg.Source.URL, Branch: r.cfg.Source.Branch}
	}
	if err := r.verify(head); err != nil {
		return err
	}
	opts := source.Options{Path: r.cfg.Source.Path}
	if r.cfg.SameTree() {
		opts.Exclude = r.cfg.Target.Path
	}
	defs, err := r.reader.Read(ctx, head.Tree(), opts)
	if err != nil {
		return fmt.Errorf("definitions at %s: %w", revisionOf(r.cfg.Source.Branch, head.Hash().String()), err)
	}
	r.defs = &definitions{
		Definitions: defs, hash: head.Hash(), configMaps: defs.ConfigMapsByName(),
		revision: revisionOf(r.cfg.Source.Branch, head.Hash().String()),
	}
	r.sourceSeen = seen
	r.syncProviders(defs)
	r.learnCredentials(ctx, defs)
	r.log.Debug("read definitions", "revision", r.defs.revision,
		"resourcesets", len(defs.ResourceSets), "providers", len(defs.Providers), "faults", len(defs.Faults))
	return nil
}

// revisionOf is a revision in Flux's form.
func revisionOf(branch, hash string) string { return branch + "@sha1:" + hash }

// definitionProblems are the faults that kept definitions from being read. Each
// names its file and line. With flux, ResourceSets are handed to Flux.
func (d *definitions) definitionProblems(flux bool) (problems, warnings []*Problem) {
	for _, f := range d.Faults {
		problems = append(problems, faultProblem(f))
	}
	for _, f := range slices.Concat(d.Warnings, api.Unsupported(d.Definitions, FetchedTypes(), flux)) {
		warnings = append(warnings, faultProblem(f))
	}
	return problems, warnings
}

func faultProblem(f *api.Fault) *Problem {
	object := f.Object
	if object == "" {
		object = "definitions " + f.Pos.File
	}
	return &Problem{Pos: f.Pos, Object: object, Err: f}
}

// An emptySourceError is a branch that does not exist or has no commit.
type emptySourceError struct{ URL, Branch string }

func (e *emptySourceError) Error() string {
	return fmt.Sprintf("source repository: there is no branch %q", e.Branch)
}

// Suggestion is what to do about it.
func (e *emptySourceError) Suggestion() string {
	return "push the definitions to that branch, or correct source.branch in the configuration"
}

// takeDefinitions takes definitions from somewhere else than the source branch:
// those that a preview asks about.
func (r *Reconciler) takeDefinitions(ctx context.Context) error {
	defs, err := r.definitions(ctx)
	if err != nil {
		return fmt.Errorf("definitions: %w", err)
	}
	r.sourceRead = r.now()
	r.defs = &definitions{Definitions: defs, revision: "preview", configMaps: defs.ConfigMapsByName()}
	r.syncProviders(defs)
	return nil
}
