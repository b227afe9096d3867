// SPDX-License-Identifier: Apache-2.0

// Package escape knows how programs write a text into others: into URLs, HTML, JSON
// and hexadecimal. A credential that has to be hidden has to be found in each form.
package escape

import (
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
)

// Forms are the text itself and how it looks escaped, each once, the longest first.
func Forms(text string) []string {
	forms := []string{text, html.EscapeString(text), strings.ReplaceAll(text, "'", "''"), ascii(text)}
	for _, keep := range []string{"", "/", "/:@", "~", "!*'()", "!*'()~"} {
		for _, space := range []string{"%20", "+"} {
			escaped := percent(text, keep, space)
			forms = append(forms, escaped, lowerHex(escaped))
		}
	}
	forms = append(forms, url.QueryEscape(text), url.PathEscape(text))
	if quoted, err := json.Marshal(text); err == nil {
		inner := string(quoted[1 : len(quoted)-1])
		forms = append(forms, inner, strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(inner))
	}
	digits := hex.EncodeToString([]byte(text))
	forms = append(forms, digits, strings.ToUpper(digits))
	slices.SortFunc(forms, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(forms)
}

// percent escapes all bytes but the unreserved ones of RFC 3986 and those to keep.
func percent(text, keep, space string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(text) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.", c) >= 0, strings.IndexByte(keep, c) >= 0:
			b.WriteByte(c)
		case c == ' ':
			b.WriteString(space)
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// lowerHex writes the digits of percent escapes in lower case.
func lowerHex(escaped string) string {
	out := []byte(escaped)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			out[i+1], out[i+2] = lower(out[i+1]), lower(out[i+2])
			i += 2
		}
	}
	return string(out)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'F' {
		return c + 'a' - 'A'
	}
	return c
}

// ascii is a text in JSON as those write it that leave no letter beyond ASCII.
func ascii(text string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for _, c := range text {
		if c < 0x80 {
			b.WriteRune(c)
			continue
		}
		for _, unit := range utf16.Encode([]rune{c}) {
			b.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				b.WriteByte(digits[unit>>shift&15])
			}
		}
	}
	return b.String()
}
