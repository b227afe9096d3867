// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// readyExpr is what Flux's dependsOn says for a dependency on a ResourceSet. With
// ready Flux's own idea of ready counts; without, that the Kustomization exists.
func readyExpr(dep api.Dependency) (string, error) {
	switch {
	case !dep.Ready:
		return "true", nil
	case dep.ReadyExpr == "":
		return "", nil
	}
	return celOf("dep", dep.ReadyExpr)
}

// celOf has a CEL expression speak of a variable in place of the fields of an object:
// the operator evaluates readyExpr on the object's fields (status.conditions), Flux
// on variables that hold objects (dep.status.conditions). Only words that stand for
// the fields are touched: not those in texts, behind a dot, or before a colon or a
// bracket, and none that a macro binds.
func celOf(variable, expr string) (string, error) {
	var out strings.Builder
	before := byte(0) // the last byte that is no blank
	for i := 0; i < len(expr); {
		c := expr[i]
		switch {
		case c == '"' || c == '\'':
			end, err := celText(expr, i)
			if err != nil {
				return "", err
			}
			out.WriteString(expr[i:end])
			i, before = end, c
			continue
		case isWordStart(c):
			end := i + 1
			for end < len(expr) && isWord(expr[end]) {
				end++
			}
			word := expr[i:end]
			rest := strings.TrimLeft(expr[end:], " \t\r\n")
			if isField(word) && before != '.' && !strings.HasPrefix(rest, "(") && !celBound(expr, word) {
				out.WriteString(variable + ".")
			}
			out.WriteString(word)
			i, before = end, expr[end-1]
			continue
		case '0' <= c && c <= '9': // 1u, 0x1f, 1e9: letters here are no word
			end := i + 1
			for end < len(expr) && (isWord(expr[end]) || expr[end] == '.') {
				end++
			}
			out.WriteString(expr[i:end])
			i, before = end, expr[end-1]
			continue
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			before = c
		}
		out.WriteByte(c)
		i++
	}
	return out.String(), nil
}

// isField says that a word is a field at the root of an object.
func isField(word string) bool {
	switch word {
	case "apiVersion", "kind", "metadata", "spec", "status", "data":
		return true
	}
	return false
}

// celBound says that a macro of the expression binds the word as its variable.
func celBound(expr, word string) bool {
	for _, macro := range []string{"all", "exists", "exists_one", "filter", "map"} {
		for rest := expr; ; {
			_, after, found := strings.Cut(rest, "."+macro+"(")
			if !found {
				break
			}
			rest = after
			bound, _, _ := strings.Cut(after, ",")
			if strings.TrimSpace(bound) == word {
				return true
			}
		}
	}
	return false
}

// celText is where the text that begins at i ends.
func celText(expr string, i int) (int, error) {
	raw := i > 0 && (expr[i-1] == 'r' || expr[i-1] == 'R')
	quote := expr[i : i+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(expr[i:], triple) {
		quote = triple
	}
	for at := i + len(quote); at < len(expr); at++ {
		if expr[at] == '\\' && !raw {
			at++
			continue
		}
		if strings.HasPrefix(expr[at:], quote) {
			return at + len(quote), nil
		}
	}
	return 0, fmt.Errorf("spec.dependsOn: readyExpr has a text without an end: %s", expr)
}

func isWordStart(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isWord(c byte) bool { return isWordStart(c) || '0' <= c && c <= '9' }
