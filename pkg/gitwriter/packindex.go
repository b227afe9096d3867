// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	// indexCache is how much content of objects is kept for the deltas that follow. A
	// server writes a delta close to what it rests on.
	indexCache = 24 << 20
	// maxKept is the size from which an object is only summed up as it passes.
	maxKept = 4 << 20
	// tempPackPat is what git, and the library, call a pack that is not complete.
	tempPackPat = "tmp_pack_*"
)

// A packIndexer checks a packfile while it arrives and lists its objects: the work of
// `git index-pack`. Every object is inflated once, on its way to the disk; the library
// does so twice, from the file. Deltas are resolved on the spot while what they rest
// on is at hand, and the others at the end, base by base. Memory is 40 bytes an object
// and the cache.
type packIndexer struct {
	file    *os.File
	entries []packEntry // by offset
	waiting []waitingDelta
	parents map[int32]int32 // what reference deltas rest on, by entry
	cache   contentCache
	hasher  plumbing.Hasher
	inflate inflater
	window  *bufio.Reader // on the file
}

// A packEntry is one object of a packfile, as its index lists it.
type packEntry struct {
	offset int64
	hash   plumbing.Hash
	crc    uint32
	typ    plumbing.ObjectType // InvalidObject until the object is known
}

// A waitingDelta is a delta whose base was not at hand when it arrived.
type waitingDelta struct {
	entry int32
	base  int32         // entry, or -1 for one that is named by its hash
	hash  plumbing.Hash // of the base
}

// writePackFiles stores a packfile with its index in a folder as git names them. Nothing is
// left there if the pack is damaged, or needs an object that it does not hold.
func writePackFiles(ctx context.Context, dir string, pack io.Reader) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, tempPackPat)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, file.Close())
		if err != nil {
			os.Remove(file.Name())
		}
	}()
	x := newPackIndexer(file, indexCache)
	sum, err := x.run(ctx, pack)
	if err != nil {
		return err
	}
	index := file.Name() + ".idx"
	if err := writeIndexFile(index, x.entries, sum); err != nil {
		os.Remove(index)
		return err
	}
	// The index makes a pack visible, so it comes last.
	base := filepath.Join(dir, "pack-"+sum.String())
	return errors.Join(file.Chmod(0o444), os.Rename(file.Name(), base+".pack"), os.Rename(index, base+".idx"))
}

func newPackIndexer(file *os.File, cache int) *packIndexer {
	return &packIndexer{
		file: file, cache: contentCache{limit: cache}, parents: map[int32]int32{},
		hasher: plumbing.NewHasher(plumbing.BlobObject, 0), window: bufio.NewReaderSize(nil, 8<<10),
	}
}

// run reads the whole pack and returns its checksum.
func (x *packIndexer) run(ctx context.Context, pack io.Reader) (plumbing.Hash, error) {
	in := newPackStream(pack, x.file)
	var head [12]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return plumbing.ZeroHash, err
	}
	if string(head[:4]) != "PACK" || binary.BigEndian.Uint32(head[4:]) != 2 {
		return plumbing.ZeroHash, fmt.Errorf("%w: no packfile of version 2", errBadPack)
	}
	count := binary.BigEndian.Uint32(head[8:])
	if count > 1<<30 {
		return plumbing.ZeroHash, fmt.Errorf("%w: %d objects", errBadPack, count)
	}
	x.entries = make([]packEntry, 0, min(count, 1<<16)) // a count is only a claim
	for range count {
		if err := x.receive(in); err != nil {
			return plumbing.ZeroHash, fmt.Errorf("entry %d of the packfile: %w", len(x.entries), err)
		}
	}
	sum, err := in.finish()
	if err != nil {
		return sum, err
	}
	if err := x.resolve(ctx); err != nil {
		return sum, err
	}
	_, err = io.Copy(io.Discard, pack) // what a server says afterwards
	return sum, err
}

// receive takes the next entry in.
func (x *packIndexer) receive(in *packStream) error {
	at := int32(len(x.entries))
	entry := packEntry{offset: in.offset()}
	in.startEntry()
	head, err := readEntryHead(in)
	if err != nil {
		return err
	}
	if head.typ.IsDelta() {
		err = x.receiveDelta(in, &entry, at, head)
	} else {
		err = x.receiveWhole(in, &entry, at, head)
	}
	entry.crc = in.endEntry()
	x.entries = append(x.entries, entry)
	return err
}

func (x *packIndexer) receiveWhole(in *packStream, entry *packEntry, at int32, head entryHead) error {
	entry.typ = head.typ
	if head.size > maxKept {
		x.startObject(head.typ, head.size)
		err := x.inflate.copy(x.hasher, in, head.size)
		entry.hash = x.hasher.Sum()
		return err
	}
	data, err := x.inflate.all(in, head.size)
	if err != nil {
		return err
	}
	x.settle(entry, at, head.typ, data)
	return nil
}

func (x *packIndexer) receiveDelta(in *packStream, entry *packEntry, at int32, head entryHead) error {
	delta, err := x.inflate.all(in, head.size)
	if err != nil {
		return err
	}
	if head.typ == plumbing.REFDeltaObject {
		x.waiting = append(x.waiting, waitingDelta{entry: at, base: -1, hash: head.base})
		return nil
	}
	base, err := x.entryAt(entry.offset - head.back)
	if err != nil {
		return err
	}
	content, ok := x.cache.get(base)
	if !ok {
		x.waiting = append(x.waiting, waitingDelta{entry: at, base: base})
		return nil
	}
	data, err := applyDelta(content, delta)
	if err != nil {
		return err
	}
	x.settle(entry, at, x.entries[base].typ, data)
	return nil
}

// settle enters an object whose content is known.
func (x *packIndexer) settle(entry *packEntry, at int32, typ plumbing.ObjectType, data []byte) {
	x.startObject(typ, int64(len(data)))
	x.hasher.Write(data)
	entry.typ, entry.hash = typ, x.hasher.Sum()
	x.cache.put(at, data)
}

// startObject begins the hash of an object, whose content is to be written next.
func (x *packIndexer) startObject(typ plumbing.ObjectType, size int64) {
	x.hasher.Reset()
	var head [32]byte
	x.hasher.Write(append(strconv.AppendInt(append(append(head[:0], typ.Bytes()...), ' '), size, 10), 0))
}

func (x *packIndexer) entryAt(offset int64) (int32, error) {
	i := sort.Search(len(x.entries), func(i int) bool { return x.entries[i].offset >= offset })
	if i == len(x.entries) || x.entries[i].offset != offset {
		return 0, fmt.Errorf("%w: a delta rests on no object", errBadPack)
	}
	return int32(i), nil
}

// resolve makes the objects of the deltas that wait. Everything that rests on an object,
// directly or not, follows it at once, while the content is at hand.
func (x *packIndexer) resolve(ctx context.Context) error {
	if len(x.waiting) == 0 {
		return nil
	}
	onEntry, onHash := map[int32][]int32{}, map[plumbing.Hash][]int32{}
	for _, w := range x.waiting {
		if w.base >= 0 {
			onEntry[w.base] = append(onEntry[w.base], w.entry)
		} else {
			onHash[w.hash] = append(onHash[w.hash], w.entry)
		}
	}
	left := len(x.waiting)
	x.waiting = nil
	known := make([]int32, 0, len(x.entries))
	for i := range x.entries {
		if x.entries[i].typ != plumbing.InvalidObject {
			known = append(known, int32(i))
		}
	}
	slices.Reverse(known) // a stack
	for len(known) > 0 {
		base := known[len(known)-1]
		known = known[:len(known)-1]
		hash := x.entries[base].hash
		rest := slices.Concat(onEntry[base], onHash[hash])
		delete(onHash, hash)
		for _, entry := range rest {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := x.resolveOn(base, entry); err != nil {
				return fmt.Errorf("entry %d of the packfile: %w", entry, err)
			}
			left--
		}
		known = append(known, rest...)
	}
	if left > 0 {
		return fmt.Errorf("%w: %d deltas rest on objects that are not in it", errBadPack, left)
	}
	return nil
}

func (x *packIndexer) resolveOn(base, at int32) error {
	entry := &x.entries[at]
	content, err := x.content(base)
	if err != nil {
		return err
	}
	head, delta, err := x.readBack(at)
	if err != nil {
		return err
	}
	if head.typ == plumbing.REFDeltaObject {
		x.parents[at] = base
	}
	data, err := applyDelta(content, delta)
	if err != nil {
		return err
	}
	x.settle(entry, at, x.entries[base].typ, data)
	return nil
}

// content is an object that was resolved before.
func (x *packIndexer) content(at int32) ([]byte, error) {
	var deltas [][]byte
	var size int
	wanted := at
	data, ok := x.cache.get(at)
	for ; !ok; data, ok = x.cache.get(at) {
		head, stored, err := x.readBack(at)
		if err != nil {
			return nil, err
		}
		if !head.typ.IsDelta() {
			data = stored
			break
		}
		if size += len(stored); size > maxObject {
			return nil, fmt.Errorf("%w: entry %d takes too much memory", errBadPack, wanted)
		}
		deltas = append(deltas, stored)
		if head.typ == plumbing.REFDeltaObject {
			at = x.parents[at]
		} else if at, err = x.entryAt(x.entries[at].offset - head.back); err != nil {
			return nil, err
		}
	}
	var err error
	for _, delta := range slices.Backward(deltas) {
		if data, err = applyDelta(data, delta); err != nil {
			return nil, err
		}
	}
	x.cache.put(wanted, data)
	return data, nil
}

// readBack reads an entry from the file.
func (x *packIndexer) readBack(at int32) (entryHead, []byte, error) {
	offset := x.entries[at].offset
	x.window.Reset(io.NewSectionReader(x.file, offset, 1<<62-offset))
	head, err := readEntryHead(x.window)
	if err != nil {
		return head, nil, err
	}
	data, err := x.inflate.all(x.window, head.size)
	return head, data, err
}

// A contentCache holds the contents that were used last, by entry.
type contentCache struct {
	limit, size int
	items       map[int32]*cached
	oldest      cached // of a ring
}

type cached struct {
	at         int32
	data       []byte
	prev, next *cached
}

func (c *contentCache) get(at int32) ([]byte, bool) {
	item, ok := c.items[at]
	if !ok {
		return nil, false
	}
	item.unlink()
	c.link(item)
	return item.data, true
}

func (c *contentCache) put(at int32, data []byte) {
	if len(data) > maxKept || c.items[at] != nil {
		return
	}
	if c.items == nil {
		c.items = map[int32]*cached{}
		c.oldest.prev, c.oldest.next = &c.oldest, &c.oldest
	}
	const overhead = 128 // of an item
	item := &cached{at: at, data: data}
	c.items[at] = item
	c.link(item)
	for c.size += len(data) + overhead; c.size > c.limit; {
		last := c.oldest.next
		last.unlink()
		delete(c.items, last.at)
		c.size -= len(last.data) + overhead
	}
}

func (c *contentCache) link(item *cached) {
	item.prev, item.next = c.oldest.prev, &c.oldest
	item.prev.next, item.next.prev = item, item
}

func (i *cached) unlink() { i.prev.next, i.next.prev = i.next, i.prev }
