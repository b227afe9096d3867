// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"

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

// pack writes the objects as a packfile that stands on its own: no deltas, so nothing is
// searched or compared.
func (o *newObjects) pack() ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteString("PACK")
	var head [8]byte
	binary.BigEndian.PutUint32(head[:4], 2)
	binary.BigEndian.PutUint32(head[4:], uint32(len(o.list)))
	buf.Write(head[:])
	compressor := zlib.NewWriter(&buf)
	for _, obj := range o.list {
		buf.Write(packEntryHead(obj.typ, len(obj.data)))
		compressor.Reset(&buf)
		if _, err := compressor.Write(obj.data); err != nil {
			return nil, err
		}
		if err := compressor.Close(); err != nil {
			return nil, err
		}
	}
	sum := sha1.Sum(buf.Bytes())
	buf.Write(sum[:])
	return buf.Bytes(), nil
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
