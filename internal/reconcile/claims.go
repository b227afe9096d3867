// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"path"
	"slices"

	"resourceset.example/renderer/pkg/expand"
)

// A claimIndex knows which ResourceSet folders hold a manifest of which name. Names
// are inventory IDs, so two folders with one name claim one object. A change costs
// the files of the folder that changed, not those of the repository.
type claimIndex struct {
	byDir  map[string][]string // file names
	byFile map[string][]string // folders, seldom more than one
}

func newClaimIndex() *claimIndex {
	return &claimIndex{byDir: map[string][]string{}, byFile: map[string][]string{}}
}

// update replaces what a folder claims, and returns the other folders that claim
// some of it as well.
func (x *claimIndex) update(dir string, files []string) []string {
	for _, name := range x.byDir[dir] {
		dirs := slices.DeleteFunc(x.byFile[name], func(d string) bool { return d == dir })
		if len(dirs) == 0 {
			delete(x.byFile, name)
		} else {
			x.byFile[name] = dirs
		}
	}
	delete(x.byDir, dir)
	names := make([]string, 0, len(files))
	var others []string
	for _, file := range files {
		name := path.Base(file)
		if !expand.IsManifest(file) {
			continue
		}
		for _, d := range x.byFile[name] {
			if !slices.Contains(others, d) {
				others = append(others, d)
			}
		}
		x.byFile[name] = append(x.byFile[name], dir)
		names = append(names, name)
	}
	if len(names) > 0 {
		x.byDir[dir] = names
	}
	return others
}

// keep forgets the folders that are not wanted.
func (x *claimIndex) keep(wanted func(dir string) bool) {
	for dir := range x.byDir {
		if !wanted(dir) {
			x.update(dir, nil)
		}
	}
}

// settle decides who keeps an object that two ResourceSets want (DESIGN, rule 14).
// The losers' sets fail, and keep what is committed for them.
func (r *Reconciler) settle(plans []*plan) {
	byDir := make(map[string]*plan, len(plans))
	involved := map[string]bool{}
	for _, pl := range plans {
		byDir[pl.dir] = pl
		if pl.indexed {
			continue
		}
		pl.indexed = true
		for _, other := range r.claims.update(pl.dir, pl.files) {
			involved[other], involved[pl.dir] = true, true
		}
	}
	var claims []expand.Claim
	byName := map[string]*plan{}
	for dir := range involved {
		pl := byDir[dir]
		if pl == nil {
			continue
		}
		claim := expand.Claim{ResourceSet: pl.name, Files: pl.files}
		if pl.previous != nil {
			claim.Previous = pl.previous.lock
		}
		claims = append(claims, claim)
		byName[pl.name] = pl
	}
	losers := map[*plan]bool{}
	for _, conflict := range expand.FindConflicts(claims) {
		loser := byName[conflict.Loser]
		if loser.params.Refused == nil {
			continue // it is as committed, and stays so
		}
		loser.params.Refused[conflict.File] = &conflict
		losers[loser] = true
	}
	for loser := range losers {
		r.layOut(loser)
		r.claims.update(loser.dir, loser.files)
		r.reconsider(loser)
	}
}
