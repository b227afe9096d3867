// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/expand"
)

// With target.flux, Flux Kustomizations of the ResourceSets' own apply the manifests.
// What they are like is decided in package expand; here is what only the loop knows:
// the time, what other ResourceSets have, and what is committed.
//
// A handover from one Kustomization to another has two commits, and the second one
// relies on Flux having applied the first. The program never asks the cluster; it
// waits for target.flux.handover, and the time at which a handover began is recorded
// in inputs.lock. See docs/decisions/0016-flux-kustomizations.md.

// fadedFactor is how many times target.flux.handover a Kustomization is kept that
// applies nothing any more and whose objects others have. It costs nothing, and a
// cluster that was away for that long finds it still there.
const fadedFactor = 24

// A handoverStart is when a handover was proposed first, from what was committed then.
type handoverStart struct {
	lock plumbing.Hash
	at   string
}

// fluxParams says how the ResourceSet of a folder is handed to Flux.
func (r *Reconciler) fluxParams(dir string, after []expand.FluxDependency) *expand.FluxParams {
	p := &expand.FluxParams{
		TargetPath: r.cfg.Target.Path, After: after, Now: r.handoverStart(dir),
		Over:      func(since string) bool { return r.elapsed(since, r.cfg.Handover()) },
		FadedOver: func(since string) bool { return r.elapsed(since, fadedFactor*r.cfg.Handover()) },
		Committed: func(file string) ([]byte, error) { return r.base.ReadFile(path.Join(r.cfg.Target.Path, dir, file)) },
	}
	if f := r.cfg.Target.Flux; f != nil {
		p.Source = &expand.FluxSource{Kind: f.SourceRef.Kind, Name: f.SourceRef.Name, Namespace: f.SourceRef.Namespace}
		p.Interval = f.Interval.String()
	}
	return p
}

// handoverStart is the time that is recorded for a handover that begins now. What is
// proposed as a pull request would be another proposal at every pass: there it is the
// time of the first one, until something is merged. It is for the people who merge to
// leave time between two of them.
func (r *Reconciler) handoverStart(dir string) string {
	now := r.now().UTC().Format(time.RFC3339)
	c := r.committed[dir]
	if r.delivery == nil || c == nil {
		return now
	}
	start, known := r.handovers[dir]
	if !known || start.lock != c.hash {
		start = handoverStart{lock: c.hash, at: now}
		r.handovers[dir] = start
	}
	return start.at
}

// elapsed reports whether a recorded time is long enough ago. What is no time, or in
// the future, is as good as now: it costs a wait, never an object.
func (r *Reconciler) elapsed(since string, d time.Duration) bool {
	at, err := time.Parse(time.RFC3339, since)
	return err == nil && r.now().Sub(at) >= d
}

// fluxKey is what the plan of a ResourceSet depends on besides its inputs: other
// ResourceSets' Kustomizations, and which handovers are over.
func fluxKey(lock *expand.Lock, p *expand.FluxParams) string {
	if lock == nil || lock.Flux == nil {
		return fmt.Sprint(p.After)
	}
	over := []bool{lock.Flux.Protected != "" && p.Over(lock.Flux.Protected)}
	for _, part := range lock.Flux.Retired {
		over = append(over, p.Over(part.Since), p.FadedOver(part.Since))
	}
	return fmt.Sprint(p.After, over)
}

// inOrder are the ResourceSets, each after those that it depends on; otherwise in
// the order of the definitions.
func inOrder(all []*api.ResourceSet) []*api.ResourceSet {
	byName := make(map[string]*api.ResourceSet, len(all))
	for _, rs := range all {
		byName[rs.NamespacedName()] = rs
	}
	ordered := make([]*api.ResourceSet, 0, len(all))
	seen := make(map[*api.ResourceSet]bool, len(all))
	var visit func(rs *api.ResourceSet)
	visit = func(rs *api.ResourceSet) {
		if rs == nil || seen[rs] {
			return
		}
		seen[rs] = true
		for _, dep := range rs.Spec.DependsOn {
			if isResourceSet(dep) {
				visit(byName[dependencyName(rs, dep)])
			}
		}
		ordered = append(ordered, rs)
	}
	for _, rs := range all {
		visit(rs)
	}
	return ordered
}

// dependsOn reports whether one ResourceSet waits for another, by way of any others. All
// of a circle do, so that none of it gets into Git.
func dependsOn(all []*api.ResourceSet, from, to string) bool {
	seen := map[string]bool{}
	var waits func(name string) bool
	waits = func(name string) bool {
		if name == to {
			return true
		}
		i := slices.IndexFunc(all, func(rs *api.ResourceSet) bool { return rs.NamespacedName() == name })
		if i < 0 || seen[name] {
			return false
		}
		seen[name] = true
		return slices.ContainsFunc(all[i].Spec.DependsOn, func(dep api.Dependency) bool {
			return isResourceSet(dep) && waits(dependencyName(all[i], dep))
		})
	}
	return waits(from)
}

func isResourceSet(dep api.Dependency) bool {
	return dep.Kind == api.KindResourceSet && strings.HasPrefix(dep.APIVersion, api.Group+"/")
}

// dependencyName is the ResourceSet that rs depends on, "namespace/name".
func dependencyName(rs *api.ResourceSet, dep api.Dependency) string {
	return cmp.Or(dep.Namespace, rs.Namespace) + "/" + dep.Name
}

// after are the Kustomizations of the ResourceSets that rs depends on, whose plans
// are made already. The error is a *DependencyError.
func (r *Reconciler) after(rs *api.ResourceSet, plans []*plan) ([]expand.FluxDependency, error) {
	if r.cfg.Target.Flux == nil {
		return nil, nil
	}
	var after []expand.FluxDependency
	for _, dep := range rs.Spec.DependsOn {
		if !isResourceSet(dep) {
			continue
		}
		name := dependencyName(rs, dep)
		if dependsOn(r.defs.ResourceSets, name, rs.NamespacedName()) {
			return nil, &DependencyError{Name: name, Why: "depends on it in turn"}
		}
		if !slices.ContainsFunc(r.defs.ResourceSets, func(o *api.ResourceSet) bool { return o.NamespacedName() == name }) {
			return nil, &DependencyError{Name: name, Why: "is not defined"}
		}
		i := slices.IndexFunc(plans, func(pl *plan) bool { return pl.name == name })
		if i < 0 {
			return nil, &DependencyError{Name: name, Why: "has no plan"} // it is planned before
		}
		lock := plans[i].lockAfter()
		if lock == nil {
			return nil, &DependencyError{Name: name, Why: "has nothing in Git yet"}
		}
		expr, err := readyExpr(dep)
		if err != nil {
			return nil, err
		}
		for _, k := range lock.Flux.Last() {
			after = append(after, expand.FluxDependency{Namespace: cmp.Or(dep.Namespace, rs.Namespace), Name: k, ReadyExpr: expr})
		}
	}
	return after, nil
}

// lockAfter is what the folder's record will be when the plan is carried out.
func (pl *plan) lockAfter() *expand.Lock {
	switch {
	case pl.out != nil:
		return pl.out.Lock
	case pl.previous != nil:
		return pl.previous.lock
	}
	return nil
}

// A DependencyError is a ResourceSet in spec.dependsOn that nothing can wait for.
type DependencyError struct{ Name, Why string }

func (e *DependencyError) Error() string {
	return fmt.Sprintf("spec.dependsOn names ResourceSet %s, which %s", e.Name, e.Why)
}

// Suggestion is what to do about it.
func (e *DependencyError) Suggestion() string {
	return "what is committed stays as it is until it can be put behind the other; name another one, or take it out of spec.dependsOn"
}

// planGoneFlux plans the end of a folder that has Kustomizations of its own. These
// have to prune, and be gone, before the folder that they refer to goes: so all
// manifests go first, with one commit, and the folder with a later one.
func (r *Reconciler) planGoneFlux(pl *plan) {
	lock := pl.previous.lock
	namespace, name, _ := strings.Cut(lock.ResourceSet, "/")
	params := expand.LayoutParams{
		ResourceSet: &api.ResourceSet{Meta: api.Meta{Namespace: namespace, Name: name}},
		Previous:    lock, Rendering: &expand.Rendering{}, Flux: r.fluxParams(pl.dir, nil),
	}
	protected := lock.Flux.Protected != ""
	if protected {
		// Half-way to Kustomizations of its own: pruned now, the manifests would stay in
		// the cluster. They go as soon as the handover is over.
		params.Keep = map[string]string{sharedFolder: "its ResourceSet is gone"}
		for _, set := range lock.Sets {
			params.Keep[set.Name] = "its ResourceSet is gone"
		}
		params.Flux.Source, params.Flux.Interval = &lock.Flux.Source, lock.Flux.Interval
	} else {
		params.Flux.Source = nil
	}
	pl.params, pl.rendering = params, params.Rendering
	out, err := expand.Layout(params)
	switch {
	case err != nil:
		pl.fail(api.Position{}, "", err)
		pl.leave()
		return
	case !protected && out.Lock.Flux == nil:
		pl.removed, pl.swept = true, true
		return
	}
	pl.removed = !protected && len(lock.Flux.Parts) > 0
	if pl.out = out; !pl.changed() {
		pl.leave()
	}
	pl.files = keysOf(out.Files)
}

// handOver looks after manifests that go from one ResourceSet to another: the
// Kustomization that has them must not prune them.
func (r *Reconciler) handOver(plans []*plan) {
	for _, pl := range plans {
		if pl.out == nil || pl.params.Flux == nil || pl.previous == nil || !pl.previous.lock.Managed() {
			continue
		}
		taken := map[string]bool{}
		for _, file := range pl.out.Delete {
			for _, dir := range r.claims.byFile[path.Base(file)] {
				if dir != pl.dir {
					taken[path.Base(file)] = true
				}
			}
		}
		if len(taken) == 0 {
			continue
		}
		pl.params.Flux.Elsewhere = func(file string) bool { return taken[file] }
		removed := pl.removed
		r.layOut(pl)
		pl.removed = removed && pl.out != nil
		r.reconsider(pl)
	}
}

func keysOf[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}

// fluxNews says what a commit is about that changes no input set.
func fluxNews(pl *plan) string {
	var before *expand.LockedFlux
	if pl.previous != nil && pl.previous.lock != nil {
		before = pl.previous.lock.Flux
	}
	after := pl.out.Lock.Flux
	switch {
	case after != nil && after.Protected != "" && (before == nil || before.Protected == ""):
		return "protect until Flux Kustomizations take over"
	case after.Managed() && !before.Managed():
		return "hand over to Flux Kustomizations"
	case before.Managed() && !after.Managed():
		return "take back from Flux Kustomizations"
	case before != nil && (after == nil || len(after.Retired) < len(before.Retired)):
		return "remove retired Flux Kustomizations"
	case after.Managed() && len(after.Retired) > len(before.Retired):
		return "replace Flux Kustomizations"
	}
	return "update"
}
