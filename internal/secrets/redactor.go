// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"resourceset.example/renderer/internal/escape"
)

// MinLength is the length of the shortest value that is looked for. Shorter ones
// would be found in innocent text.
const MinLength = 8

// mask is what stands in scrubbed text where a value was.
const mask = "[redacted]"

// publicKeys are the keys of Secrets whose values are no secrets, and which may
// well be part of what is rendered: names, addresses, certificates.
var publicKeys = map[string]bool{
	"username": true, "ca.crt": true, "tls.crt": true, "known_hosts": true, "identity.pub": true,
	"githubAppID": true, "githubAppInstallationID": true, "githubAppInstallationOwner": true,
	"githubAppBaseURL": true, "caFile": true, "certFile": true, "address": true, "type": true,
}

// A Redactor knows secret values and finds them in text. The zero value knows
// none and is ready to use; all methods may be called at the same time.
type Redactor struct {
	mu    sync.Mutex
	known map[string]string // form of a value → whose it is
	index atomic.Pointer[index]
}

// Add makes the values of one Secret known, for good: after a rotation the old
// value is still one that must not be seen. Name is what Contains will answer.
func (r *Redactor) Add(name string, data map[string][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.known)
	for key, value := range data {
		if publicKeys[key] {
			continue
		}
		for _, form := range forms(string(value)) {
			if r.known == nil {
				r.known = map[string]string{}
			}
			if _, ok := r.known[form]; !ok {
				r.known[form] = name + ", key " + key
			}
		}
	}
	if len(r.known) != before {
		r.index.Store(newIndex(r.known))
	}
}

// Contains reports whether text holds a known value, and whose it is.
func (r *Redactor) Contains(text []byte) (name string, found bool) {
	ix := r.index.Load()
	if ix == nil {
		return "", false
	}
	for i := 0; i+MinLength <= len(text); i++ {
		if p := ix.at(text, i); p != nil {
			return p.owner, true
		}
	}
	return "", false
}

// Scrub returns text with every known value hidden.
func (r *Redactor) Scrub(text string) string {
	ix := r.index.Load()
	if ix == nil || len(text) < MinLength {
		return text
	}
	raw := []byte(text)
	var out strings.Builder
	kept := 0
	for i := 0; i+MinLength <= len(raw); {
		p := ix.at(raw, i)
		if p == nil {
			i++
			continue
		}
		out.Write(raw[kept:i])
		out.WriteString(mask)
		i += len(p.text)
		kept = i
	}
	if kept == 0 {
		return text
	}
	out.Write(raw[kept:])
	return out.String()
}

// forms are the texts that give a value away.
func forms(value string) []string {
	trimmed := strings.TrimSpace(value)
	if len(trimmed) < MinLength {
		return nil
	}
	parts := []string{trimmed}
	if strings.ContainsAny(trimmed, "\r\n") {
		// A value of several lines is indented when it becomes part of YAML, so
		// each line has to be enough. Of a PEM block, the first line is left out:
		// that of an OpenSSH key is the same in every key.
		parts = append(parts, telltaleLines(trimmed)...)
	}
	var all []string
	for _, part := range parts {
		all = append(all, escape.Forms(part)...)
	}
	all = append(all, base64Cores(trimmed)...)
	all = slices.DeleteFunc(all, func(s string) bool { return len(s) < MinLength })
	slices.Sort(all)
	return slices.Compact(all)
}

// minLine is how long a line of a value must be to stand for the value.
const minLine = 20

func telltaleLines(value string) []string {
	var lines []string
	afterHeader := false
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		isHeader := strings.HasPrefix(line, "-----")
		if !isHeader && !afterHeader && len(line) >= minLine {
			lines = append(lines, line)
		}
		afterHeader = isHeader
	}
	return lines
}

// base64Cores are the texts of which one is in every base64 text that encodes
// value, or anything that value is a part of ("user:password", a whole file): one
// for each position that the value can have in a group of three bytes, without
// the characters at both ends that depend on the neighbours. In both alphabets.
func base64Cores(value string) []string {
	var cores []string
	for shift := range 3 {
		first := (shift*8 + 5) / 6           // whole characters of value's own bits start here
		last := (shift*8 + len(value)*8) / 6 // and end here
		padded := strings.Repeat("\x00", shift) + value
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			cores = append(cores, encoding.EncodeToString([]byte(padded))[first:last])
		}
	}
	return cores
}

// A pattern is one text to look for.
type pattern struct {
	text, owner string
}

// An index finds many patterns in one walk over a text: the first MinLength bytes
// at a place, taken as a number, are looked up in a bitmap that says "no" for
// nearly all places, and only then in a map.
type index struct {
	bits     [1 << 12]uint64
	patterns map[uint64][]pattern // longest first
}

func newIndex(known map[string]string) *index {
	ix := &index{patterns: make(map[uint64][]pattern, len(known))}
	for text, owner := range known {
		key := binary.LittleEndian.Uint64([]byte(text))
		ix.patterns[key] = append(ix.patterns[key], pattern{text, owner})
		bit := hash(key)
		ix.bits[bit>>6] |= 1 << (bit & 63)
	}
	for _, list := range ix.patterns {
		slices.SortFunc(list, func(a, b pattern) int {
			if len(a.text) != len(b.text) {
				return len(b.text) - len(a.text)
			}
			return strings.Compare(a.text, b.text)
		})
	}
	return ix
}

// hash maps a key to a bit of the bitmap (18 bits).
func hash(key uint64) uint64 { return key * 0x9e3779b97f4a7c15 >> 46 }

// at returns the longest pattern that text has at i; MinLength bytes must be there.
func (ix *index) at(text []byte, i int) *pattern {
	key := binary.LittleEndian.Uint64(text[i:])
	bit := hash(key)
	if ix.bits[bit>>6]&(1<<(bit&63)) == 0 {
		return nil
	}
	list := ix.patterns[key]
	for k := range list {
		if p := &list[k]; len(p.text) <= len(text)-i && string(text[i:i+len(p.text)]) == p.text {
			return p
		}
	}
	return nil
}
