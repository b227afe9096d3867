// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// inputs.lock is YAML of one shape only: block style, two blanks a level, sorted
// keys, every text in double quotes, one line a scalar. So that its bytes depend on
// nothing but its data, that it merges line by line, and that no text in it can be
// taken for something else. Reading this shape alone is also some ten times faster
// than a YAML parser, which counts with ten thousand input sets.

// maxLockDepth bounds how deep values may be nested.
const maxLockDepth = 100

// appendYAML appends a JSON value at an indentation; what precedes it is "key:" or "-".
func appendYAML(out []byte, value any, indent int) []byte {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			return append(out, " {}\n"...)
		}
		out = append(out, '\n')
		return appendMap(out, v, indent)
	case []any:
		if len(v) == 0 {
			return append(out, " []\n"...)
		}
		out = append(out, '\n')
		for _, item := range v {
			out = appendIndent(out, indent)
			out = append(out, '-')
			if m, ok := item.(map[string]any); ok && len(m) > 0 {
				start := len(out) + 1 // the first key stands right behind the dash
				out = appendMap(out, m, indent+2)
				out = slices.Delete(out, start, start+indent+1)
				continue
			}
			out = appendYAML(out, item, indent+2)
		}
		return out
	}
	out = append(out, ' ')
	out = appendScalar(out, value)
	return append(out, '\n')
}

// appendMap appends the entries of a map, sorted.
func appendMap(out []byte, m map[string]any, indent int) []byte {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		out = appendIndent(out, indent)
		out = appendKey(out, key)
		out = appendYAML(out, m[key], indent+2)
	}
	return out
}

// appendKey appends a key and its colon.
func appendKey(out []byte, key string) []byte {
	if isBareKey(key) {
		out = append(out, key...)
	} else {
		out = appendQuoted(out, key)
	}
	return append(out, ':')
}

func appendIndent(out []byte, n int) []byte {
	for range n {
		out = append(out, ' ')
	}
	return out
}

func appendScalar(out []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(out, "null"...)
	case bool:
		return strconv.AppendBool(out, v)
	case int64:
		return strconv.AppendInt(out, v, 10)
	case float64:
		return appendFloat(out, v)
	case string:
		return appendQuoted(out, v)
	}
	return appendQuoted(out, fmt.Sprint(value))
}

// appendFloat keeps a float apart from a whole number.
func appendFloat(out []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(out, ".nan"...)
	case math.IsInf(v, 1):
		return append(out, ".inf"...)
	case math.IsInf(v, -1):
		return append(out, "-.inf"...)
	}
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(text, ".") {
		mantissa, exponent, scientific := strings.Cut(text, "e")
		text = mantissa + ".0"
		if scientific {
			text += "e" + exponent
		}
	}
	return append(out, text...)
}

// isBareKey says that a key needs no quotes in any version of YAML.
func isBareKey(key string) bool {
	if key == "" || len(key) > 300 {
		return false
	}
	for i := 0; i < len(key); i++ {
		c := key[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (i == 0 || !('0' <= c && c <= '9' || c == '-' || c == '.' || c == '/')) {
			return false
		}
	}
	if len(key) > len("false") {
		return true
	}
	switch strings.ToLower(key) { // words that YAML 1.1 takes for other values
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	return true
}

// appendQuoted appends a double-quoted text. Bytes that are no UTF-8 become U+FFFD.
func appendQuoted(out []byte, text string) []byte {
	out = append(out, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r == '\n':
			out = append(out, '\\', 'n')
		case r == '\t':
			out = append(out, '\\', 't')
		case r == '\r':
			out = append(out, '\\', 'r')
		case r < utf8.RuneSelf && unicode.IsPrint(r):
			out = append(out, byte(r))
		case r >= utf8.RuneSelf && r != '\uFEFF' && unicode.IsPrint(r):
			out = utf8.AppendRune(out, r)
		case r <= 0xFFFF:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = fmt.Appendf(out, `\U%08x`, r)
		}
	}
	return append(out, '"')
}
