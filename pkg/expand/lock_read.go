// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
