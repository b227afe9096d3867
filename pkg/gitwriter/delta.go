// SPDX-License-Identifier: Apache-2.0

package gitwriter

import "fmt"

var errBadDelta = fmt.Errorf("%w: delta", errBadPack)

// applyDelta makes an object out of another one. A delta is the size of both and a list
// of instructions: take a piece of the base, or take the bytes that follow.
func applyDelta(base, delta []byte) ([]byte, error) {
	from, delta, ok := deltaSize(delta)
	if !ok || from != uint64(len(base)) {
		return nil, errBadDelta
	}
	size, delta, ok := deltaSize(delta)
	if !ok || size > maxObject {
		return nil, errBadDelta
	}
	// A size is only a claim, and few bytes of delta make many of the object.
	out := make([]byte, 0, min(size, uint64(len(base)+len(delta))))
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		switch {
		case op&0x80 != 0:
			var offset, length uint64
			if offset, length, delta, ok = deltaCopy(op, delta); !ok {
				return nil, errBadDelta
			}
			if offset+length > uint64(len(base)) || uint64(len(out))+length > size {
				return nil, errBadDelta
			}
			out = append(out, base[offset:offset+length]...)
		case op > 0:
			if int(op) > len(delta) || uint64(len(out))+uint64(op) > size {
				return nil, errBadDelta
			}
			out = append(out, delta[:op]...)
			delta = delta[op:]
		default: // reserved
			return nil, errBadDelta
		}
	}
	if uint64(len(out)) != size {
		return nil, errBadDelta
	}
	return out, nil
}

// deltaSize reads a number of seven bits a byte, the least significant first.
func deltaSize(delta []byte) (n uint64, rest []byte, ok bool) {
	for i, b := range delta {
		if i > 8 {
			break
		}
		n |= uint64(b&0x7f) << (7 * i)
		if b&0x80 == 0 {
			return n, delta[i+1:], true
		}
	}
	return 0, nil, false
}

// deltaCopy reads where a piece of the base begins and how long it is. The bits of op
// say which bytes of the two numbers are there; the others are zero.
func deltaCopy(op byte, delta []byte) (offset, length uint64, rest []byte, ok bool) {
	for i := range 7 {
		if op&(1<<i) == 0 {
			continue
		}
		if len(delta) == 0 {
			return 0, 0, nil, false
		}
		if i < 4 {
			offset |= uint64(delta[0]) << (8 * i)
		} else {
			length |= uint64(delta[0]) << (8 * (i - 4))
		}
		delta = delta[1:]
	}
	if length == 0 {
		length = 0x10000
	}
	return offset, length, delta, true
}
