// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/pkg/gitwriter"
)

// inTheWay are files of others where a plan would write a manifest for the first time,
// one for each set: our record does not list them, so they are not ours to write over.
// One that has the very bytes that are wanted is in nobody's way.
func (r *Reconciler) inTheWay(pl *plan, base *gitwriter.Snapshot) (map[string]string, error) {
	if pl.removed || pl.out == nil || !pl.out.Changed() {
		return nil, nil
	}
	if pl.previous == nil || pl.previous.lock == nil {
		return nil, nil // whoever deletes inputs.lock wants it, and all that follows from it, written anew
	}
	recorded := pl.previous.lock.Files()
	strange := map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(pl.out.Write)) {
		set, _, inSet := strings.Cut(file, "/")
		if _, ours := recorded[file]; ours || !inSet || set == fluxFolder || strange[set] != "" {
			continue
		}
		name := path.Join(r.cfg.Target.Path, pl.dir, file)
		entry, err := base.Entry(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case entry.Kind != gitwriter.KindFile || entry.Hash.String() != pl.out.Files[file].Blob:
			strange[set] = name
		}
	}
	if len(strange) > 0 {
		// The folder counted as nobody else's while nothing was to be written there.
		r.accepted.set(pl.dir, plumbing.ZeroHash)
	}
	return strange, nil
}

// giveWay holds the sets that somebody's files are in the way of, unless the sets have
// been released.
func (pl *plan) giveWay(strange map[string]string, found map[string][]intervention, released map[string]bool) map[string]*TakenBackError {
	held := map[string]*TakenBackError{}
	for set, file := range strange {
		if released[set] {
			continue
		}
		held[set] = &TakenBackError{ResourceSet: pl.name, Set: set, InTheWay: file}
		if list := found[set]; len(list) > 0 {
			held[set].Commit, held[set].Who = list[0].commit, list[0].who
		}
	}
	return held
}
