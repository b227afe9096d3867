// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/expand"
	"resourceset.example/renderer/pkg/gitwriter"
)

// setState is what is remembered of one ResourceSet between passes.
type setState struct {
	rs      *api.ResourceSet
	program *expand.Program
	err     error // of compiling
	plan    *plan // the last one, if the same reasons would give it again
}

// A plan is what a pass makes of one ResourceSet's folder.
type plan struct {
	name     string // namespace/name
	object   string // as messages name it
	dir      string // below the target path
	previous *committed

	// key holds all that the plan was made from besides the definition; equal keys
	// give equal plans. Empty when the plan must not be used again.
	key string
	// looked are the ConfigMaps of the definitions that it was made from as well. What they
	// are is known only from the rendering, so they cannot be part of the key.
	looked map[string]*api.ConfigMap

	sets       []expand.Set
	rendering  *expand.Rendering
	params     expand.LayoutParams
	out        *expand.Output // nil: the folder stays as it is committed
	files      []string       // what is in the folder afterwards, for claims of ownership
	removed    bool           // the ResourceSet is gone: so is the folder, or with out all that it applies
	swept      bool           // removed is the folder of one that went earlier: nothing is applied from it
	pos        api.Position   // of the definition
	fetched    time.Time      // when the oldest listing that the plan rests on was made
	recorded   bool           // some provider has not answered since the start, and counts with what inputs.lock recorded
	current    bool           // every provider has answered, and none has failed since
	released   string         // digest of a removal that was held back and is released
	releasedBy string
	approval   string            // that it was released by, as the commit names it
	takenBack  bool              // something in it is held as a person left it
	restores   string            // commit of the hand edit that the plan undoes
	undone     map[string]string // why a set is written anew although its record stays
	indexed    bool              // files are in the claim index
	lists      listed

	problems []*Problem
	warnings []*Problem

	commits  int // 1 when the plan gives a commit
	changes  []setChange
	message  string
	lock     *expand.Lock  // after the commit
	lockHash plumbing.Hash // after the commit
}

func (pl *plan) fail(pos api.Position, set string, err error) {
	for _, e := range unjoin(err) {
		pl.problems = append(pl.problems, &Problem{Pos: pos, Object: pl.object, Set: set, Err: e})
	}
}

// leave makes the plan that changes nothing.
func (pl *plan) leave() *plan {
	pl.out = nil
	pl.files = nil
	if pl.previous != nil {
		pl.files = slices.Collect(maps.Keys(pl.previous.lock.Files()))
	}
	return pl
}

func (pl *plan) changed() bool {
	return pl.removed || pl.out != nil && pl.out.Changed() || pl.lists.write != nil || pl.lists.inRoot
}

// plan computes the commits that make the target path at base what it should be.
func (r *Reconciler) plan(ctx context.Context, base *gitwriter.Snapshot, p *pass) ([]gitwriter.Commit, error) {
	p.plans, r.base = nil, base
	root, err := r.readRoot(base)
	if err != nil {
		return nil, err
	}
	wanted := make(map[string]bool, len(r.defs.ResourceSets))
	for _, rs := range inOrder(r.defs.ResourceSets) {
		dir := expand.Dir(rs)
		wanted[dir] = true
		pl := r.planFresh(ctx, rs, dir, p.plans)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := r.respect(pl, base, root); err != nil {
			return nil, err
		}
		if !pl.takenBack {
			if err := r.agree(pl, rs, base); err != nil { // what a person took back is not another renderer's
				return nil, err
			}
		}
		if !pl.changed() {
			pl.slim() // at once: all renderings together would fill the memory
		}
		p.plans = append(p.plans, pl)
	}
	for _, dir := range slices.Sorted(maps.Keys(r.committed)) {
		if wanted[dir] {
			continue
		}
		pl := r.planGone(r.committed[dir])
		if err := r.respect(pl, base, root); err != nil {
			return nil, err
		}
		p.plans = append(p.plans, pl)
	}
	if err := r.guard(p, base); err != nil {
		return nil, err
	}
	r.settle(p.plans)
	r.handOver(p.plans)
	r.preflight(p.plans)
	r.forget(wanted)
	for _, pl := range p.plans {
		r.settleLists(pl)
		if !pl.changed() {
			pl.slim()
		}
	}
	p.root = root.list
	commits := r.commits(p, root)
	if r.delivery == nil {
		commits = append(commits, r.unlist(p, root)...)
	}
	return commits, nil
}

// planFresh plans from listings that are newer than what others have committed:
// where somebody else has written to the folder since, and something would change,
// the providers are asked again first (DESIGN, rule 10).
func (r *Reconciler) planFresh(ctx context.Context, rs *api.ResourceSet, dir string, earlier []*plan) *plan {
	pl := r.planSet(ctx, rs, dir, earlier)
	c := r.committed[dir]
	if c == nil || !pl.changed() {
		return pl
	}
	// An answer that was awaited already may rest on a listing as old as the one before.
	again := false
	for range 2 {
		old := r.olderThan(c, rs)
		if len(old) == 0 {
			break
		}
		r.log.Info("listing again: another writer has changed the folder since", "resourceset", pl.name, "providers", len(old))
		r.fetch(ctx, old, 0)
		again = true
	}
	if old := r.olderThan(c, rs); len(old) > 0 {
		stale := &plan{name: rs.NamespacedName(), object: rs.String(), dir: dir, pos: rs.Pos, previous: c}
		stale.fail(rs.Pos, "", &staleListingError{Provider: old[0].object.String(), Err: old[0].err})
		return stale.leave()
	}
	if again {
		return r.planSet(ctx, rs, dir, earlier)
	}
	return pl
}

// olderThan are the providers of a ResourceSet whose listing began before what another
// writer has committed to its folder was seen.
func (r *Reconciler) olderThan(c *committed, rs *api.ResourceSet) []*providerState {
	var old []*providerState
	for _, obj := range r.matching(rs) {
		if p := r.providers[obj.NamespacedName()]; p != nil && p.answered && p.listed < c.foreign && !disabled(obj.Annotations) {
			old = append(old, p)
		}
	}
	return old
}

// A staleListingError is why a ResourceSet stays as another writer has committed it.
type staleListingError struct {
	Provider string
	Err      error // why it cannot be listed again; nil if it has not answered yet
}

func (e *staleListingError) Error() string {
	text := "another renderer has written here since " + e.Provider + " was listed, and it cannot be listed again"
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap is why.
func (e *staleListingError) Unwrap() error { return e.Err }

// Suggestion says that there is nothing to do.
func (e *staleListingError) Suggestion() string {
	return "what is committed stands, and nothing older replaces it; it goes on with the next answer"
}

// planSet plans one ResourceSet that is defined, after those that it depends on.
func (r *Reconciler) planSet(ctx context.Context, rs *api.ResourceSet, dir string, earlier []*plan) *plan {
	pl := &plan{name: rs.NamespacedName(), object: rs.String(), dir: dir, pos: rs.Pos, previous: r.committed[dir]}
	var previous *expand.Lock
	if pl.previous != nil {
		if pl.previous.err != nil {
			pl.fail(rs.Pos, "", pl.previous.err)
			return pl.leave()
		}
		previous = pl.previous.lock
	}
	if disabled(rs.Annotations) {
		return pl.leave()
	}
	state := r.state(rs)
	if state.err != nil {
		pl.fail(rs.Pos, "", state.err)
		return pl.leave()
	}
	used, err := expand.SelectProviders(rs, r.defs.Providers)
	if err != nil {
		pl.fail(rs.Pos, "", err)
		return pl.leave()
	}
	in, err := r.exports(previous, used)
	if errors.Is(err, errWaiting) {
		return pl.leave()
	}
	if err != nil {
		pl.fail(rs.Pos, "", err)
		return pl.leave()
	}
	pl.fetched, pl.current, pl.recorded = in.fetched, in.current, in.recorded
	if len(used) == 0 {
		pl.fetched = r.sourceRead // inline inputs are listed with the definitions
	}
	after, err := r.after(rs, earlier)
	if err != nil {
		pl.fail(rs.At("spec.dependsOn"), "", err)
		return pl.leave()
	}
	flux := r.fluxParams(dir, after)
	pl.key = pl.keyOf(in, r.defs.complete()) + fluxKey(previous, flux)
	if state.plan != nil && state.plan.key == pl.key && r.defs.have(state.plan.looked) && r.accepted.is(dir, treeOf(pl.previous)) {
		return state.plan
	}
	r.render(ctx, pl, state, in, flux)
	if !pl.changed() && pl.key != "" && ctx.Err() == nil {
		state.plan = pl
	} else {
		state.plan = nil
	}
	return pl
}

// have says whether the definitions still hold the very same ConfigMaps.
func (d *definitions) have(looked map[string]*api.ConfigMap) bool {
	for name, c := range looked {
		if d.configMaps[name] != c {
			return false
		}
	}
	return true
}

// treeOf is the tree of a committed folder; zero when there is none.
func treeOf(c *committed) plumbing.Hash {
	if c == nil {
		return plumbing.ZeroHash
	}
	return c.tree
}

// slim drops what only a plan that changes something needs.
func (pl *plan) slim() { pl.sets, pl.rendering, pl.params = nil, nil, expand.LayoutParams{} }

// keyOf names what a plan is made from.
func (pl *plan) keyOf(in *exported, complete bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "complete=%t lock=", complete)
	if pl.previous != nil {
		b.WriteString(pl.previous.hash.String())
	}
	for _, v := range in.versions {
		b.WriteByte(' ')
		b.WriteString(v)
	}
	return b.String()
}

// render fills in what the folder should be.
func (r *Reconciler) render(ctx context.Context, pl *plan, state *setState, in *exported, flux *expand.FluxParams) {
	rs := state.rs
	sets, err := state.program.Sets(in.exports)
	if err != nil {
		pl.fail(rs.Pos, "", err)
		pl.leave()
		return
	}
	pl.sets = sets
	pl.rendering = state.program.Render(ctx, sets, expand.Options{Structure: expand.StructureEnforce, ConfigMaps: r.defs.configMaps})
	pl.looked = pl.rendering.Looked
	var previous *expand.Lock
	if pl.previous != nil {
		previous = pl.previous.lock
	}
	pl.params = expand.LayoutParams{
		ResourceSet: rs, Sets: sets, Rendering: pl.rendering, Previous: previous,
		Read:      state.program.Fields().Project,
		Keep:      r.unreadable(previous, in),
		Refused:   map[string]error{},
		Flux:      flux,
		Encode:    r.encode,
		Sensitive: in.sensitive, AllowPlainSecrets: r.cfg.Secrets.AllowPlainOutput,
	}
	r.layOut(pl)
	r.refuseCredentials(pl)
}

// maxFailedSets is how many failed sets of one ResourceSet are reported one by one.
const maxFailedSets = 20

// layOut lays the rendering out as files; what cannot be stays as committed.
func (r *Reconciler) layOut(pl *plan) {
	out, err := expand.Layout(pl.params)
	if err != nil {
		pl.fail(pl.params.ResourceSet.Pos, "", err)
		pl.leave()
		return
	}
	pl.problems, pl.out = nil, out
	pl.files = slices.Collect(maps.Keys(out.Files))
	pl.warnings = nil
	for _, w := range slices.Concat(pl.rendering.Warnings, out.Warnings) {
		pl.warnings = append(pl.warnings, faultProblem(w))
	}
	for i, failed := range out.Failed {
		if i == maxFailedSets {
			pl.fail(pl.params.ResourceSet.Pos, "", fmt.Errorf("%d more input sets failed", len(out.Failed)-i))
			break
		}
		origin := ""
		if failed.Set >= 0 {
			origin = pl.sets[failed.Set].Origin
		}
		pl.fail(pl.params.ResourceSet.Pos, origin, failed.Err)
	}
	if pl.previous == nil && len(out.Failed) > 0 && pl.withoutManifests() {
		pl.leave() // a new ResourceSet of which nothing renders: no commit of its empty lists
	}
}

// refuseCredentials keeps our own credentials out of Git, wherever they came from
// (DESIGN, rule 8): the sets whose manifests hold one fail. Where one would be
// recorded all the same, the whole ResourceSet stays as committed.
func (r *Reconciler) refuseCredentials(pl *plan) {
	if pl.out == nil || !pl.out.Changed() {
		return
	}
	for _, file := range slices.Sorted(maps.Keys(pl.out.Write)) {
		if !expand.IsManifest(file) {
			continue
		}
		if secret, found := r.redactor.Contains(pl.out.Write[file]); found {
			pl.params.Refused[path.Base(file)] = &credentialError{File: path.Join(pl.dir, file), Secret: secret}
		}
	}
	if len(pl.params.Refused) > 0 {
		r.layOut(pl)
	}
	if pl.out == nil {
		return
	}
	for _, file := range slices.Sorted(maps.Keys(pl.out.Write)) {
		if expand.IsManifest(file) {
			continue
		}
		if secret, found := r.redactor.Contains(pl.out.Write[file]); found {
			pl.fail(pl.params.ResourceSet.Pos, "", &credentialError{File: path.Join(pl.dir, file), Secret: secret})
			pl.leave()
			return
		}
	}
}

// A credentialError is output that holds one of the credentials that renderer
// itself uses. It does not say the value.
type credentialError struct{ File, Secret string }

func (e *credentialError) Error() string {
	return fmt.Sprintf("%s would hold a value of the secret %s", e.File, e.Secret)
}

// Suggestion is what to do about it.
func (e *credentialError) Suggestion() string {
	return "a credential in Git is there for ever: reference a Secret in the cluster instead, and rotate this one if it was public before"
}

// planGone plans a folder whose ResourceSet is not defined. It goes only when
// every definition could be read (DESIGN, rule 3).
func (r *Reconciler) planGone(c *committed) *plan {
	pl := &plan{dir: c.dir, name: c.dir, previous: c, fetched: r.sourceRead, current: true}
	if c.lock != nil && c.lock.ResourceSet != "" {
		pl.name = c.lock.ResourceSet
	}
	pl.object = api.KindResourceSet + " " + pl.name
	switch {
	case c.err != nil:
		pl.fail(api.Position{}, "", fmt.Errorf("is not defined any more, and its files are unknown: %w", c.err))
		return pl.leave()
	case !r.defs.complete():
		return pl.leave()
	}
	if c.lock != nil && c.lock.Flux != nil {
		r.planGoneFlux(pl)
		return pl
	}
	pl.removed = true
	return pl
}

// state is the remembered state of rs, compiled.
func (r *Reconciler) state(rs *api.ResourceSet) *setState {
	key := rs.NamespacedName()
	if state := r.sets[key]; state != nil && state.rs == rs {
		return state
	}
	state := &setState{rs: rs}
	state.program, state.err = expand.Compile(rs)
	r.sets[key] = state
	return state
}

// forget drops what is remembered of ResourceSets that are gone.
func (r *Reconciler) forget(wanted map[string]bool) {
	for key, state := range r.sets {
		if !wanted[expand.Dir(state.rs)] {
			delete(r.sets, key)
		}
	}
	r.claims.keep(func(dir string) bool { return wanted[dir] || r.committed[dir] != nil })
}

// matching are the providers of a ResourceSet; none when a reference is wrong.
func (r *Reconciler) matching(rs *api.ResourceSet) []*api.ResourceSetInputProvider {
	used, err := expand.SelectProviders(rs, r.defs.Providers)
	if err != nil {
		return nil
	}
	return used
}

// unjoin takes joined errors apart.
func unjoin(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, unjoin(e)...)
		}
		return all
	}
	if err == nil {
		err = errors.New("unknown error")
	}
	return []error{err}
}
