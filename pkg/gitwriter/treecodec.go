// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Modes as Git writes them into trees. They are kept as text, so that what other
// people's trees hold (the 100664 of old versions, too) is written back as it was.
const (
	modeFile      = "100644"
	modeDir       = "40000"
	modeSymlink   = "120000"
	modeSubmodule = "160000"
)

var errBadTree = errors.New("malformed tree object")

// treeEntry is one line of a tree object.
type treeEntry struct {
	mode, name string
	hash       plumbing.Hash
}

func (e treeEntry) isDir() bool { return e.mode == modeDir || e.mode == "040000" }

// sortKey is what Git orders entries by: folders count as if their name ended in a slash.
func (e treeEntry) sortKey() string {
	if e.isDir() {
		return e.name + "/"
	}
	return e.name
}

// decodeTree reads a tree object. The entries' texts share one copy of the data.
func decodeTree(data []byte) ([]treeEntry, error) {
	text := string(data)
	entries := make([]treeEntry, 0, len(text)/48)
	for len(text) > 0 {
		space := strings.IndexByte(text, ' ')
		if space <= 0 {
			return nil, errBadTree
		}
		nul := strings.IndexByte(text[space+1:], 0)
		if nul <= 0 {
			return nil, errBadTree
		}
		end := space + 1 + nul + 1 + len(plumbing.Hash{})
		if end > len(text) {
			return nil, errBadTree
		}
		entry := treeEntry{mode: text[:space], name: text[space+1 : space+1+nul]}
		copy(entry.hash[:], text[end-len(entry.hash):end])
		entries = append(entries, entry)
		text = text[end:]
	}
	return entries, nil
}

// encodeTree writes entries, which are sorted, as a tree object.
func encodeTree(entries []treeEntry) []byte {
	var buf bytes.Buffer
	for _, e := range entries {
		buf.WriteString(e.mode)
		buf.WriteByte(' ')
		buf.WriteString(e.name)
		buf.WriteByte(0)
		buf.Write(e.hash[:])
	}
	return buf.Bytes()
}
