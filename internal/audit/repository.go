// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"resourceset.example/renderer/internal/lineage"
)

// A Repository is the history of one branch. It is read only, and used by one
// goroutine at a time.
type Repository struct {
	name    string // as messages call it
	head    plumbing.Hash
	shallow map[plumbing.Hash]bool // commits whose parents a shallow clone left out
	resolve func(rev string) (plumbing.Hash, error)
	storage *filesystem.Storage
	packs   *packs

	commits  map[plumbing.Hash]*commit
	trees    map[plumbing.Hash][]entry
	lookups  map[lookup]entry
	locks    map[plumbing.Hash]*lockFile
	all      []*commit // newest first; nil until walked
	inBranch map[plumbing.Hash]bool
	graph    *lineage.Graph           // see lines
	dropped  map[plumbing.Hash][]drop // by merge, below the one target path
}

// A NotFoundError is a repository, branch or revision that is not there.
type NotFoundError struct{ What, Hint string }

func (e *NotFoundError) Error() string { return e.What }

// Suggestion is what to do about it.
func (e *NotFoundError) Suggestion() string { return e.Hint }

// Open opens a clone on disk, bare or not, at a branch: the clone's own branch of
// that name, else the remote's as last fetched, else what is checked out.
func Open(dir, branch string) (*Repository, error) {
	repo, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	if errors.Is(err, git.ErrRepositoryNotExists) { // a folder inside of a clone
		repo, err = git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	}
	if err != nil {
		return nil, &NotFoundError{What: fmt.Sprintf("%s: %v", dir, err), Hint: "name the folder of a Git clone"}
	}
	stored, ok := repo.Storer.(*filesystem.Storage)
	if !ok {
		return nil, fmt.Errorf("%s: not a repository on disk", dir)
	}
	// Open again with pack files kept open: history reads many small objects.
	storage := filesystem.NewStorageWithOptions(stored.Filesystem(), cache.NewObjectLRUDefault(),
		filesystem.Options{ExclusiveAccess: true, KeepDescriptors: true})
	head, err := headOf(repo, branch)
	if err != nil {
		return nil, err
	}
	if head.IsZero() {
		return nil, &NotFoundError{
			What: fmt.Sprintf("%s: there is no branch %q, and nothing is checked out", dir, branch),
			Hint: "fetch the branch into the clone, or correct target.branch in the configuration",
		}
	}
	open, err := openPacks(stored.Filesystem().Root())
	if err != nil {
		return nil, err
	}
	r := &Repository{
		name: dir, storage: storage, packs: open, head: head,
		shallow: map[plumbing.Hash]bool{},
		commits: map[plumbing.Hash]*commit{},
		trees:   map[plumbing.Hash][]entry{},
		lookups: map[lookup]entry{},
		locks:   map[plumbing.Hash]*lockFile{},
		dropped: map[plumbing.Hash][]drop{},
	}
	r.resolve = func(rev string) (plumbing.Hash, error) {
		hash, err := repo.ResolveRevision(plumbing.Revision(rev))
		if err != nil {
			return plumbing.ZeroHash, err
		}
		return *hash, nil
	}
	shallow, err := repo.Storer.Shallow()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	for _, hash := range shallow {
		r.shallow[hash] = true
	}
	return r, nil
}

func headOf(repo *git.Repository, branch string) (plumbing.Hash, error) {
	names := []plumbing.ReferenceName{
		plumbing.NewBranchReferenceName(branch), plumbing.NewRemoteReferenceName("origin", branch), plumbing.HEAD,
	}
	for _, name := range names {
		ref, err := repo.Reference(name, true)
		if errors.Is(err, plumbing.ErrReferenceNotFound) {
			continue
		}
		if err != nil {
			return plumbing.ZeroHash, fmt.Errorf("%s: %w", name, err)
		}
		return ref.Hash(), nil
	}
	return plumbing.ZeroHash, nil
}

// Close gives the files up.
func (r *Repository) Close() error {
	return errors.Join(r.packs.close(), r.storage.ObjectStorage.Close())
}

// Name is what messages call the repository.
func (r *Repository) Name() string { return r.name }

// read is the content of an object, which must not be changed.
func (r *Repository) read(typ plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
	found, data, err := r.packs.read(hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return r.readLoose(typ, hash)
	}
	if err == nil && found != typ {
		err = fmt.Errorf("is a %s", found)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s %s: %w", r.name, typ, hash, err)
	}
	return data, nil
}

// readLoose reads what is in no pack of the repository itself.
func (r *Repository) readLoose(typ plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
	obj, err := r.storage.EncodedObject(typ, hash)
	if err != nil {
		return nil, fmt.Errorf("%s: %s %s: %w", r.name, typ, hash, err)
	}
	reader, err := obj.Reader()
	if err != nil {
		return nil, fmt.Errorf("%s: %s %s: %w", r.name, typ, hash, err)
	}
	defer reader.Close()
	data, err := io.ReadAll(io.LimitReader(reader, maxObject))
	if err != nil {
		return nil, fmt.Errorf("%s: %s %s: %w", r.name, typ, hash, err)
	}
	return data, nil
}

// rootOf is the go-git form of a commit's root, for readers of definitions.
func (r *Repository) rootOf(c *commit) (*object.Tree, error) {
	tree, err := object.GetTree(r.storage, c.tree)
	if err != nil {
		return nil, fmt.Errorf("%s: tree of commit %s: %w", r.name, c.hash, err)
	}
	return tree, nil
}

// Resolve finds the commit that a revision names: a hash or its beginning, HEAD
// or HEAD~2 of the branch, or whatever else the clone knows by name.
func (r *Repository) Resolve(rev string) (plumbing.Hash, error) {
	all, err := r.walk()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	name, steps, isHead := strings.Cut(rev, "~")
	switch {
	case rev == "HEAD":
		return r.head, nil
	case name == "HEAD" && isHead:
		n, err := strconv.Atoi(steps)
		c := r.commits[r.head]
		for ; err == nil && n > 0 && c != nil; n-- {
			if len(c.parents) == 0 {
				c = nil
				break
			}
			c = r.commits[c.parents[0]]
		}
		if err == nil && c != nil {
			return c.hash, nil
		}
	case len(rev) >= 4 && strings.Trim(rev, "0123456789abcdef") == "":
		var found []plumbing.Hash
		for _, c := range all {
			if strings.HasPrefix(c.hash.String(), rev) {
				found = append(found, c.hash)
			}
		}
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			return plumbing.ZeroHash, &NotFoundError{What: fmt.Sprintf("%s: several commits begin with %s", r.name, rev), Hint: "write more digits"}
		}
	}
	if r.resolve != nil {
		if hash, err := r.resolve(rev); err == nil {
			return hash, nil
		}
	}
	return plumbing.ZeroHash, &NotFoundError{
		What: fmt.Sprintf("%s: there is no commit %q", r.name, rev),
		Hint: "name a commit of the target branch; a shallow clone lacks older ones (git fetch --unshallow)",
	}
}
