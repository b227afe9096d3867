// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"hash"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
)

// A newObject is an object that the server does not have yet.
type newObject struct {
	typ  plumbing.ObjectType
	hash plumbing.Hash
	data []byte
}

// newObjects are the objects of one push, each once, in the order they were made.
type newObjects struct {
	list []newObject
	seen map[plumbing.Hash]int // index in list
}

func (o *newObjects) add(typ plumbing.ObjectType, hash plumbing.Hash, data []byte) {
	if _, ok := o.seen[hash]; ok {
		return
	}
	if o.seen == nil {
		o.seen = map[plumbing.Hash]int{}
	}
	o.seen[hash] = len(o.list)
	o.list = append(o.list, newObject{typ: typ, hash: hash, data: data})
}

// get is the content of an object that is new.
func (o *newObjects) get(hash plumbing.Hash) ([]byte, bool) {
	i, ok := o.seen[hash]
	if !ok {
		return nil, false
	}
	return o.list[i].data, true
}

// pack writes the objects as a packfile that stands on its own.
func (o *newObjects) pack() ([]byte, error) {
	var buf bytes.Buffer
	pack, err := newPackEncoder(&buf, len(o.list))
	if err != nil {
		return nil, err
	}
	for _, obj := range o.list {
		if err := pack.add(obj.typ, obj.data); err != nil {
			return nil, err
		}
	}
	if err := pack.close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// A packEncoder writes a packfile without deltas, so nothing is searched or compared.
type packEncoder struct {
	w          io.Writer // the output, by way of the checksum
	out        io.Writer
	sum        hash.Hash
	compressor *zlib.Writer
}

func newPackEncoder(w io.Writer, objects int) (*packEncoder, error) {
	sum := sha1.New()
	e := &packEncoder{w: io.MultiWriter(w, sum), out: w, sum: sum}
	e.compressor = zlib.NewWriter(e.w)
	head := append([]byte("PACK"), 0, 0, 0, 2)
	_, err := e.w.Write(binary.BigEndian.AppendUint32(head, uint32(objects)))
	return e, err
}

func (e *packEncoder) add(typ plumbing.ObjectType, data []byte) error {
	if _, err := e.w.Write(packEntryHead(typ, len(data))); err != nil {
		return err
	}
	e.compressor.Reset(e.w)
	if _, err := e.compressor.Write(data); err != nil {
		return err
	}
	return e.compressor.Close()
}

func (e *packEncoder) close() error {
	_, err := e.out.Write(e.sum.Sum(nil))
	return err
}

// packEntryHead is the type and size of an object: four bits of the size beside the
// type, then seven in each further byte, the least first.
func packEntryHead(typ plumbing.ObjectType, size int) []byte {
	head := make([]byte, 0, 10)
	b := byte(typ)<<4 | byte(size&0x0f)
	for size >>= 4; size > 0; size >>= 7 {
		head = append(head, b|0x80)
		b = byte(size & 0x7f)
	}
	return append(head, b)
}
