// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A retyping is a text of an input that YAML read as something else, because the
// template did not quote it: the commit 6063e25 becomes a number, the branch "on"
// a boolean.
type retyping struct {
	path  string
	text  string
	value any
}

// retypings finds the texts of the guarded inputs that YAML re-typed in docs, what
// part n rendered to. A value that looks like one of them may be meant as it is, so
// the part is rendered again with a word of its own in the place of each.
func (w *worker) retypings(n int, docs []any) []retyping {
	values := make(map[any]bool)
	texts := make(map[string]bool)
	w.anyText(func(text string) bool {
		if value, ok := retypes(text); ok {
			values[value] = true
			texts[text] = true
		}
		return false
	})
	if len(texts) == 0 || !holdsAny(docs, values) {
		return nil
	}
	words := make(map[string]string, len(texts)) // text → word
	originals := make(map[string]string, len(texts))
	for i, text := range slices.Sorted(maps.Keys(texts)) {
		word := "word" + strings.Repeat("x", i)
		words[text], originals[word] = word, text
	}
	variant, err := w.variant(n, func(text string) string {
		if word, ok := words[text]; ok {
			return word
		}
		return text
	})
	if err != nil {
		return nil
	}
	var found []retyping
	collect("", docs, variant, originals, &found)
	return found
}

// retypes is what YAML makes of a text without quotes, if that is a number or a
// boolean. Null is left out: an empty value is a common way to leave a field unset.
func retypes(text string) (any, bool) {
	if text == "" || len(text) > 64 {
		return nil, false
	}
	switch c := text[0]; {
	case '0' <= c && c <= '9', c == '+', c == '-', c == '.':
		if strings.ContainsAny(text, " :/,") {
			return nil, false
		}
	default:
		switch strings.ToLower(text) {
		case "y", "yes", "n", "no", "on", "off", "true", "false":
		default:
			return nil, false
		}
	}
	docs, err := decodeDocuments([]byte(text))
	if err != nil || len(docs) != 1 {
		return nil, false
	}
	switch docs[0].(type) {
	case bool, int64, float64:
		return docs[0], true
	}
	return nil, false
}

// holdsAny says that one of the values is somewhere in value.
func holdsAny(value any, values map[any]bool) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			if holdsAny(item, values) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if holdsAny(item, values) {
				return true
			}
		}
	case bool, int64, float64:
		return values[v]
	}
	return false
}

// collect finds the places where value has something else than a text, and the
// variant has the word of one.
func collect(path string, value, variant any, originals map[string]string, found *[]retyping) {
	switch v := value.(type) {
	case map[string]any:
		if other, ok := variant.(map[string]any); ok {
			for _, key := range sortedKeys(v) {
				collect(join2(path, key), v[key], other[key], originals, found)
			}
		}
	case []any:
		if other, ok := variant.([]any); ok && len(other) == len(v) {
			for i := range v {
				collect(fmt.Sprintf("%s[%d]", path, i), v[i], other[i], originals, found)
			}
		}
	case bool, int64, float64:
		if word, ok := variant.(string); ok {
			if text, ok := originals[word]; ok {
				*found = append(*found, retyping{path: path, text: text, value: v})
			}
		}
	}
}

// mustBeText says that a cluster refuses anything but a text at a path, so that a
// re-typed one is an error: the value of an environment variable.
func (r *retyping) mustBeText() bool {
	before, ok := strings.CutSuffix(r.path, ".value")
	if !ok {
		return false
	}
	list, _, ok := strings.Cut(before[strings.LastIndexByte(before, '.')+1:], "[")
	return ok && list == "env"
}
