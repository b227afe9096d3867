// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"io/fs"
	"maps"
	"path"
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

// yieldFlux leaves a ResourceSet as it is committed if somebody took back what it is to
// be for Flux. Sets that are held are not in the plan any more, nor in its lists.
func (r *Reconciler) yieldFlux(pl *plan, list []intervention, released bool) error {
	if released || !pl.writesFlux() {
		return nil
	}
	desired := pl.desired(fluxFolder)
	for _, iv := range list {
		took, err := r.tookBack(pl, fluxFolder, iv, desired)
		if err != nil {
			return err
		}
		if !took {
			continue
		}
		left, err := r.leftBy(pl, fluxFolder, list)
		if err != nil {
			return err
		}
		pl.leave()
		pl.takenBack = true
		pl.fail(pl.pos, "", left)
		r.reconsider(pl)
		return nil
	}
	return nil
}
