// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/pkg/expand"
	"resourceset.example/renderer/pkg/gitwriter"
)

// People win (DESIGN, rule 7). What somebody else did to a generated folder, by hand
// or by `git revert`, is told from Git alone: the newest commits that touched the
// folder are not ours. What they took back is the state before them. An input set
// whose desired state is that very state is held as the person left it; as soon as
// something else is desired, it moves on, and our commit ends the matter.
//
// The question costs history, which the mirror fetches in growing steps, so it is
// asked only where it can matter: something is to be written to a folder that is not
// as we knew it to be.

// releasedAll in the trailer Released stands for all sets of a ResourceSet.
const releasedAll = "*"

// respect looks for people's changes in a folder to which a plan writes, and for hand
// edits in any folder that is not as it is recorded.
func (r *Reconciler) respect(pl *plan, base *gitwriter.Snapshot, root *rootList) error {
	err := r.lookIntoLists(pl, base)
	var damaged *rootError
	if errors.As(err, &damaged) {
		pl.removed = false
		pl.leave()
		pl.fail(pl.pos, "", err)
		r.reconsider(pl)
		return nil
	}
	if err != nil {
		return err
	}
	if r.delivery != nil {
		return nil // a person decides about each pull request, and a no is remembered there
	}
	tree := treeOf(pl.previous)
	lists := pl.lists.searched(pl, root)
	strange, err := r.inTheWay(pl, base)
	if err != nil {
		return err
	}
	if r.accepted.is(pl.dir, tree) && len(lists)+len(strange) == 0 {
		return nil // as we left it
	}
	edited, err := r.edited(pl, base)
	if err != nil {
		return err
	}
	if !pl.changed() && len(edited)+len(lists) == 0 {
		if pl.lists.inOrder() {
			r.accepted.set(pl.dir, tree) // whoever wrote it, it is what we would write
		}
		return nil
	}
	found, released, err := r.interventions(pl, base, append(pl.touched(edited), lists...))
	if err != nil {
		return err
	}
	r.holdLists(pl, root, found, released)
	pl.undoes(edited, released)
	held := pl.giveWay(strange, found, released)
	if r.cfg.Drift == config.DriftRestore {
		r.holdSets(pl, held, edited)
		return nil
	}
	return r.yield(pl, held, found, edited, released)
}

// undoes notes why sets are written anew that neither inputs nor a definition changed.
func (pl *plan) undoes(edited, released map[string]bool) {
	pl.undone = map[string]string{}
	for set, free := range released {
		if free {
			pl.undone[set] = "released"
		}
	}
	moves := pl.moves()
	for set := range edited {
		switch {
		case released[set]:
			pl.undone[set] = "released, hand edit undone"
		case !moves[set]:
			pl.undone[set] = "hand edit undone"
		}
	}
}

// yield holds the sets that people took back, besides those that are held already. An
// edited one that is to be something else than what is recorded, or is released, is
// written anew as a whole; any other stays as it is.
func (r *Reconciler) yield(pl *plan, held map[string]*TakenBackError, found map[string][]intervention, edited, released map[string]bool) error {
	anew := map[string]bool{}
	moves := pl.moves()
	for set := range edited {
		switch {
		case released[set] || moves[set]:
			anew[set] = true
		case pl.out == nil || pl.keeps(set):
		default:
			left, err := r.leftBy(pl, set, found[set])
			if err != nil {
				return err
			}
			held[set] = left
		}
	}
	for _, set := range slices.Sorted(maps.Keys(found)) {
		if set == fluxFolder {
			continue // see tookFluxBack
		}
		desired := pl.desired(set)
		for _, iv := range found[set] {
			took, err := r.tookBack(pl, set, iv, desired)
			if err != nil {
				return err
			}
			if !took {
				continue
			}
			left, err := r.leftBy(pl, set, found[set])
			if err != nil {
				return err
			}
			held[set] = left
			break
		}
	}
	flux, err := r.tookFluxBack(pl, found[fluxFolder], released[fluxFolder])
	if err != nil {
		return err
	}
	if flux != nil {
		held[fluxFolder] = flux
		r.leaveTo(pl, held)
		return nil
	}
	r.holdSets(pl, held, anew)
	return nil
}

// leftBy is the hold of a set as the newest commit left it that changed its manifests.
func (r *Reconciler) leftBy(pl *plan, set string, list []intervention) (*TakenBackError, error) {
	left := &TakenBackError{ResourceSet: pl.name, Set: set}
	for _, iv := range list {
		before, err := r.manifests(iv.before, pl.dir, set)
		if err != nil {
			return nil, err
		}
		after, err := r.manifests(iv.after, pl.dir, set)
		if err != nil {
			return nil, err
		}
		if !maps.Equal(before, after) {
			left.Commit, left.Who = iv.commit, iv.who
			break
		}
	}
	return left, nil
}

// holdSets has some sets stay as they are, and others written anew.
func (r *Reconciler) holdSets(pl *plan, held map[string]*TakenBackError, anew map[string]bool) {
	maps.DeleteFunc(anew, func(set string, _ bool) bool { return held[set] != nil })
	if len(held) == 0 {
		r.rewrite(pl, anew)
		return
	}
	pl.takenBack = true
	switch {
	case pl.removed:
		// The folder was given back as a whole: it stays as a whole.
		pl.removed = false
		pl.leave()
	case pl.out != nil:
		if pl.params.Keep == nil {
			pl.params.Keep = map[string]string{}
		}
		for set, err := range held {
			if set != fluxFolder {
				pl.params.Keep[set] = err.Error()
			}
		}
		pl.unwrite(anew)
		r.layOut(pl)
		if pl.out != nil && pl.previous == nil && pl.withoutManifests() {
			pl.leave() // all of a new ResourceSet was taken back: only its empty lists are left
		}
	}
	for _, set := range slices.Sorted(maps.Keys(held)) {
		pl.fail(pl.pos, "", held[set])
	}
	r.reconsider(pl)
}

// withoutManifests reports that nothing but lists, and what is there for Flux, would be
// in the folder.
func (pl *plan) withoutManifests() bool {
	for file := range pl.out.Files {
		if folder, _, nested := strings.Cut(file, "/"); nested && folder != fluxFolder {
			return false
		}
	}
	return true
}

// moves are the sets that are there and become something else, "shared" among them.
func (pl *plan) moves() map[string]bool {
	sets := map[string]bool{}
	if pl.out != nil {
		for _, c := range pl.out.Changes {
			if c.Kind == expand.Updated || c.Set == sharedFolder && c.Kind != expand.Kept {
				sets[c.Set] = true
			}
		}
	}
	return sets
}

// keeps reports whether a set stays as it is for another reason, or goes.
func (pl *plan) keeps(set string) bool {
	return slices.ContainsFunc(pl.out.Changes, func(c expand.Change) bool {
		return c.Set == set && (c.Kind == expand.Kept || c.Kind == expand.Removed)
	})
}

// touched are the sets, and "shared", that a plan changes or that were edited, sorted.
func (pl *plan) touched(edited map[string]bool) []string {
	sets := maps.Clone(edited)
	if sets == nil {
		sets = map[string]bool{}
	}
	if pl.removed {
		for _, s := range pl.previous.lock.Sets {
			sets[s.Name] = true
		}
		if len(pl.previous.lock.Shared) > 0 || len(sets) == 0 {
			sets[sharedFolder] = true
		}
	} else if pl.out != nil {
		for _, c := range pl.out.Changes {
			if c.Kind != expand.Kept {
				sets[c.Set] = true
			}
		}
		if pl.writesFlux() {
			sets[fluxFolder] = true
		}
	}
	return slices.Sorted(maps.Keys(sets))
}

// desired are the files that a set's folder is to have, name to blob; none when it
// is to go.
func (pl *plan) desired(set string) map[string]string {
	files := map[string]string{}
	if pl.removed || pl.out == nil {
		return files
	}
	for file, f := range pl.out.Files {
		if folder, name, ok := strings.Cut(file, "/"); ok && folder == set {
			files[name] = f.Blob
		}
	}
	return files
}

// tookBack reports whether an intervention changed a set's folder away from the
// desired state.
func (r *Reconciler) tookBack(pl *plan, set string, iv intervention, desired map[string]string) (bool, error) {
	before, err := r.manifests(iv.before, pl.dir, set)
	if err != nil {
		return false, err
	}
	after, err := r.manifests(iv.after, pl.dir, set)
	if err != nil {
		return false, err
	}
	return !maps.Equal(before, after) && maps.Equal(before, desired), nil
}

// manifests are the manifests in a set's folder at a commit: name to blob. What
// others put beside them does not count.
func (r *Reconciler) manifests(at *gitwriter.Snapshot, dir, set string) (map[string]string, error) {
	files := map[string]string{}
	if at == nil {
		return files, nil
	}
	if set == fluxFolder {
		return r.fluxFiles(at, dir)
	}
	entries, err := at.List(path.Join(r.cfg.Target.Path, dir, set))
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Kind == gitwriter.KindFile && isManifest(e.Name) {
			files[e.Name] = e.Hash.String()
		}
	}
	return files, nil
}

// isManifest tells a file name as we make them.
func isManifest(name string) bool {
	return strings.HasSuffix(name, ".yaml") && strings.Count(name, "_") >= 3
}

// edited are the sets whose files are not as inputs.lock records them.
func (r *Reconciler) edited(pl *plan, base *gitwriter.Snapshot) (map[string]bool, error) {
	if pl.previous == nil || pl.previous.lock == nil {
		return nil, nil
	}
	lock := pl.previous.lock
	edited := map[string]bool{}
	compare := func(set string, recorded map[string]string) error {
		have, err := r.manifests(base, pl.dir, set)
		if err != nil {
			return err
		}
		for name, blob := range recorded {
			if have[name] != blob {
				edited[set] = true
			}
		}
		return nil
	}
	shared := make(map[string]string, len(lock.Shared))
	for name, f := range lock.Shared {
		shared[name] = f.Blob
	}
	if err := compare(sharedFolder, shared); err != nil {
		return nil, err
	}
	for i := range lock.Sets {
		if err := compare(lock.Sets[i].Name, lock.Sets[i].Files); err != nil {
			return nil, err
		}
	}
	if pl.removed {
		return edited, nil
	}
	return edited, compare(fluxFolder, pl.previous.recordedFlux())
}

// newestOf names one of the commits that are undone, for the message.
func newestOf(found map[string][]intervention) string {
	for _, set := range slices.Sorted(maps.Keys(found)) {
		if list := found[set]; len(list) > 0 {
			return list[0].commit
		}
	}
	return ""
}

// rewrite writes edited sets as they are recorded. What a person reverted differs from
// the record, so it is in the plan already.
func (r *Reconciler) rewrite(pl *plan, edited map[string]bool) {
	if pl.out == nil || len(edited) == 0 {
		return
	}
	pl.unwrite(edited)
	r.layOut(pl)
	r.reconsider(pl)
}

// unwrite has sets laid out as if none of their files were there.
func (pl *plan) unwrite(edited map[string]bool) {
	if pl.out == nil || len(edited) == 0 {
		return
	}
	// To Layout an edited file is one that was never written.
	lock := *pl.previous.lock
	lock.Sets = slices.Clone(lock.Sets)
	for i := range lock.Sets {
		if edited[lock.Sets[i].Name] {
			lock.Sets[i].Files = unwritten(lock.Sets[i].Files)
		}
	}
	if edited[fluxFolder] && lock.Flux != nil {
		flux := *lock.Flux
		flux.Files = unwritten(flux.Files)
		lock.Flux = &flux
	}
	if edited[sharedFolder] {
		lock.Shared = maps.Clone(lock.Shared)
		for name, f := range lock.Shared {
			f.Blob = plumbing.ZeroHash.String()
			lock.Shared[name] = f
		}
	}
	pl.params.Previous = &lock
}

func unwritten(files map[string]string) map[string]string {
	out := make(map[string]string, len(files))
	for name := range files {
		out[name] = plumbing.ZeroHash.String()
	}
	return out
}

// A TakenBackError is an input set that somebody changed or reverted, and that is
// held as they left it.
type TakenBackError struct {
	ResourceSet, Set string
	Commit, Who      string
	// Unlisted says, where a list is held, what somebody took off it.
	Unlisted string
	// InTheWay is a file of somebody else where one of the set's manifests would be.
	InTheWay string
}

func (e *TakenBackError) Error() string {
	if e.Unlisted != "" {
		if e.Commit == "" {
			return e.Unlisted + ": held as somebody left it"
		}
		return fmt.Sprintf("%s: held as %s left it in commit %.12s", e.Unlisted, e.Who, e.Commit)
	}
	if e.InTheWay != "" {
		by := "somebody else"
		if e.Commit != "" {
			by = fmt.Sprintf("%s in commit %.12s", e.Who, e.Commit)
		}
		return fmt.Sprintf("%s is held back: its file %s is there already, made by %s", e.Set, e.InTheWay, by)
	}
	if e.Commit == "" {
		return fmt.Sprintf("%s is held as somebody left it: it is not what %s records", e.Set, lockFile)
	}
	return fmt.Sprintf("%s is held as %s left it in commit %.12s", e.Set, e.Who, e.Commit)
}

// Suggestion is what to do about it.
func (e *TakenBackError) Suggestion() string {
	if e.Unlisted != "" {
		return fmt.Sprintf("what is not listed is not applied; list it again, or `renderer release %s %s`", e.ResourceSet, e.Set)
	}
	if e.InTheWay != "" {
		return fmt.Sprintf("move the file away, or have it written over with `renderer release %s %s`", e.ResourceSet, e.Set)
	}
	return fmt.Sprintf("it moves on when its inputs or its template give something else, or with `renderer release %s %s`", e.ResourceSet, e.Set)
}
