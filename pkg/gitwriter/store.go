// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

const (
	objectCacheSize = 48 * cache.MiByte // decoded objects kept for the next reads
	deltaCacheSize  = 16 * cache.MiByte // delta bases, inside the library
	maxCachedObject = 4 << 20
	maxObject       = 256 << 20 // larger ones are not read into memory
	largePack       = 2000      // objects from which reading all indexes again costs less than the library's way
)

var (
	errReadOnly = errors.New("objects enter a mirror only by fetching and pushing")
	errLarge    = errors.New("too large to read")
)

// A store is the bare repository on disk of one generation of the mirror. The library's
// storage may be used by one goroutine at a time and hands out objects that read their
// file later on, so every read happens under a lock and returns objects in memory.
type store struct {
	dir   string
	large uint32 // largePack, except in tests

	mu      sync.Mutex
	git     *filesystem.Storage
	cache   *cache.ObjectLRU
	damaged bool // an object that should be there could not be read
}

var _ storer.EncodedObjectStorer = (*store)(nil)

func openStore(dir string) *store {
	return &store{dir: dir, large: largePack, git: openStorage(dir), cache: cache.NewObjectLRU(objectCacheSize)}
}

func openStorage(dir string) *filesystem.Storage {
	return filesystem.NewStorageWithOptions(osfs.New(dir, osfs.WithBoundOS()), cache.NewObjectLRU(deltaCacheSize),
		filesystem.Options{ExclusiveAccess: true, KeepDescriptors: true})
}

// createStore makes an empty bare repository that git itself accepts, too.
func createStore(dir string) (*store, error) {
	s := openStore(dir)
	if err := s.git.Init(); err != nil {
		return nil, err
	}
	const config = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	return s, s.git.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, mirrorRef))
}

func (s *store) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.git.ObjectStorage.Close()
}

// EncodedObject returns the object in memory, or plumbing.ErrObjectNotFound.
func (s *store) EncodedObject(typ plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if obj, ok := s.cache.Get(hash); ok && (typ == plumbing.AnyObject || obj.Type() == typ) {
		return obj, nil
	}
	obj, err := s.git.EncodedObject(typ, hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) && hash == emptyTree {
		empty := &plumbing.MemoryObject{}
		empty.SetType(plumbing.TreeObject)
		return empty, nil
	}
	if err != nil {
		s.damaged = true
		return nil, err
	}
	memory, err := materialize(obj)
	if err != nil {
		s.damaged = s.damaged || !errors.Is(err, errLarge)
		return nil, fmt.Errorf("object %s: %w", hash, err)
	}
	if memory.Size() <= maxCachedObject {
		s.cache.Put(memory)
	}
	return memory, nil
}

func materialize(obj plumbing.EncodedObject) (plumbing.EncodedObject, error) {
	if memory, ok := obj.(*plumbing.MemoryObject); ok {
		return memory, nil
	}
	if obj.Size() > maxObject {
		return nil, fmt.Errorf("%w: %d bytes", errLarge, obj.Size())
	}
	r, err := obj.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	memory := &plumbing.MemoryObject{}
	memory.SetType(obj.Type())
	memory.SetSize(obj.Size())
	if _, err := io.Copy(memory, r); err != nil {
		return nil, err
	}
	return memory, nil
}

// read is the content of an object.
func (s *store) read(typ plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
	obj, err := s.EncodedObject(typ, hash)
	if err != nil {
		return nil, err
	}
	r, err := obj.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, obj.Size())
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("object %s: %w", hash, err)
	}
	return data, nil
}

// HasEncodedObject returns nil if the object is there. The library's own function of
// this name does not look into packs when it has the folder to itself (go-git v5.19).
func (s *store) HasEncodedObject(hash plumbing.Hash) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.git.EncodedObjectSize(hash)
	return err
}

func (s *store) has(hash plumbing.Hash) bool { return s.HasEncodedObject(hash) == nil }

// EncodedObjectSize is the size of the object's content.
func (s *store) EncodedObjectSize(hash plumbing.Hash) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size, err := s.git.EncodedObjectSize(hash)
	s.damaged = s.damaged || err != nil
	return size, err
}

// isDamaged reports that an object could not be read that whoever asked for it had
// reason to expect: what may be missing is looked for with has.
func (s *store) isDamaged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.damaged
}

// addPack stores a packfile with its index. The pack must not need objects outside itself.
func (s *store) addPack(pack io.Reader) (err error) {
	w, err := s.packWriter()
	if err != nil {
		return err
	}
	_, err = io.Copy(w, pack)
	s.mu.Lock() // closing enters the pack into the list of packs
	defer s.mu.Unlock()
	return errors.Join(err, w.Close())
}

// addLargePack is addPack for a pack of many objects, which it indexes in half the time.
// The library has to read all indexes again then.
func (s *store) addLargePack(ctx context.Context, pack io.Reader) error {
	if err := writePackFiles(ctx, filepath.Join(s.dir, "objects", "pack"), pack); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reopen()
}

// removeLeftovers deletes what a killed process had received of a pack.
func (s *store) removeLeftovers() error {
	paths, err := filepath.Glob(filepath.Join(s.dir, "objects", "pack", tempPackPat))
	for _, path := range paths {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// reopen makes the library look at the files again.
func (s *store) reopen() error {
	if err := s.git.ObjectStorage.Close(); err != nil {
		return err
	}
	s.git = openStorage(s.dir)
	return nil
}

func (s *store) packWriter() (io.WriteCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.git.PackfileWriter()
}

// head is where the branch was when the mirror last agreed with the remote.
func (s *store) head() (plumbing.Hash, error) {
	ref, err := s.git.Reference(mirrorRef)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return plumbing.ZeroHash, nil
	}
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return ref.Hash(), nil
}

func (s *store) setHead(hash plumbing.Hash) error {
	if hash.IsZero() {
		return s.git.RemoveReference(mirrorRef)
	}
	return s.git.SetReference(plumbing.NewHashReference(mirrorRef, hash))
}

// The rest of the interface that the library's readers ask for.

func (s *store) NewEncodedObject() plumbing.EncodedObject { return &plumbing.MemoryObject{} }
func (s *store) SetEncodedObject(plumbing.EncodedObject) (plumbing.Hash, error) {
	return plumbing.ZeroHash, errReadOnly
}
func (s *store) IterEncodedObjects(plumbing.ObjectType) (storer.EncodedObjectIter, error) {
	return nil, errReadOnly
}
func (s *store) AddAlternate(string) error { return errReadOnly }
