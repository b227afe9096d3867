// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"path"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// A drop is what a merge takes back: a folder or file that it has as one of its
// parents has it, although a commit of ours on the line of another parent made
// something newer of it. Nothing of that is to be seen in the merge's own changes: it
// is `git merge --strategy ours`, or a conflict that was resolved to the older side.
type drop struct {
	path   string          // below the target path: "namespace/name", or a file
	line   *commit         // the parent whose state is dropped
	commit *commit         // of ours, the newest that is taken back
	dir    *folderChange   // what that is, for a folder
	file   *difference     // for a file
	from   []plumbing.Hash // the parents from which the merge has it
}

// drops are those of a merge, below the target path; none for any other commit. A
// line on which nothing of ours was made since both parted drops nothing.
func (r *Repository) drops(c *commit, target string) ([]drop, error) {
	if len(c.parents) < 2 {
		return nil, nil
	}
	if known, ok := r.dropped[c.hash]; ok {
		return known, nil
	}
	after, err := r.folder(c.tree, target)
	if err != nil {
		return nil, err
	}
	var found []drop
	for _, hash := range c.parents {
		list, err := r.dropsOf(c, hash, target, after)
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
	}
	r.dropped[c.hash] = found
	return found, nil
}

// dropsOf is about one parent of a merge.
func (r *Repository) dropsOf(c *commit, parent plumbing.Hash, target string, after plumbing.Hash) ([]drop, error) {
	line, err := r.commit(parent)
	if err != nil {
		return nil, err
	}
	before, err := r.folder(line.tree, target)
	if err != nil || before == after {
		return nil, err
	}
	newer, err := r.newer(c, line, target, c.parents)
	if err != nil || !newer {
		return nil, err // most merges: a branch that knows nothing of the target path
	}
	dirs, files, err := r.folders(before, after)
	if err != nil {
		return nil, err
	}
	var found []drop
	for i := range dirs {
		found = append(found, drop{path: dirs[i].dir, dir: &dirs[i]})
	}
	for i := range files {
		found = append(found, drop{path: files[i].path, file: &files[i]})
	}
	kept := found[:0]
	for _, d := range found {
		d.line = line
		name := path.Join(target, d.path)
		if d.from, err = r.origins(c, name); err != nil {
			return nil, err
		}
		if len(d.from) == 0 {
			continue // the merge's own: it is judged as such
		}
		if newer, err = r.newer(c, line, name, d.from); err != nil {
			return nil, err
		}
		if newer {
			if d.commit, err = r.takenBack(line, d.from, name); err != nil {
				return nil, err
			}
		}
		if d.commit != nil {
			kept = append(kept, d)
		}
	}
	return kept, nil
}

// origins are the parents from which a merge has a path as it is.
func (r *Repository) origins(c *commit, name string) ([]plumbing.Hash, error) {
	var from []plumbing.Hash
	for _, hash := range c.parents {
		parent, err := r.commit(hash)
		if err != nil {
			return nil, err
		}
		same, err := r.sameAt(name, c, parent)
		if err != nil {
			return nil, err
		}
		if same {
			from = append(from, hash)
		}
	}
	return from, nil
}

// newer reports whether what a parent of a merge has at a path was on none of the
// other lines since they parted.
func (r *Repository) newer(c, line *commit, name string, others []plumbing.Hash) (bool, error) {
	for _, other := range others {
		if other == line.hash {
			continue
		}
		was, err := r.wasOn(other, line, name)
		if err != nil || was {
			return false, err
		}
	}
	return true, nil
}

// wasOn reports whether a line of history had a path as a commit has it, since it
// parted from that commit's.
func (r *Repository) wasOn(line plumbing.Hash, have *commit, name string) (bool, error) {
	graph, err := r.lines()
	if err != nil {
		return false, err
	}
	side, complete := graph.Side(line, have.hash)
	if !complete {
		return true, nil // a shallow clone does not tell
	}
	for _, hash := range slices.Backward(side) {
		c, err := r.commit(hash)
		if err != nil {
			return false, err
		}
		same, err := r.sameAt(name, c, have)
		if err != nil || same {
			return same, err
		}
	}
	return false, nil
}

// takenBack is the newest commit of ours to a path that is on one line only, if the
// other lines have nothing newer of ours.
func (r *Repository) takenBack(line *commit, from []plumbing.Hash, name string) (*commit, error) {
	var newest *commit
	for _, other := range from {
		theirs, err := r.newestOfOurs(line.hash, other, name)
		if err != nil || theirs == nil {
			return nil, err
		}
		was, err := r.wasOn(other, theirs, name)
		if err != nil || was {
			return nil, err
		}
		kept, err := r.newestOfOurs(other, line.hash, name)
		if err != nil || kept != nil && r.supersedes(kept, theirs) {
			return nil, err
		}
		newest = theirs
	}
	return newest, nil
}

// newestOfOurs is the newest commit of ours to a path that is on a line and not in the
// history of other.
func (r *Repository) newestOfOurs(line, other plumbing.Hash, name string) (*commit, error) {
	graph, err := r.lines()
	if err != nil {
		return nil, err
	}
	side, _ := graph.Side(line, other)
	for _, hash := range side {
		c, err := r.commit(hash)
		if err != nil {
			return nil, err
		}
		if len(c.parents) > 1 || claimOf(c.message) == nil || hash == other || graph.Precedes(hash, other) {
			continue
		}
		parent, err := r.parent(c)
		if err != nil {
			return nil, err
		}
		if parent != nil {
			same, err := r.sameAt(name, c, parent)
			if err != nil {
				return nil, err
			}
			if same {
				continue
			}
		}
		return c, nil
	}
	return nil, nil
}

// supersedes reports whether one of two commits of ours on parallel branches is the
// later one: it was rendered from definitions of a later commit, where that is known;
// otherwise it was committed later.
func (r *Repository) supersedes(a, b *commit) bool {
	one, other := claimOf(a.message).source(), claimOf(b.message).source()
	if r.graph.Precedes(other, one) {
		return true
	}
	return !r.graph.Precedes(one, other) && a.when.After(b.when)
}
