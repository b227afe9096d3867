// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// writeIndexFile writes a pack's index, read-only as git has it.
func writeIndexFile(path string, entries []packEntry, pack plumbing.Hash) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = writeIndex(f, entries, pack)
	return errors.Join(err, f.Chmod(0o444), f.Close())
}

// writeIndex writes an index of version 2: how many objects have a hash up to each first
// byte, then hashes, checksums and offsets, all in order of the hashes. Offsets of 2 GiB
// and more stand in a table of their own.
func writeIndex(w io.Writer, entries []packEntry, pack plumbing.Hash) error {
	sum := sha1.New()
	out := bufio.NewWriterSize(io.MultiWriter(w, sum), 64<<10)
	order := make([]int32, len(entries))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(entries[a].hash[:], entries[b].hash[:]) })
	var word [8]byte
	put32 := func(n uint32) { out.Write(binary.BigEndian.AppendUint32(word[:0], n)) }
	out.WriteString("\377tOc")
	put32(2)
	n := 0
	for first := range 256 {
		for n < len(order) && int(entries[order[n]].hash[0]) == first {
			n++
		}
		put32(uint32(n))
	}
	for _, i := range order {
		out.Write(entries[i].hash[:])
	}
	for _, i := range order {
		put32(entries[i].crc)
	}
	var far []int64
	for _, i := range order {
		offset := entries[i].offset
		if offset < 1<<31 {
			put32(uint32(offset))
			continue
		}
		put32(1<<31 | uint32(len(far)))
		far = append(far, offset)
	}
	for _, offset := range far {
		out.Write(binary.BigEndian.AppendUint64(word[:0], uint64(offset)))
	}
	out.Write(pack[:])
	if err := out.Flush(); err != nil { // keeps the first error of all writes
		return err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}
