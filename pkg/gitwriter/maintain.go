// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

const (
	// maxPacks is how many packfiles a mirror has at most: each is looked at for every
	// object, and keeps a file open.
	maxPacks = 32
	// minGarbage and garbageFactor say when a mirror has grown too far beyond what its
	// first fetch brought, by keeping what every commit since has replaced.
	minGarbage    = 64 << 20
	garbageFactor = 2
)

// maintain keeps the mirror small. Every push and fetch adds a packfile; now and then the
// small ones are put into one, and when what they hold has outgrown the repository itself
// a new mirror is fetched.
func (m *Mirror) maintain(ctx context.Context) error {
	packs, err := m.store.packs()
	if err != nil || len(packs) <= maxPacks {
		return err
	}
	largest, total := packs[0].size, int64(0)
	for _, p := range packs {
		total += p.size
	}
	if grown := total - largest; grown > max(minGarbage, garbageFactor*largest) {
		m.cfg.Logger.InfoContext(ctx, "mirror holds much that is out of date, making a new one", "bytes", total)
		_, err := m.refetch(ctx)
		return err
	}
	if err := m.store.combine(packs[1:]); err != nil {
		return fmt.Errorf("combine packfiles of %s: %w", m.store.dir, err)
	}
	return nil
}

// A packFile is a packfile on disk.
type packFile struct {
	base string // path without .pack
	size int64
}

// packs are the mirror's packfiles, the largest first.
func (s *store) packs() ([]packFile, error) {
	paths, err := filepath.Glob(filepath.Join(s.dir, "objects", "pack", "pack-*.pack"))
	if err != nil {
		return nil, err
	}
	packs := make([]packFile, 0, len(paths))
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		packs = append(packs, packFile{base: path[:len(path)-len(".pack")], size: info.Size()})
	}
	slices.SortFunc(packs, func(a, b packFile) int { return cmp.Compare(b.size, a.size) })
	return packs, nil
}

// combine puts the objects of some packfiles into a new one and removes them. The new
// one is complete before anything is removed.
func (s *store) combine(packs []packFile) error {
	hashes, err := objectsOf(packs)
	if err != nil {
		return err
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(s.writePack(w, hashes)) }()
	if err := s.addPack(r); err != nil {
		r.CloseWithError(err)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.git.ObjectStorage.Close(); err != nil {
		return err
	}
	for _, p := range packs {
		for _, suffix := range []string{".pack", ".idx"} {
			if err := os.Remove(p.base + suffix); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
	}
	s.git = openStorage(s.dir)
	return nil
}

// writePack writes one object after the other, so that only one is in memory.
func (s *store) writePack(w io.Writer, hashes []plumbing.Hash) error {
	pack, err := newPackEncoder(w, len(hashes))
	if err != nil {
		return err
	}
	for _, hash := range hashes {
		obj, err := s.EncodedObject(plumbing.AnyObject, hash)
		if err != nil {
			return err
		}
		data, err := s.read(obj.Type(), hash)
		if err != nil {
			return err
		}
		if err := pack.add(obj.Type(), data); err != nil {
			return err
		}
	}
	return pack.close()
}

// objectsOf lists the objects of the packfiles, each once, from their indexes.
func objectsOf(packs []packFile) ([]plumbing.Hash, error) {
	var hashes []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	for _, p := range packs {
		index, err := readIndex(p.base + ".idx")
		if err != nil {
			return nil, err
		}
		entries, err := index.Entries()
		if err != nil {
			return nil, err
		}
		for entry, err := entries.Next(); err != io.EOF; entry, err = entries.Next() {
			if err != nil {
				return nil, err
			}
			if !seen[entry.Hash] {
				seen[entry.Hash] = true
				hashes = append(hashes, entry.Hash)
			}
		}
	}
	return hashes, nil
}

func readIndex(path string) (*idxfile.MemoryIndex, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	index := idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(f).Decode(index); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return index, nil
}
