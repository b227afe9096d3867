// SPDX-License-Identifier: Apache-2.0

package api

import "bytes"

// A chunk is a part of a file that holds whole YAML documents, usually one.
type chunk struct {
	data []byte
	line int // lines of the file before data
}

// split cuts a stream at its document markers, so that a document that is not
// YAML does not hide the ones after it.
//
// A marker is "---" in the first column, followed by a blank or the end of the
// line. YAML allows that nowhere inside a document: text of a block scalar
// inside a map is indented, and a quoted text with such a line is an error. So
// no knowledge of the document is needed, and an indented "---" never splits.
// What stands before the first marker stays with it when it is nothing but
// comments and directives ("%YAML 1.1").
func split(data []byte) []chunk {
	var chunks []chunk
	start, startLine := 0, 0
	preamble := true // only comments, blank lines and directives since start
	line := 0
	for pos := 0; pos < len(data); line++ {
		end := pos + bytes.IndexByte(data[pos:], '\n') + 1
		if end == pos {
			end = len(data)
		}
		text := data[pos:end]
		marker := isMarker(text)
		if marker && !preamble {
			chunks = append(chunks, chunk{data[start:pos], startLine})
			start, startLine = pos, line
		}
		preamble = preamble && !marker && isPreamble(text)
		pos = end
	}
	return append(chunks, chunk{data[start:], startLine})
}

func isMarker(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

func isPreamble(line []byte) bool {
	text := bytes.TrimSpace(line)
	return len(text) == 0 || text[0] == '#' || line[0] == '%'
}
