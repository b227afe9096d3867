// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

// The functions below write the YAML that sigs.k8s.io/yaml would write, for values
// that hold nothing unusual, without its detour over JSON: five times faster. For
// what is rare (several lines, long texts that are folded, letters beyond ASCII)
// they say no, and the caller takes the library. FuzzEncode holds both together.

const (
	yamlWidth  = 80 // a text is folded at the first blank after this column
	maxSimple  = 100
	yamlIndent = 2
)

// writeMap writes a map that is not empty. The first key goes where text ends,
// the others are indented.
func writeMap(text []byte, content map[string]any, indent int) ([]byte, bool) {
	if len(content) == 0 {
		return text, false
	}
	var space [16]string
	keys := space[:0]
	for key := range content {
		keys = append(keys, key)
	}
	slices.Sort(keys) // compareKeys alone is no order where zeros lead: the outcome depends on the start
	slices.SortStableFunc(keys, compareKeys)
	for i, key := range keys {
		if i > 0 {
			text = writeIndent(text, indent)
		}
		if len(key) > maxSimple {
			return text, false
		}
		var ok bool
		if text, ok = writeText(text, key, 0); !ok {
			return text, false
		}
		text = append(text, ':')
		if text, ok = writeField(text, content[key], indent, indent+len(key)+4); !ok {
			return text, false
		}
	}
	return text, true
}

// writeField writes the value of a key.
func writeField(text []byte, value any, indent, column int) ([]byte, bool) {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			return append(text, " {}\n"...), true
		}
		text = append(text, '\n')
		return writeMap(writeIndent(text, indent+yamlIndent), v, indent+yamlIndent)
	case []any:
		if len(v) == 0 {
			return append(text, " []\n"...), true
		}
		text = append(text, '\n')
		return writeList(writeIndent(text, indent), v, indent)
	}
	return writeScalar(append(text, ' '), value, column)
}

// writeList writes a list that is not empty. The first item goes where text ends.
func writeList(text []byte, list []any, indent int) ([]byte, bool) {
	for i, item := range list {
		if i > 0 {
			text = writeIndent(text, indent)
		}
		text = append(text, '-', ' ')
		ok := true
		switch v := item.(type) {
		case map[string]any:
			if len(v) == 0 {
				text = append(text, "{}\n"...)
				continue
			}
			text, ok = writeMap(text, v, indent+yamlIndent)
		case []any:
			if len(v) == 0 {
				text = append(text, "[]\n"...)
				continue
			}
			text, ok = writeList(text, v, indent+yamlIndent)
		default:
			text, ok = writeScalar(text, item, indent+yamlIndent)
		}
		if !ok {
			return text, false
		}
	}
	return text, true
}

func writeIndent(text []byte, indent int) []byte {
	for range indent {
		text = append(text, ' ')
	}
	return text
}

// writeScalar writes a value and the end of its line.
func writeScalar(text []byte, value any, column int) ([]byte, bool) {
	switch v := value.(type) {
	case nil:
		text = append(text, "null"...)
	case bool:
		text = strconv.AppendBool(text, v)
	case int64:
		text = strconv.AppendInt(text, v, 10)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) || v == math.Trunc(v) {
			return text, false
		}
		text = strconv.AppendFloat(text, v, 'g', -1, 64)
	case string:
		var ok bool
		if text, ok = writeText(text, v, column); !ok {
			return text, false
		}
	default:
		return text, false
	}
	return append(text, '\n'), true
}

// writeText writes a text of one line, plain where it can be, in single quotes
// where characters of YAML's own ask for them, in double quotes where it would be
// read as something else than a text.
func writeText(text []byte, s string, column int) ([]byte, bool) {
	if s == "" {
		return append(text, '"', '"'), true
	}
	if !isPrintable(s) {
		return text, false
	}
	blanks := strings.Contains(s, " ")
	if blanks && column+len(s) > yamlWidth-yamlIndent {
		return text, false
	}
	switch {
	case !readsAsText(s):
		return append(append(append(text, '"'), s...), '"'), true
	case isPlainText(s):
		return append(text, s...), true
	}
	if blanks && column+len(s)+strings.Count(s, "'") > yamlWidth-yamlIndent {
		return text, false
	}
	text = append(text, '\'')
	for i := range len(s) {
		if s[i] == '\'' {
			text = append(text, '\'')
		}
		text = append(text, s[i])
	}
	return append(text, '\''), true
}

// isPrintable says that a text is one line of printable ASCII.
func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// isPlainText says that a printable ASCII text needs no quotes for its characters.
func isPlainText(s string) bool {
	if strings.HasPrefix(s, "---") || strings.HasPrefix(s, "...") {
		return false
	}
	last := len(s) - 1
	switch s[0] {
	case '#', ',', '[', ']', '{', '}', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`', ' ':
		return false
	case '?', '-':
		if last == 0 || s[1] == ' ' {
			return false
		}
	}
	if s[last] == ' ' {
		return false
	}
	for i := range len(s) {
		switch s[i] {
		case ':':
			if i == last || s[i+1] == ' ' {
				return false
			}
		case '#':
			if i > 0 && s[i-1] == ' ' {
				return false
			}
		}
	}
	return true
}

// readsAsText says that YAML 1.1 takes a text for a text also without quotes. What
// is not plain to see is asked of the library.
func readsAsText(s string) bool {
	switch c := s[0]; {
	case '0' <= c && c <= '9', c == '+', c == '-', c == '.':
		if neverNumber(s) {
			return true
		}
		return !quotedByLibrary(s)
	case c == '~':
		return len(s) > 1
	}
	if len(s) > 5 {
		return true
	}
	switch strings.ToLower(s) {
	case "y", "yes", "n", "no", "on", "off", "true", "false", "null":
		return !quotedByLibrary(s)
	}
	return true
}

// neverNumber says that a text that starts like a number is none, nor a date or a
// time, because of a letter that none of these has. Hexadecimal letters need 0x.
func neverNumber(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20 // lower case
		switch {
		case 'g' <= c && c <= 'z' && !strings.ContainsRune("inotxz", rune(c)): // as in .inf, .nan, 0o, 0x, T and Z
			return true
		case (c == 'a' || c == 'c' || c == 'd' || c == 'f') && '0' <= s[0] && s[0] <= '9' && (len(s) < 2 || s[1]|0x20 != 'x'):
			return true
		case s[i] == '/' || s[i] == '@' || s[i] == '=':
			return true
		}
	}
	return false
}

// quotedByLibrary says that the YAML library puts a text in double quotes, for what
// it would be read as.
func quotedByLibrary(s string) bool {
	text, err := yaml.Marshal(s)
	return err != nil || text[0] == '"'
}

// compareKeys orders keys as the YAML library does: numbers within a text by their
// value, letters after everything else.
func compareKeys(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(a) || n == len(b) {
		return len(a) - len(b)
	}
	if isLower(a[n]) && isLower(b[n]) {
		return int(a[n]) - int(b[n])
	}
	if slowLess(a, b) {
		return -1
	}
	return 1
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

// slowLess compares texts at the first letter, digit or sign in which they differ.
func slowLess(a, b string) bool {
	ar, br := []rune(a), []rune(b)
	i := 0
	for i < len(ar) && i < len(br) && ar[i] == br[i] {
		i++
	}
	if i == len(ar) || i == len(br) {
		return len(ar) < len(br)
	}
	aLetter, bLetter := unicode.IsLetter(ar[i]), unicode.IsLetter(br[i])
	switch {
	case aLetter && bLetter:
		return ar[i] < br[i]
	case aLetter || bLetter:
		return bLetter
	}
	var start int64 // a zero counts only behind another digit
	if ar[i] == '0' || br[i] == '0' {
		for j := i - 1; j >= 0 && unicode.IsDigit(ar[j]); j-- {
			if ar[j] != '0' {
				start = 1
				break
			}
		}
	}
	an, ai := number(ar, i, start)
	bn, bi := number(br, i, start)
	switch {
	case an != bn:
		return an < bn
	case ai != bi:
		return ai < bi
	}
	return ar[i] < br[i]
}

// number reads the digits of runes from position i, after start; end is behind them.
func number(runes []rune, i int, start int64) (n int64, end int) {
	n = start
	for ; i < len(runes) && unicode.IsDigit(runes[i]); i++ {
		n = n*10 + int64(runes[i]-'0')
	}
	return n, i
}
