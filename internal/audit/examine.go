// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/pkg/expand"
)

// given is a ResourceSet's folder that cannot be rendered again: all that can be
// said of it is whether its files are those that its own record lists.
type given struct {
	before, after *expand.Lock // nil where there is none, or none that can be read
	unread        bool         // the record itself cannot be read
}

// rendered judges a commit of ours: what it claims is rendered again, and then the
// commit must have changed exactly that.
func (e *examination) rendered(ctx context.Context) error {
	e.expected, e.recorded, e.free = map[string]string{}, map[string]string{}, map[string]*given{}
	parent, err := e.parent(e.commit)
	if err != nil {
		return err
	}
	if parent != nil {
		e.parentTree = parent.tree
	}
	defs, err := e.definitionsAt(ctx, e.said.source())
	if err != nil {
		return err
	}
	if defs.err == nil {
		ours, err := e.onOwnLine(e.said.source())
		if err != nil {
			return err
		}
		if !ours {
			defs = &definitions{err: fmt.Errorf("the source revision %s came into the source branch by the side of a merge only: it was never its head", e.said.source())}
		}
	}
	var added, removed, again []string
	unlisted := false
	for i := range e.said.sets {
		set := &e.said.sets[i]
		e.proof.ResourceSets = append(e.proof.ResourceSets, set.resourceSet)
		if !isResourceSet(set.resourceSet) {
			e.altered("", fmt.Sprintf("the trailer ResourceSet: %s names none", set.resourceSet))
			continue
		}
		if err := e.notBack(set.resourceSet); err != nil {
			return err
		}
		before, after, err := e.locks(set.resourceSet)
		if err != nil {
			return err
		}
		switch {
		case before == nil && after == nil:
			if gone, err := e.unlists(set); err != nil || gone {
				unlisted = true
				if err != nil {
					return err
				}
				continue
			}
			e.altered("", fmt.Sprintf("claims to render ResourceSet %s, which has no %s", set.resourceSet, lockName))
			continue
		case before == nil:
			added = append(added, set.resourceSet)
		case after == nil:
			removed = append(removed, set.resourceSet)
		default:
			again = append(again, set.resourceSet)
		}
		if err := e.resourceSet(ctx, defs, set, before, after); err != nil {
			return err
		}
	}
	was, err := e.at(e.before, kustomizationName)
	if err != nil {
		return err
	}
	is, err := e.at(e.after, kustomizationName)
	if err != nil {
		return err
	}
	if len(added)+len(removed) > 0 || unlisted || was != is {
		if err := e.expectRoot(added, removed, again); err != nil {
			return err
		}
	}
	return e.compare()
}

// unlists reports whether a commit that has nothing of a ResourceSet takes its folder,
// which somebody else deleted, off the list: without that, nothing at all would build.
func (e *examination) unlists(set *setClaim) (bool, error) {
	folder, err := e.at(e.parentTree, path.Join(e.Target, set.resourceSet))
	if err != nil || !folder.none() || set.digest != "" {
		return false, err
	}
	list, err := e.text(e.before, kustomizationName)
	return strings.Contains(string(list), set.resourceSet), err
}

func isResourceSet(name string) bool {
	namespace, rest := path.Split(name)
	return rest != "" && len(namespace) > 1 && path.Clean(name) == name && path.Dir(path.Dir(name)) == "." && namespace != "../"
}

// locks are the records of a folder in the parent and in the commit.
func (e *examination) locks(dir string) (before, after *lockFile, err error) {
	for i, tree := range []plumbing.Hash{e.before, e.after} {
		folder, err := e.folder(tree, dir)
		if err != nil {
			return nil, nil, err
		}
		file, err := e.lock(folder)
		if err != nil {
			return nil, nil, err
		}
		if i == 0 {
			before = file
		} else {
			after = file
		}
	}
	return before, after, nil
}

// resourceSet adds what one ResourceSet's folder must have become.
func (e *examination) resourceSet(ctx context.Context, defs *definitions, set *setClaim, before, after *lockFile) error {
	folder := path.Join(e.Target, set.resourceSet)
	g := &given{}
	e.free[folder] = g // until it turns out that it can be rendered
	var old *expand.Lock
	if before != nil {
		old = before.lock
		if before.err != nil {
			g.unread = true
			e.unknown(path.Join(folder, lockName), "the parent's record cannot be read: "+before.err.Error())
			return nil
		}
	}
	g.before = old
	if after == nil {
		return e.removal(defs, set, folder, old)
	}
	if after.err != nil {
		g.unread = true
		var newer *expand.NewerLockError
		if errors.As(after.err, &newer) {
			e.unknown(path.Join(folder, lockName), after.err.Error())
		} else {
			e.altered(path.Join(folder, lockName), after.err.Error())
		}
		return nil
	}
	g.after = after.lock
	if digest := after.lock.InputsDigest(); set.digest != digest {
		e.altered(path.Join(folder, lockName), fmt.Sprintf("does not have the message's Inputs-Digest: it is %s", digest))
	}
	if err := e.claimed(set, old, after.lock); err != nil {
		return err
	}
	list, err := e.follows(folder, old, after.lock)
	if err != nil {
		return err
	}
	if err := e.listed(folder, after.lock, list != nil); err != nil {
		return err
	}
	if err := e.keptSets(ctx, set.resourceSet, old, after.lock); err != nil {
		return err
	}
	out, err := e.renderAgain(ctx, defs, set.resourceSet, old, after.lock, set.sharedHeld)
	var doubt *doubt
	if errors.As(err, &doubt) {
		e.proof.Findings = append(e.proof.Findings, Finding{Status: doubt.status, File: doubt.file(folder), Reason: doubt.Error()})
		return nil
	}
	if err != nil {
		return err
	}
	delete(e.free, folder)
	for file, data := range out.Write {
		name := path.Join(folder, file)
		e.expected[name] = expand.BlobHash(data)
		if file != lockName {
			continue
		}
		have, err := e.at(e.tree, name)
		if err != nil {
			return err
		}
		if older := expand.BlobHash(expand.WithoutChecksum(data)); have.hash.String() == older {
			e.expected[name] = older // from before there were checksums
		}
	}
	for _, file := range out.Delete {
		e.expected[path.Join(folder, file)] = ""
	}
	if list != nil {
		if err := e.expectList(path.Join(folder, kustomizationName), list); err != nil {
			return err
		}
	}
	// A hand edit may be undone: what is not rendered anew may be written as recorded.
	for file, blob := range after.lock.Files() {
		if name := path.Join(folder, file); out.Files[file].Blob == blob {
			e.recorded[name] = blob
		}
	}
	return nil
}

// removal: everything that the record lists is gone, because no ResourceSet of
// that name is defined.
func (e *examination) removal(defs *definitions, set *setClaim, folder string, old *expand.Lock) error {
	switch {
	case defs.err != nil:
		e.unknown("", defs.err.Error())
	case defs.find(set.resourceSet) != nil:
		e.altered(folder, fmt.Sprintf("was removed although ResourceSet %s is defined at %s", set.resourceSet, e.said.revision))
	case len(defs.Faults) > 0:
		e.altered(folder, fmt.Sprintf("was removed although not every definition could be read at %s: %v", e.said.revision, defs.Faults[0]))
	}
	delete(e.free, folder)
	for file := range old.Files() {
		e.expected[path.Join(folder, file)] = ""
	}
	e.expected[path.Join(folder, lockName)] = ""
	return nil
}

// listed checks that every file that the record lists has the content that it says;
// the list of them too, unless it is known to follow from an edit of somebody else.
func (e *examination) listed(folder string, lock *expand.Lock, listFollows bool) error {
	files := lock.Files()
	if listFollows {
		delete(files, kustomizationName)
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		name := path.Join(folder, file)
		have, err := e.at(e.tree, name)
		if err != nil {
			return err
		}
		if have.hash.String() == files[file] && have.mode == modeFile {
			continue
		}
		reason := "is not what " + lockName + " lists"
		if have.none() {
			reason = "is missing, although " + lockName + " lists it"
		}
		was, err := e.at(e.parentTree, name)
		if err != nil {
			return err
		}
		if e.parentTree.IsZero() || was != have {
			e.altered(name, reason)
			continue
		}
		if err := e.leftAltered(name, reason); err != nil {
			return err
		}
	}
	return nil
}

// leftAltered reports a file that the commit left as somebody had made it before.
func (e *examination) leftAltered(name, reason string) error {
	c, err := e.lastChange(e.commit, name)
	if err != nil {
		return err
	}
	e.altered(name, reason+", since an earlier commit")
	last := &e.proof.Findings[len(e.proof.Findings)-1]
	if c != nil {
		last.Commit, last.By = c.hash.String(), c.by()
	}
	return nil
}

// lastChange is the commit before c that made a path what it is.
func (r *Repository) lastChange(c *commit, name string) (*commit, error) {
	want, err := r.at(c.tree, name)
	if err != nil {
		return nil, err
	}
	for len(c.parents) > 0 {
		next := (*commit)(nil)
		for _, hash := range c.parents {
			parent, err := r.commit(hash)
			if err != nil {
				return nil, err
			}
			have, err := r.at(parent.tree, name)
			if err != nil {
				return nil, err
			}
			if have == want {
				next = parent
				break
			}
		}
		if next == nil {
			return c, nil
		}
		c = next
	}
	return c, nil
}

// keptSets checks the sets whose files are those of an earlier rendering: nothing
// of them may differ from the parent commit, and that must be proved there.
func (e *examination) keptSets(ctx context.Context, dir string, old, lock *expand.Lock) error {
	kept := ""
	for i := range lock.Sets {
		set := &lock.Sets[i]
		if !set.Kept {
			continue
		}
		kept = set.Name
		if old == nil || old.Set(set.Name) == nil || !sameRecord(old.Set(set.Name), set) {
			e.altered(path.Join(e.Target, dir, lockName), fmt.Sprintf("says that set %s is kept, but it differs from the parent commit's", set.Name))
			return nil
		}
	}
	if kept == "" {
		return nil
	}
	parent, err := e.parent(e.commit)
	if err != nil || parent == nil {
		return err
	}
	last, err := e.lastChange(parent, path.Join(e.Target, dir))
	if err != nil {
		return err
	}
	t, err := e.Repository.touch(last, e.Target)
	if err != nil || t == nil {
		return err
	}
	proof, err := e.prove(ctx, t)
	if err != nil {
		return err
	}
	if proof.Status != Proved {
		e.unknown(path.Join(e.Target, dir, kept), fmt.Sprintf("is kept from commit %s, which is %s", proof.Commit[:12], proof.Status))
	}
	return nil
}
