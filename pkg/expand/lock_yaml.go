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

// A yamlReader reads what appendMap wrote. It refuses every other shape.
type yamlReader struct {
	data string
	line int // of text, from 1
	// the current line, taken apart
	indent int
	text   string
	ok     bool
}

// parseYAML reads a document whose root is a map.
func parseYAML(data []byte) (map[string]any, error) {
	return readYAML(&yamlReader{data: string(data)})
}

func readYAML(r *yamlReader) (map[string]any, error) {
	r.next()
	m, err := r.readMap(0, 0)
	if err != nil {
		return nil, err
	}
	if r.ok {
		return nil, r.errorf("indented deeper or less deep than the lines around it")
	}
	return m, nil
}

func (r *yamlReader) errorf(format string, args ...any) error {
	return &lineError{line: r.line, msg: fmt.Sprintf(format, args...)}
}

// A lineError says which line of a text is wrong.
type lineError struct {
	line int
	msg  string
}

func (e *lineError) Error() string { return "line " + strconv.Itoa(e.line) + ": " + e.msg }

// next goes to the next line that is neither blank nor a comment.
func (r *yamlReader) next() {
	for r.data != "" {
		text, rest, _ := strings.Cut(r.data, "\n")
		text, r.data = strings.TrimSuffix(text, "\r"), rest
		r.line++
		bare := strings.TrimLeft(text, " ")
		if bare == "" || bare[0] == '#' {
			continue
		}
		r.indent, r.text, r.ok = len(text)-len(bare), bare, true
		return
	}
	r.ok = false
}

func (r *yamlReader) readMap(indent, depth int) (map[string]any, error) {
	if depth > maxLockDepth {
		return nil, r.errorf("nested more than %d levels deep", maxLockDepth)
	}
	m := map[string]any{}
	last := ""
	for r.ok && r.indent == indent && r.text[0] != '-' {
		key, rest, err := r.readKey()
		if err != nil {
			return nil, err
		}
		if len(m) > 0 && key <= last {
			return nil, r.errorf("key %q is repeated or not in its sorted place", key)
		}
		last = key
		value, err := r.readValue(rest, indent, depth)
		if err != nil {
			return nil, err
		}
		m[key] = value
	}
	return m, nil
}

func (r *yamlReader) readList(indent, depth int) ([]any, error) {
	if depth > maxLockDepth {
		return nil, r.errorf("nested more than %d levels deep", maxLockDepth)
	}
	var list []any
	for r.ok && r.indent == indent && r.text[0] == '-' {
		var value any
		var err error
		if text, ok := strings.CutPrefix(r.text, "- "); ok && startsWithKey(text) {
			r.indent, r.text = indent+2, text
			value, err = r.readMap(indent+2, depth+1)
		} else {
			value, err = r.readValue(r.text[1:], indent, depth)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

// startsWithKey says that a list item is a map. A scalar has a colon only in quotes.
func startsWithKey(text string) bool {
	if text == "" || text[0] != '"' {
		return strings.Contains(text, ":")
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return strings.HasPrefix(text[i+1:], ":")
		}
	}
	return false
}

// readKey splits the current line after the colon of its key.
func (r *yamlReader) readKey() (key, rest string, err error) {
	if r.text[0] == '"' {
		key, rest, err = r.readQuoted(r.text)
		if err != nil {
			return "", "", err
		}
		rest, ok := strings.CutPrefix(rest, ":")
		if !ok {
			return "", "", r.errorf("no colon after a key")
		}
		return key, rest, nil
	}
	key, rest, ok := strings.Cut(r.text, ":")
	if !ok || !isBareKey(key) {
		return "", "", r.errorf("neither a key with a value nor a list item")
	}
	return key, rest, nil
}

// readValue reads the value whose first line ends in rest, and goes to the line after it.
func (r *yamlReader) readValue(rest string, indent, depth int) (any, error) {
	if rest == "" {
		r.next()
		if !r.ok || r.indent != indent+2 {
			return nil, r.errorf("a value is missing, or not indented by two blanks")
		}
		if r.text[0] == '-' {
			return r.readList(indent+2, depth+1)
		}
		return r.readMap(indent+2, depth+1)
	}
	text, ok := strings.CutPrefix(rest, " ")
	if !ok || text == "" {
		return nil, r.errorf("no blank before a value")
	}
	value, err := r.readScalar(text)
	if err != nil {
		return nil, err
	}
	r.next()
	return value, nil
}

func (r *yamlReader) readScalar(text string) (any, error) {
	switch text {
	case "{}":
		return map[string]any{}, nil
	case "[]":
		return []any{}, nil
	case "null":
		return nil, nil
	case "true", "false":
		return text == "true", nil
	case ".nan":
		return math.NaN(), nil
	case ".inf":
		return math.Inf(1), nil
	case "-.inf":
		return math.Inf(-1), nil
	}
	if text[0] == '"' {
		value, rest, err := r.readQuoted(text)
		if err == nil && rest != "" {
			err = r.errorf("something follows the end of a text")
		}
		return value, err
	}
	if text[0] != '-' && (text[0] < '0' || text[0] > '9') || strings.ContainsAny(text, "xX_pP") {
		return nil, r.errorf("a text without quotes")
	}
	if strings.Contains(text, ".") {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f, nil
		}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	return nil, r.errorf("%q is no number", cut(text, 40))
}

// readQuoted reads a double-quoted text and returns what follows it.
func (r *yamlReader) readQuoted(text string) (value, rest string, err error) {
	if end := strings.IndexAny(text[1:], `"\`); end >= 0 && text[1+end] == '"' {
		return text[1 : 1+end], text[2+end:], nil // nothing escaped
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			return b.String(), text[i+1:], nil
		case '\\':
			char, used, ok := unescape(text[i+1:])
			if !ok {
				return "", "", r.errorf("unknown escape in a text")
			}
			b.WriteRune(char)
			i += used
		default:
			b.WriteByte(c)
		}
	}
	return "", "", r.errorf("a text without an end")
}

// unescape reads what follows a backslash.
func unescape(text string) (value rune, used int, ok bool) {
	if text == "" {
		return 0, 0, false
	}
	digits := 0
	switch text[0] {
	case '"', '\\':
		return rune(text[0]), 1, true
	case 'n':
		return '\n', 1, true
	case 't':
		return '\t', 1, true
	case 'r':
		return '\r', 1, true
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	}
	if digits == 0 || len(text) < 1+digits {
		return 0, 0, false
	}
	n, err := strconv.ParseUint(text[1:1+digits], 16, 32)
	if err != nil || !utf8.ValidRune(rune(n)) || n > unicode.MaxRune {
		return 0, 0, false
	}
	return rune(n), 1 + digits, true
}
