// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	sigsyaml "sigs.k8s.io/yaml"
)

var (
	errorLine = regexp.MustCompile(`(?s)yaml: (?:line (\d+): )?(.*)`)
	// parserProblem are complaints for which the library names the line before.
	parserProblem = regexp.MustCompile(`^(did not find expected (<|node content|'-' indicator|key|',' or)|found (undefined tag handle|incompatible|duplicate %))`)
	unknownAnchor = regexp.MustCompile(`unknown anchor '(.*)' referenced`)
)

// syntaxError is the line (from 1) and the text of what keeps data from being
// YAML. The parser used for reading names the line where the surrounding map
// began, which may be far above; the older one, which Kubernetes uses, names the
// line of the problem, so it is asked when both refuse.
func syntaxError(data []byte, err error) (int, string) {
	line, msg := splitError(err)
	if _, second := sigsyaml.YAMLToJSON(data); second != nil {
		if l, m := splitError(second); l > 0 {
			line, msg = l, m
		}
	}
	if name := unknownAnchor.FindStringSubmatch(msg); name != nil && line == 0 {
		if at := bytes.Index(data, []byte("*"+name[1])); at >= 0 {
			line = 1 + bytes.Count(data[:at], []byte("\n"))
		}
	}
	if at := badCharacter(data); line == 0 && at >= 0 {
		line = 1 + bytes.Count(data[:at], []byte("\n"))
	}
	last := 1 + bytes.Count(bytes.TrimRight(data, "\n"), []byte("\n"))
	return min(max(line, 1), last), msg
}

// badCharacter is where the first character stands that YAML does not allow, or -1.
// The parser refuses those without saying where.
func badCharacter(data []byte) int {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		control := r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0 && r != 0x85
		if control || r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

func splitError(err error) (int, string) {
	found := errorLine.FindStringSubmatch(err.Error())
	if found == nil {
		return 0, err.Error()
	}
	line, _ := strconv.Atoi(found[1])
	if parserProblem.MatchString(found[2]) {
		line++
	}
	return line, found[2]
}

// syntaxHint guesses what was meant.
func syntaxHint(data []byte, msg string) string {
	switch {
	case bytes.Contains(data, []byte("{{")):
		return "this looks like a Go or Helm template, which is no YAML: keep it outside of the definitions"
	case bytes.Contains(data, []byte("<<")) && bytes.Contains(data, []byte("resources:")):
		return "quote placeholders that hold quotes, colons or braces, or move the objects into resourcesTemplate"
	case strings.Contains(msg, "cannot start any token") && bytes.ContainsRune(data, '\t'):
		return "indent with blanks: YAML allows no tabs there"
	case strings.Contains(msg, "mapping values are not allowed"):
		return `quote texts that hold ": "`
	}
	return ""
}
