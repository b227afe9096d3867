// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"resourceset.example/renderer/pkg/expand"
	"resourceset.example/renderer/pkg/gitwriter"
)

// guard holds removals back that look like an accident (DESIGN, rule 5): many at
// once, or all of several. Additions and updates go on. A plan is released when
// enough fetches over enough time agree on it, or when somebody approves exactly it.
func (r *Reconciler) guard(p *pass, base *gitwriter.Snapshot) error {
	limits := r.cfg.Prune
	total, whole := 0, 0
	for _, pl := range p.plans {
		switch {
		case pl.swept:
		case pl.removed:
			whole++
			total++
		default:
			total += len(pl.removals())
		}
	}
	held := map[string]HeldPlan{}
	settled := map[string]bool{} // ResourceSets whose providers all agree that nothing is to be held
	for _, pl := range p.plans {
		sets := pl.removals()
		reason := ""
		switch {
		case pl.swept:
		case pl.removed && whole > limits.MaxRemovals:
			reason = fmt.Sprintf("%d ResourceSets would go at once, more than prune.maxRemovals (%d)", whole, limits.MaxRemovals)
		case pl.removed:
		case len(sets) > 0:
			reason = setsReason(len(sets), len(pl.previous.lock.Sets), limits.MaxRemovals, limits.MaxRemovalsPercent)
		}
		if reason == "" && !pl.swept && (pl.removed || len(sets) > 0) && total > limits.MaxRemovalsTotal {
			reason = fmt.Sprintf("%d removals in one pass, more than prune.maxRemovalsTotal (%d)", total, limits.MaxRemovalsTotal)
		}
		if reason == "" {
			settled[pl.name] = pl.current
			continue
		}
		record := r.count(p, pl, sets, reason)
		pl.approval = ""
		by, err := r.releasedBy(pl, &record, base)
		if err != nil {
			return err
		}
		if by != "" {
			pl.released, pl.releasedBy = record.Digest, by
			continue
		}
		held[pl.name] = record
		r.hold(pl, sets, record)
	}
	p.held, p.settled = held, settled
	return nil
}

// setsReason says why the removal of n of all sets of a ResourceSet is held; empty
// when it is not. The only pull request closing is an ordinary day.
func setsReason(n, all, maxRemovals, maxPercent int) string {
	switch {
	case n > maxRemovals:
		return fmt.Sprintf("%d of %d input sets would go, more than prune.maxRemovals (%d)", n, all, maxRemovals)
	case n >= 3 && n*100 > maxPercent*all:
		return fmt.Sprintf("%d of %d input sets would go, more than prune.maxRemovalsPercent (%d)", n, all, maxPercent)
	case n >= 2 && n == all:
		return fmt.Sprintf("all %d input sets would go", n)
	}
	return ""
}

// removals are the sets that a plan takes away, sorted.
func (pl *plan) removals() []string {
	if pl.out == nil || pl.removed {
		return nil
	}
	var names []string
	for _, c := range pl.out.Changes {
		if c.Kind == expand.Removed && c.Set != sharedFolder {
			names = append(names, c.Set)
		}
	}
	slices.Sort(names)
	return names
}

// count is the record of a plan that would be held: the one in memory, if it is of
// exactly this plan, with one more fetch if there was one since.
func (r *Reconciler) count(p *pass, pl *plan, sets []string, reason string) HeldPlan {
	record := HeldPlan{
		Digest: planDigest(pl, sets), ResourceSet: pl.name, Whole: pl.removed, Sets: sets, Reason: reason, Since: r.now(),
	}
	i := slices.IndexFunc(r.held.Plans, func(h HeldPlan) bool { return h.ResourceSet == pl.name })
	if i >= 0 && r.held.Plans[i].Digest == record.Digest {
		record.Since, record.Fetches, record.LastFetch = r.held.Plans[i].Since, r.held.Plans[i].Fetches, r.held.Plans[i].LastFetch
	}
	if pl.fetched.After(record.LastFetch) {
		record.Fetches++
		record.LastFetch = pl.fetched
	}
	return record
}

// hold lays a plan out again without its removals.
func (r *Reconciler) hold(pl *plan, sets []string, record HeldPlan) {
	err := &HeldError{Plan: record, Confirm: r.cfg.Prune.Confirm.Fetches, After: r.cfg.Prune.Confirm.After}
	pos := pl.pos
	if pl.removed {
		pl.removed = false
		pl.leave()
	} else {
		if pl.params.Keep == nil {
			pl.params.Keep = map[string]string{}
		}
		for _, name := range sets {
			pl.params.Keep[name] = "its removal is held back"
		}
		people := slices.DeleteFunc(slices.Clone(pl.problems), func(p *Problem) bool {
			var taken *TakenBackError
			return !errors.As(p.Err, &taken)
		})
		r.layOut(pl)
		pl.problems = append(pl.problems, people...)
	}
	pl.fail(pos, "", err)
	r.reconsider(pl)
}

// reconsider keeps a plan from being taken over by the next pass as it is.
func (r *Reconciler) reconsider(pl *plan) {
	pl.key, pl.indexed = "", false
	if state := r.sets[pl.name]; state != nil {
		state.plan = nil
	}
}

// remember writes the guard's memory after a pass: what is held, and which
// approvals have been used. Plans that could not be judged in this pass, because a
// provider failed, stay as they were.
func (r *Reconciler) remember(p *pass, pushed bool) error {
	next := heldDocument{Used: slices.Clone(r.held.Used), Lapsed: maps.Clone(r.held.Lapsed)}
	maps.DeleteFunc(next.Lapsed, func(_ string, at time.Time) bool {
		return r.now().Sub(at) > ApprovalLasts+clockSkew // what was approved before has ended by itself
	})
	var errs []error
	for _, record := range p.held {
		next.Plans = append(next.Plans, record)
	}
	for _, old := range r.held.Plans {
		_, again := p.held[old.ResourceSet]
		settled, seen := p.settled[old.ResourceSet]
		switch {
		case again, p.done(old.ResourceSet, pushed):
		case seen && settled:
			errs = append(errs, r.lapse(old.Digest, &next))
		default:
			next.Plans = append(next.Plans, old)
		}
	}
	for _, pl := range p.plans {
		if pl.released != "" && pushed && pl.commits > 0 {
			next.Used = append(next.Used, cmp.Or(pl.approval, pl.released))
			errs = append(errs, r.heldFile.use(pl.released))
			r.log.Info("released a removal that was held back", "object", pl.object, "by", pl.releasedBy)
		}
	}
	if len(next.Plans)+len(r.held.Plans) > 0 || len(next.Used) != len(r.held.Used) {
		errs = append(errs, r.heldFile.write(next))
	}
	r.held = next
	return errors.Join(errs...)
}

// done reports that a held plan of a ResourceSet has been carried out: that one, or
// another, by which it is out of date.
func (p *pass) done(resourceSet string, pushed bool) bool {
	return pushed && slices.ContainsFunc(p.plans, func(pl *plan) bool { return pl.name == resourceSet && pl.released != "" })
}

// A HeldError is a removal that the prune guard holds back.
type HeldError struct {
	Plan    HeldPlan
	Confirm int
	After   time.Duration
}

func (e *HeldError) Error() string {
	what := "removal of the ResourceSet"
	if !e.Plan.Whole {
		shown := e.Plan.Sets
		more := ""
		if len(shown) > 5 {
			shown, more = shown[:5], fmt.Sprintf(" and %d more", len(e.Plan.Sets)-5)
		}
		what = "removal of " + strings.Join(shown, ", ") + more
	}
	return fmt.Sprintf("%s is held back: %s", what, e.Plan.Reason)
}

// Suggestion is what to do about it.
func (e *HeldError) Suggestion() string {
	if e.Plan.ended {
		return fmt.Sprintf("the approval of it has ended, or does not say when it was given; `renderer approve %s` gives another one", e.Plan.ResourceSet)
	}
	hint := fmt.Sprintf("if it is meant, `renderer approve %s` releases exactly this plan", e.Plan.ResourceSet)
	if e.Confirm > 0 {
		hint += fmt.Sprintf("; otherwise %d agreeing fetches over at least %s do (%d so far, since %s)",
			e.Confirm, e.After, e.Plan.Fetches, e.Plan.Since.UTC().Format(time.RFC3339))
	}
	return hint
}
