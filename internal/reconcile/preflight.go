// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"maps"
	"path"
	"slices"

	"resourceset.example/renderer/internal/preflight"
	"resourceset.example/renderer/pkg/expand"
)

// preflightChunk is how many manifests are built at once where no Kustomization of
// the ResourceSet's own says what belongs together. Small, because the time of a build
// grows with the square of it.
const preflightChunk = 50

// preflight builds what the plans change as Flux will, and keeps the sets as they are
// committed that it could not build. What did not change is not built again, but for
// the rest of the part that it belongs to.
func (r *Reconciler) preflight(plans []*plan) {
	for _, pl := range plans {
		faults := r.preflightFaults(pl)
		if len(faults) == 0 {
			continue
		}
		if pl.params.Keep == nil {
			pl.params.Keep = map[string]string{}
		}
		for _, set := range r.blamed(pl, faults) {
			pl.params.Keep[set] = "Flux could not build it"
		}
		r.layOut(pl)
		if again := r.preflightFaults(pl); len(again) > 0 || pl.previous == nil && !pl.hasManifests() {
			pl.leave() // what is left does not build either, or there is nothing left
		}
		for i, fault := range faults {
			if i == maxFailedSets {
				break
			}
			pl.fail(pl.pos, pl.originOf(path.Dir(fault.File)), fault)
		}
		r.reconsider(pl)
	}
}

// preflightFaults are the faults of what a plan changes.
func (r *Reconciler) preflightFaults(pl *plan) []*preflight.Fault {
	if pl.out == nil || !pl.out.Changed() {
		return nil
	}
	var changed []string
	for _, file := range slices.Sorted(maps.Keys(pl.out.Write)) {
		if expand.IsManifest(file) && path.Dir(file) != fluxFolder {
			changed = append(changed, file)
		}
	}
	var faults []*preflight.Fault
	owner := pl.out.Lock.Parts()
	if owner == nil {
		for chunk := range slices.Chunk(changed, preflightChunk) {
			faults = append(faults, preflight.Check(r.partOf(pl, chunk, false))...)
		}
		return faults
	}
	parts := map[string][]string{}
	for _, file := range changed {
		parts[owner[file]] = nil
	}
	for file, name := range owner {
		if _, touched := parts[name]; touched {
			parts[name] = append(parts[name], file)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		faults = append(faults, preflight.Check(r.partOf(pl, parts[name], true))...)
	}
	return faults
}

// fluxFolder holds what is there for Flux.
const fluxFolder = "_flux"

// partOf has the contents of manifests: as they are planned, else as they are committed.
func (r *Reconciler) partOf(pl *plan, files []string, namespaced bool) preflight.Part {
	part := preflight.Part{Files: make(map[string][]byte, len(files)), Namespaced: namespaced}
	for _, file := range files {
		data := pl.out.Files[file].Content
		if data == nil {
			committed, err := r.base.ReadFile(path.Join(r.cfg.Target.Path, pl.dir, file))
			if err != nil {
				continue // somebody took it away: that is held, or put right, elsewhere
			}
			data = committed
		}
		part.Files[file] = data
	}
	return part
}

// blamed are the sets, and "shared", whose manifests are at fault. Where no single one
// is, it is all that the plan changes.
func (r *Reconciler) blamed(pl *plan, faults []*preflight.Fault) []string {
	sets := map[string]bool{}
	for _, fault := range faults {
		if fault.File != "" {
			sets[path.Dir(fault.File)] = true
			continue
		}
		for file := range pl.out.Write {
			if expand.IsManifest(file) && path.Dir(file) != fluxFolder {
				sets[path.Dir(file)] = true
			}
		}
	}
	return slices.Collect(maps.Keys(sets))
}

func (pl *plan) hasManifests() bool {
	return pl.out != nil && slices.ContainsFunc(slices.Collect(maps.Keys(pl.out.Files)), func(file string) bool {
		return expand.IsManifest(file) && path.Dir(file) != fluxFolder
	})
}

// originOf is how messages name the set of a folder.
func (pl *plan) originOf(folder string) string {
	for i := range pl.sets {
		if pl.sets[i].Name == folder {
			return pl.sets[i].Origin
		}
	}
	return ""
}
