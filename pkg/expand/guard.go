// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"resourceset.example/renderer/pkg/api"
)

// Placeholders put texts from strangers into the text of YAML documents. A pull
// request's title with a line break and "---" would add an object, one with ": "
// a field. Escaping is the template's business (| quote), and the guard finds where
// it was forgotten: a set whose texts have characters that mean something in YAML
// is rendered twice more, with harmless texts of the same length in their place. In
// all that the two renderings agree on (documents, keys, constant values), the real
// one has to agree as well.

// A structureError is what an input value did to the structure of the output.
type structureError struct {
	path string // "[0].spec.values": document, then fields
	what string
}

func (e *structureError) Error() string {
	return fmt.Sprintf("an input value changes the structure of the output: %s %s", shownPath(e.path), e.what)
}

func (e *structureError) Suggestion() string {
	return "write << … | quote >> where the value goes in; the annotation " + api.AnnotationAllowStructure +
		`: "true" accepts templates that mean it`
}

// shownPath is a path within the documents of a part, as messages show it.
func shownPath(path string) string {
	index, field, _ := strings.Cut(path, ".")
	if field == "" {
		field = "the text"
	}
	if index == "[0]" || index == "" {
		return field
	}
	number, _ := strconv.Atoi(strings.Trim(index, "[]"))
	return fmt.Sprintf("document %d: %s", number+1, field)
}

// guard compares what part n rendered to for the current set with renderings of
// harmless texts. docs is the real one.
func (w *worker) guard(n int, docs []any) *structureError {
	flow := w.parts[n].flow
	unsafe := func(text string) bool { return changesStructure(text, flow) }
	if !w.anyText(unsafe) {
		return nil
	}
	a, errA := w.variant(n, func(text string) string { return harmless(text, flow, 'x') })
	b, errB := w.variant(n, func(text string) string { return harmless(text, flow, 'z') })
	var broken *brokenYAML
	switch {
	case errA == nil && errB == nil:
		return compareLists("", docs, a, b, "documents")
	case errors.As(errA, &broken) || errors.As(errB, &broken):
		return &structureError{what: "is YAML only because of what the value holds"}
	}
	return w.guardEach(n, docs, unsafe)
}

// guardEach tries the unsafe texts one by one. A template that takes one of them
// apart (fromJson) cannot be judged by it, but still by the others.
func (w *worker) guardEach(n int, docs []any, unsafe func(string) bool) *structureError {
	flow := w.parts[n].flow
	texts := make(map[string]bool)
	w.anyText(func(text string) bool {
		if unsafe(text) {
			texts[text] = true
		}
		return false
	})
	for _, text := range slices.Sorted(maps.Keys(texts)) {
		only := func(letter byte) func(string) string {
			return func(other string) string {
				if other != text {
					return other
				}
				return harmless(text, flow, letter)
			}
		}
		a, errA := w.variant(n, only('x'))
		b, errB := w.variant(n, only('z'))
		var broken *brokenYAML
		if errors.As(errA, &broken) || errors.As(errB, &broken) {
			return &structureError{what: "is YAML only because of what the value holds"}
		}
		if errA != nil || errB != nil {
			continue
		}
		if err := compareLists("", docs, a, b, "documents"); err != nil {
			return err
		}
	}
	return nil
}

// anyText says that found is true of a text in the guarded inputs of the current set.
func (w *worker) anyText(found func(string) bool) bool {
	for _, in := range w.guarded() {
		if anyText(in, found) {
			return true
		}
	}
	return false
}

// guarded are the inputs of the current set that others than the author of the
// ResourceSet can change, as far as the templates read them.
func (w *worker) guarded() []any {
	var all []any
	for i := range w.set.Parts {
		part := &w.set.Parts[i]
		if part.Kind == api.KindResourceSet && w.opts.Structure == StructureEnforce {
			continue
		}
		fields := w.p.fields
		if part.Key != "" {
			fields = fields.below(part.Key)
		}
		all = append(all, fields.Project(part.Inputs))
	}
	return all
}

func anyText(value any, found func(string) bool) bool {
	switch v := value.(type) {
	case string:
		return found(v)
	case []any:
		for _, item := range v {
			if anyText(item, found) {
				return true
			}
		}
	case map[string]any:
		for key, item := range v {
			if found(key) || anyText(item, found) {
				return true
			}
		}
	}
	return false
}

// variant renders part n with other texts in the guarded inputs.
func (w *worker) variant(n int, replace func(string) string) ([]any, error) {
	inputs := w.set.Inputs
	w.inputs = make(api.Input, len(inputs))
	maps.Copy(w.inputs, inputs)
	for i := range w.set.Parts {
		part := &w.set.Parts[i]
		if part.Kind == api.KindResourceSet && w.opts.Structure == StructureEnforce {
			continue
		}
		changed := replaceTexts(part.Inputs, replace).(map[string]any)
		target := w.inputs
		if part.Key != "" {
			target = maps.Clone(inputs[part.Key].(map[string]any))
			w.inputs[part.Key] = target
		}
		for key := range part.Inputs {
			if key != "provider" {
				delete(target, key)
			}
		}
		for key, value := range changed {
			if key != "provider" {
				target[key] = value
			}
		}
	}
	text, err := w.run(n)
	if err != nil {
		return nil, err
	}
	docs, err := decodeDocuments(text)
	if err != nil {
		return nil, &brokenYAML{err}
	}
	return docs, nil
}

// brokenYAML is why a rendering of other texts cannot be read.
type brokenYAML struct{ error }

// replaceTexts is a deep copy of value with other texts, keys of maps included.
func replaceTexts(value any, replace func(string) string) any {
	switch v := value.(type) {
	case string:
		return replace(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = replaceTexts(v[i], replace)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[replace(key)] = replaceTexts(item, replace)
		}
		return out
	}
	return value
}

// changesStructure says that a text could mean more than a scalar where it stands
// in YAML without quotes. In flow style a comma does, too.
func changesStructure(text string, flow bool) bool {
	for i := 0; i < len(text); {
		size, ok := harmlessAt(text, i, flow)
		if !ok {
			return true
		}
		i += size
	}
	return false
}

// harmless puts a letter in the place of every byte of a text that could have a
// meaning. What functions see of the rest (prefixes, separators) stays.
func harmless(text string, flow bool, letter byte) string {
	var out []byte
	for i := 0; i < len(text); {
		size, ok := harmlessAt(text, i, flow)
		if !ok {
			if out == nil {
				out = []byte(text)
			}
			for j := i; j < i+size; j++ {
				out[j] = letter
			}
		}
		i += size
	}
	if out == nil {
		return text
	}
	return string(out)
}

// harmlessAt says that the character at text[i] has no meaning to YAML where it
// stands in a plain scalar.
func harmlessAt(text string, i int, flow bool) (size int, ok bool) {
	r, size := utf8.DecodeRuneInString(text[i:])
	switch r {
	case '_', '/':
		return size, true
	case '-', '.', '+', '@', '=', '~', '(', ')', ';', '$', '^':
		return size, i > 0
	case ' ':
		return size, i > 0 && i+size < len(text)
	case ':': // a mapping needs a blank or the end after it
		next, _ := utf8.DecodeRuneInString(text[i+size:])
		return size, i > 0 && (next == '/' || isWordRune(next))
	case ',':
		return size, i > 0 && !flow
	case utf8.RuneError:
		return size, false
	}
	return size, isWordRune(r) || i > 0 && unicode.Is(unicode.Mn, r)
}

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// compare finds what the real rendering has different although both harmless ones
// agree on it.
func compare(path string, got, a, b any) *structureError {
	switch av := a.(type) {
	case map[string]any:
		bv, ok := b.(map[string]any)
		if !ok {
			return nil // the harmless ones differ: nothing to hold on to
		}
		rv, ok := got.(map[string]any)
		if !ok {
			return &structureError{path: path, what: "is " + describe(got) + " instead of a map"}
		}
		return compareMaps(path, rv, av, bv)
	case []any:
		bv, ok := b.([]any)
		if !ok {
			return nil
		}
		rv, ok := got.([]any)
		if !ok {
			return &structureError{path: path, what: "is " + describe(got) + " instead of a list"}
		}
		return compareLists(path, rv, av, bv, "items")
	}
	switch b.(type) {
	case map[string]any, []any:
		return nil
	}
	switch got.(type) {
	case map[string]any, []any:
		return &structureError{path: path, what: "is " + describe(got) + " instead of a single value"}
	}
	if a == b && got != a {
		return &structureError{path: path, what: "has another value than the template gives it"}
	}
	return nil
}

func compareMaps(path string, got, a, b map[string]any) *structureError {
	if len(a) == len(b) && len(got) != len(a) {
		return &structureError{path: path, what: fmt.Sprintf("has %d fields instead of %d", len(got), len(a))}
	}
	for _, key := range slices.Sorted(maps.Keys(a)) {
		bv, constant := b[key]
		if !constant {
			continue
		}
		rv, ok := got[key]
		if !ok {
			return &structureError{path: path, what: "lacks the field " + key}
		}
		if err := compare(join2(path, key), rv, a[key], bv); err != nil {
			return err
		}
	}
	return nil
}

func compareLists(path string, got, a, b []any, what string) *structureError {
	if len(a) != len(b) {
		return nil
	}
	if len(got) != len(a) {
		return &structureError{path: path, what: fmt.Sprintf("has %d %s instead of %d", len(got), what, len(a))}
	}
	for i := range a {
		if err := compare(fmt.Sprintf("%s[%d]", path, i), got[i], a[i], b[i]); err != nil {
			return err
		}
	}
	return nil
}

func join2(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
