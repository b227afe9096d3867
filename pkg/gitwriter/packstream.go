// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
)

const streamBuffer = 128 << 10

var errBadPack = errors.New("damaged packfile")

// A byteSource is what zlib reads from without taking a byte too much.
type byteSource interface {
	io.Reader
	io.ByteReader
}

// A packStream is a packfile as it arrives. What is read from it is written to a file
// and summed up, in large pieces.
type packStream struct {
	in  io.Reader
	out io.Writer
	buf []byte
	pos int   // next byte in buf
	at  int64 // offset of buf's start within the pack

	sum     hash.Hash // of everything before the trailer
	sumFrom int       // first byte of buf that is not in sum; -1 when sum is complete
	crc     uint32    // of the current entry
	crcFrom int
}

func newPackStream(in io.Reader, out io.Writer) *packStream {
	return &packStream{in: in, out: out, buf: make([]byte, 0, streamBuffer), sum: sha1.New()}
}

// offset is the position of the next byte within the pack.
func (s *packStream) offset() int64 { return s.at + int64(s.pos) }

// fill replaces what has been read by what comes next.
func (s *packStream) fill() error {
	if err := s.flush(); err != nil {
		return err
	}
	n, err := 0, error(nil)
	for n == 0 && err == nil {
		n, err = s.in.Read(s.buf[:cap(s.buf)])
	}
	s.buf = s.buf[:n]
	if n > 0 {
		return nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// flush hands on what has been read so far. The rest of the buffer moves to its start.
func (s *packStream) flush() error {
	s.crc = crc32.Update(s.crc, crc32.IEEETable, s.buf[s.crcFrom:s.pos])
	if s.sumFrom >= 0 {
		s.sum.Write(s.buf[s.sumFrom:s.pos])
		s.sumFrom = 0
	}
	if _, err := s.out.Write(s.buf[:s.pos]); err != nil {
		return err
	}
	s.at += int64(s.pos)
	s.buf = s.buf[:copy(s.buf, s.buf[s.pos:])]
	s.pos, s.crcFrom = 0, 0
	return nil
}

func (s *packStream) ReadByte() (byte, error) {
	if s.pos == len(s.buf) {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	s.pos++
	return s.buf[s.pos-1], nil
}

func (s *packStream) Read(p []byte) (int, error) {
	if s.pos == len(s.buf) {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.buf[s.pos:])
	s.pos += n
	return n, nil
}

// startEntry begins a new sum over the bytes of one entry; endEntry is that sum.
func (s *packStream) startEntry() { s.crc, s.crcFrom = 0, s.pos }
func (s *packStream) endEntry() uint32 {
	return crc32.Update(s.crc, crc32.IEEETable, s.buf[s.crcFrom:s.pos])
}

// finish reads the trailer, which must be the sum of all that came before it, and hands
// everything on to the file.
func (s *packStream) finish() (plumbing.Hash, error) {
	s.sum.Write(s.buf[s.sumFrom:s.pos])
	s.sumFrom = -1
	var trailer plumbing.Hash
	if _, err := io.ReadFull(s, trailer[:]); err != nil {
		return trailer, err
	}
	if !bytes.Equal(s.sum.Sum(nil), trailer[:]) {
		return trailer, fmt.Errorf("%w: its checksum is another one", errBadPack)
	}
	return trailer, s.flush()
}

// An entryHead is what stands before the content of an entry: the type, the size, and
// for a delta where to find what it rests on.
type entryHead struct {
	typ  plumbing.ObjectType
	size int64
	back int64         // distance to the base of an offset delta
	base plumbing.Hash // base of a reference delta
}

func readEntryHead(r byteSource) (h entryHead, err error) {
	b, err := r.ReadByte()
	if err != nil {
		return h, err
	}
	h.typ, h.size = plumbing.ObjectType(b>>4&7), int64(b&15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if shift > 53 {
			return h, fmt.Errorf("%w: size of an entry", errBadPack)
		}
		if b, err = r.ReadByte(); err != nil {
			return h, err
		}
		h.size |= int64(b&0x7f) << shift
	}
	switch h.typ {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	case plumbing.OFSDeltaObject:
		h.back, err = readDistance(r)
	case plumbing.REFDeltaObject:
		_, err = io.ReadFull(r, h.base[:])
	default:
		return h, fmt.Errorf("%w: entry of type %d", errBadPack, h.typ)
	}
	return h, err
}

// readDistance reads a number of seven bits a byte, the most significant first, where
// every further byte also adds one so that no number has two spellings.
func readDistance(r io.ByteReader) (int64, error) {
	b, err := r.ReadByte()
	n := int64(b & 0x7f)
	for err == nil && b&0x80 != 0 {
		if n >= 1<<54 {
			return 0, fmt.Errorf("%w: distance of a delta", errBadPack)
		}
		b, err = r.ReadByte()
		n = (n+1)<<7 | int64(b&0x7f)
	}
	return n, err
}

// An inflater reads compressed contents one after the other.
type inflater struct {
	zlib io.ReadCloser
	more [1]byte
}

func (i *inflater) reset(r byteSource) (err error) {
	if i.zlib == nil {
		i.zlib, err = zlib.NewReader(r)
		return err
	}
	return i.zlib.(zlib.Resetter).Reset(r, nil)
}

// all reads content of exactly the given size, with its checksum.
func (i *inflater) all(r byteSource, size int64) ([]byte, error) {
	if size > maxObject {
		return nil, fmt.Errorf("%d bytes are too many to read", size)
	}
	if err := i.reset(r); err != nil {
		return nil, err
	}
	// A size is only a claim: memory is taken as content arrives.
	data := make([]byte, 0, min(size, 1<<20))
	for {
		if len(data) == cap(data) {
			if int64(len(data)) == size {
				return data, i.end()
			}
			data = append(make([]byte, 0, min(size, int64(cap(data))*4)), data...)
		}
		n, err := i.zlib.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF && int64(len(data)) == size:
			return data, nil
		case err == io.EOF:
			return nil, fmt.Errorf("%w: an entry is shorter than it says", errBadPack)
		case err != nil:
			return nil, err
		}
	}
}

// copy passes content of exactly the given size on.
func (i *inflater) copy(w io.Writer, r byteSource, size int64) error {
	if err := i.reset(r); err != nil {
		return err
	}
	if _, err := io.CopyN(w, i.zlib, size); err == io.EOF {
		return fmt.Errorf("%w: an entry is shorter than it says", errBadPack)
	} else if err != nil {
		return err
	}
	return i.end()
}

// end makes sure that nothing is left, which also compares the checksum.
func (i *inflater) end() error {
	for {
		n, err := i.zlib.Read(i.more[:])
		switch {
		case n > 0:
			return fmt.Errorf("%w: an entry is longer than it says", errBadPack)
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}
