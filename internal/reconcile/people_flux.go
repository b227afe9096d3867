// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/gitwriter"
)

// What is there for Flux (docs/flux.md) counts as one set more, called after its folder:
// somebody who edits a Kustomization there, or reverts a commit that changed one, is
// heard as well. An edit stands, and is reported, until that very file is to be another
// one. What was reverted holds the whole ResourceSet as it is committed: which manifests
// there are and which Kustomizations apply them is one decision.

// fluxFiles are the files for Flux at a commit: path below their folder to blob.
func (r *Reconciler) fluxFiles(at *gitwriter.Snapshot, dir string) (map[string]string, error) {
	files := map[string]string{}
	folder := path.Join(r.cfg.Target.Path, dir, fluxFolder)
	entries, err := at.List(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		switch {
		case e.Kind == gitwriter.KindFile && isManifest(e.Name):
			files[e.Name] = e.Hash.String()
		case e.Kind == gitwriter.KindDirectory:
			below, err := at.List(path.Join(folder, e.Name))
			if err != nil {
				return nil, err
			}
			for _, file := range below {
				if file.Kind == gitwriter.KindFile {
					files[e.Name+"/"+file.Name] = file.Hash.String()
				}
			}
		}
	}
	return files, nil
}

// recordedFlux are the files for Flux as inputs.lock has them, as fluxFiles names them.
func (c *committed) recordedFlux() map[string]string {
	files := map[string]string{}
	if c == nil || c.lock == nil || c.lock.Flux == nil {
		return files
	}
	for file, blob := range c.lock.Flux.Files {
		files[strings.TrimPrefix(file, fluxFolder+"/")] = blob
	}
	return files
}

// writesFlux reports whether a plan changes what is there for Flux.
func (pl *plan) writesFlux() bool {
	return pl.out != nil && !pl.removed && !maps.Equal(pl.previous.recordedFlux(), pl.desired(fluxFolder))
}

// objects are the Kustomizations among files for Flux. The lists beside them follow the
// input sets, about which is decided one by one.
func objects(files map[string]string) map[string]string {
	some := map[string]string{}
	for file, blob := range files {
		if !strings.Contains(file, "/") {
			some[file] = blob
		}
	}
	return some
}

// tookFluxBack finds out whether somebody took back the Kustomizations that a plan wants,
// and who.
func (r *Reconciler) tookFluxBack(pl *plan, list []intervention, released bool) (*TakenBackError, error) {
	desired := objects(pl.desired(fluxFolder))
	if released || pl.out == nil || pl.removed || maps.Equal(objects(pl.previous.recordedFlux()), desired) {
		return nil, nil
	}
	for _, iv := range list {
		before, err := r.manifests(iv.before, pl.dir, fluxFolder)
		if err != nil {
			return nil, err
		}
		after, err := r.manifests(iv.after, pl.dir, fluxFolder)
		if err != nil {
			return nil, err
		}
		if !maps.Equal(objects(before), objects(after)) && maps.Equal(objects(before), desired) {
			return r.leftBy(pl, fluxFolder, list)
		}
	}
	return nil, nil
}

// leaveTo leaves a ResourceSet as a whole as it is committed.
func (r *Reconciler) leaveTo(pl *plan, held map[string]*TakenBackError) {
	pl.leave()
	pl.takenBack = true
	for _, set := range slices.Sorted(maps.Keys(held)) {
		pl.fail(pl.pos, "", held[set])
	}
	r.reconsider(pl)
}
