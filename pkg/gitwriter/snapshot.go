// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// MaxFile is the size of the largest file that ReadFile returns.
const MaxFile = 64 << 20

// A Kind is what a path of a repository holds.
type Kind int

// KindNone is a path with nothing there.
const (
	KindNone Kind = iota
	KindFile
	KindDirectory
	KindSymlink
	KindSubmodule
)

func (k Kind) String() string {
	return [...]string{"nothing", "file", "directory", "symbolic link", "submodule"}[k]
}

// An Entry is one name in a directory of a snapshot.
type Entry struct {
	Name string
	Kind Kind
	Hash plumbing.Hash
}

func (e treeEntry) kind() Kind {
	switch {
	case e.isDir():
		return KindDirectory
	case e.mode == modeSymlink:
		return KindSymlink
	case e.mode == modeSubmodule:
		return KindSubmodule
	}
	return KindFile
}

func (e treeEntry) entry() Entry { return Entry{Name: e.name, Kind: e.kind(), Hash: e.hash} }

// A Snapshot is the branch at one commit, read on demand. It may be used by several
// goroutines, and stays valid until the Mirror was rebuilt twice or closed.
type Snapshot struct {
	store  *store
	commit *object.Commit // nil: the branch does not exist
	tree   *object.Tree
}

// openSnapshot reads the commit and its root tree, so that a snapshot always has both.
func openSnapshot(s *store, head plumbing.Hash) (*Snapshot, error) {
	if head.IsZero() {
		return &Snapshot{store: s}, nil
	}
	commit, err := object.GetCommit(s, head)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", head, err)
	}
	tree, err := object.GetTree(s, commit.TreeHash)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w", commit.TreeHash, err)
	}
	return &Snapshot{store: s, commit: commit, tree: tree}, nil
}

// Hash is the commit's, or zero when the branch does not exist.
func (s *Snapshot) Hash() plumbing.Hash {
	if s == nil || s.commit == nil {
		return plumbing.ZeroHash
	}
	return s.commit.Hash
}

// Commit is nil when the branch does not exist.
func (s *Snapshot) Commit() *object.Commit { return s.commit }

// Tree is the root folder, or nil when the branch does not exist.
func (s *Snapshot) Tree() *object.Tree { return s.tree }

// Entry says what the path holds. The root is the empty path. A path that does not
// exist, or that leads through something that is no directory (a symbolic link, for
// one), gives an error that is fs.ErrNotExist.
func (s *Snapshot) Entry(path string) (Entry, error) {
	e, err := s.lookup(path)
	if err != nil {
		return Entry{}, err
	}
	return e.entry(), nil
}

// List is the content of a directory, in Git's order.
func (s *Snapshot) List(dir string) ([]Entry, error) {
	e, err := s.lookup(dir)
	if err != nil {
		return nil, err
	}
	if !e.isDir() {
		return nil, &PathError{Path: dir, Reason: "is a " + e.kind().String() + ", not a directory", Kind: e.kind()}
	}
	entries, err := s.readTree(e.hash)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	list := make([]Entry, len(entries))
	for i, e := range entries {
		list[i] = e.entry()
	}
	return list, nil
}

// ReadFile is the content of a file of up to MaxFile bytes. Symbolic links are not
// followed: they are an error.
func (s *Snapshot) ReadFile(path string) ([]byte, error) {
	e, err := s.lookup(path)
	if err != nil {
		return nil, err
	}
	if e.kind() != KindFile {
		return nil, &PathError{Path: path, Reason: "is a " + e.kind().String() + ", not a file", Kind: e.kind()}
	}
	size, err := s.store.EncodedObjectSize(e.hash)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if size > MaxFile {
		return nil, &PathError{Path: path, Reason: fmt.Sprintf("has %d bytes, more than the %d that are read", size, MaxFile)}
	}
	data, err := s.store.read(plumbing.BlobObject, e.hash)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

func (s *Snapshot) lookup(path string) (treeEntry, error) {
	if s.commit == nil {
		return treeEntry{}, &fs.PathError{Op: "lookup", Path: path, Err: fs.ErrNotExist}
	}
	at := treeEntry{mode: modeDir, hash: s.commit.TreeHash}
	for name, rest, ok := nextComponent(path); ok; name, rest, ok = nextComponent(rest) {
		if !at.isDir() {
			return treeEntry{}, &fs.PathError{Op: "lookup", Path: path, Err: fs.ErrNotExist}
		}
		entries, err := s.readTree(at.hash)
		if err != nil {
			return treeEntry{}, fmt.Errorf("%s: %w", path, err)
		}
		i := indexEntry(entries, name)
		if i < 0 {
			return treeEntry{}, &fs.PathError{Op: "lookup", Path: path, Err: fs.ErrNotExist}
		}
		at = entries[i]
	}
	return at, nil
}

func (s *Snapshot) readTree(hash plumbing.Hash) ([]treeEntry, error) {
	data, err := s.store.read(plumbing.TreeObject, hash)
	if err != nil {
		return nil, err
	}
	entries, err := decodeTree(data)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w", hash, err)
	}
	return entries, nil
}

// isMissingObject tells whether an error comes from a mirror that lacks an object which
// it should have.
func isMissingObject(err error) bool {
	return errors.Is(err, plumbing.ErrObjectNotFound) || errors.Is(err, errBadTree)
}
