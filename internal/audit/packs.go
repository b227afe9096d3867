// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

const (
	maxObject = 256 << 20 // bytes; larger ones are not read into memory
	maxChain  = 1 << 12   // deltas on deltas; git makes at most 4095
	baseCache = 64 << 20  // bytes of decoded objects that deltas may rest on
	pageSize  = 256 << 10 // bytes that are read from a pack at a time
	maxPages  = 256       // kept of one pack
)

// packs reads objects out of the pack files of a repository. The library's own
// reader asks the system several times for each object; a history is tens of
// thousands of small ones that lie side by side (measured: a third of the time). So
// a pack is read in large pages, which are kept: at most 64 MiB of each pack.
type packs struct {
	list []*pack
}

// openPacks opens every pack below a .git folder.
func openPacks(gitDir string) (*packs, error) {
	names, err := filepath.Glob(filepath.Join(gitDir, "objects", "pack", "*.idx"))
	if err != nil {
		return nil, err
	}
	all := &packs{}
	for _, name := range names {
		p, err := openPack(name)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), all.close())
		}
		all.list = append(all.list, p)
	}
	return all, nil
}

func (ps *packs) close() error {
	var errs []error
	for _, p := range ps.list {
		errs = append(errs, p.file.Close())
	}
	return errors.Join(errs...)
}

// read is an object's type and content; plumbing.ErrObjectNotFound when no pack has it.
func (ps *packs) read(hash plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	for i, p := range ps.list {
		offset, err := p.index.FindOffset(hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		// The next object is probably in the same pack.
		ps.list[0], ps.list[i] = ps.list[i], ps.list[0]
		return p.object(offset, 0)
	}
	return 0, nil, plumbing.ErrObjectNotFound
}

// A pack is one pack file with its index.
type pack struct {
	index *idxfile.MemoryIndex
	file  *os.File
	zlib  io.ReadCloser

	pages  map[int64][]byte // of the file, by number
	page   []byte           // the one that is being read
	number int64
	pos    int // in page

	bases map[int64]base
	size  int // of bases
}

type base struct {
	typ  plumbing.ObjectType
	data []byte
}

func openPack(indexName string) (*pack, error) {
	f, err := os.Open(indexName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &pack{index: idxfile.NewMemoryIndex(), bases: map[int64]base{}, pages: map[int64][]byte{}}
	if err := idxfile.NewDecoder(bufio.NewReaderSize(f, pageSize)).Decode(p.index); err != nil {
		return nil, err
	}
	if p.file, err = os.Open(strings.TrimSuffix(indexName, ".idx") + ".pack"); err != nil {
		return nil, err
	}
	return p, nil
}

// seek moves to an offset.
func (p *pack) seek(offset int64) error {
	number := offset / pageSize
	page, ok := p.pages[number]
	if !ok {
		info, err := p.file.Stat()
		if err != nil {
			return err
		}
		page = make([]byte, max(0, min(pageSize, info.Size()-number*pageSize)))
		if _, err := io.ReadFull(io.NewSectionReader(p.file, number*pageSize, pageSize), page); err != nil {
			return err
		}
		if len(p.pages) >= maxPages {
			clear(p.pages)
		}
		p.pages[number] = page
	}
	p.page, p.pos, p.number = page, int(offset%pageSize), number
	if p.pos >= len(page) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// Read and ReadByte make the pack the input of zlib, which then reads no byte too much.
func (p *pack) Read(b []byte) (int, error) {
	if p.pos == len(p.page) {
		if err := p.seek((p.number + 1) * pageSize); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.page[p.pos:])
	p.pos += n
	return n, nil
}

func (p *pack) ReadByte() (byte, error) {
	if p.pos == len(p.page) {
		if err := p.seek((p.number + 1) * pageSize); err != nil {
			return 0, err
		}
	}
	p.pos++
	return p.page[p.pos-1], nil
}

// object reads the object at an offset, which depth deltas rest on.
func (p *pack) object(offset int64, depth int) (plumbing.ObjectType, []byte, error) {
	if known, ok := p.bases[offset]; ok {
		return known.typ, known.data, nil
	}
	if depth > maxChain {
		return 0, nil, errors.New("damaged pack: endless chain of deltas")
	}
	typ, data, on, err := p.entry(offset)
	if err != nil {
		return 0, nil, fmt.Errorf("pack %s at %d: %w", filepath.Base(p.file.Name()), offset, err)
	}
	if typ.IsDelta() {
		var below []byte
		if typ, below, err = p.object(on, depth+1); err != nil {
			return 0, nil, err
		}
		if data, err = packfile.PatchDelta(below, data); err != nil {
			return 0, nil, fmt.Errorf("pack %s at %d: %w", filepath.Base(p.file.Name()), offset, err)
		}
	}
	if p.size += len(data); p.size > baseCache {
		clear(p.bases)
		p.size = len(data)
	}
	p.bases[offset] = base{typ, data}
	return typ, data, nil
}

// entry reads what is stored at an offset: an object, or a delta and the offset of
// what it rests on.
func (p *pack) entry(offset int64) (typ plumbing.ObjectType, data []byte, on int64, err error) {
	if err := p.seek(offset); err != nil {
		return 0, nil, 0, err
	}
	b, err := p.ReadByte()
	if err != nil {
		return 0, nil, 0, err
	}
	typ = plumbing.ObjectType(b >> 4 & 7)
	size, shift := int64(b&15), 4
	for b&0x80 != 0 {
		if b, err = p.ReadByte(); err != nil {
			return 0, nil, 0, err
		}
		size |= int64(b&0x7f) << shift
		if shift += 7; shift > 40 {
			return 0, nil, 0, errors.New("damaged size")
		}
	}
	if size > maxObject {
		return 0, nil, 0, fmt.Errorf("%d bytes are too many to read", size)
	}
	switch typ {
	case plumbing.OFSDeltaObject:
		back, err := p.backwards()
		if err != nil {
			return 0, nil, 0, err
		}
		if on = offset - back; back <= 0 || on < 0 {
			return 0, nil, 0, errors.New("damaged delta")
		}
	case plumbing.REFDeltaObject:
		var hash plumbing.Hash
		if _, err := io.ReadFull(p, hash[:]); err != nil {
			return 0, nil, 0, err
		}
		if on, err = p.index.FindOffset(hash); err != nil {
			return 0, nil, 0, err
		}
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	default:
		return 0, nil, 0, fmt.Errorf("unknown type %d", typ)
	}
	data, err = p.inflate(int(size))
	return typ, data, on, err
}

// backwards is the distance to a delta's base.
func (p *pack) backwards() (int64, error) {
	b, err := p.ReadByte()
	back := int64(b & 0x7f)
	for i := 0; err == nil && b&0x80 != 0; i++ {
		if i > 7 {
			return 0, errors.New("damaged delta")
		}
		b, err = p.ReadByte()
		back = (back+1)<<7 | int64(b&0x7f)
	}
	return back, err
}

func (p *pack) inflate(size int) ([]byte, error) {
	var err error
	if p.zlib == nil {
		p.zlib, err = zlib.NewReader(p)
	} else {
		err = p.zlib.(zlib.Resetter).Reset(p, nil)
	}
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	_, err = io.ReadFull(p.zlib, data)
	return data, err
}
