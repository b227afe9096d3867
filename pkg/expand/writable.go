// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"maps"
	"slices"
)

// Not every value has a form in the files that we write: YAML has no place for most
// control characters, not even in JSON's quotes, and its keys are bounded. Whoever
// names a branch can put such a character into an input, and it is read well enough
// where it comes escaped. So an object is tried as soon as it is rendered, where the
// input set that brought the value is known, and that set fails alone.

// unwritable is why no file can be made of an object, or nil. Nearly all objects are
// told from a glance at their texts; what else is unusual is encoded to find out.
func unwritable(object *Object) *defect {
	if !unusual(object.Content, 0) {
		return nil
	}
	if path, r := unwritableAt("", object.Content); path != "" {
		return &defect{field: "[0]." + path,
			msg:  fmt.Sprintf("%s: %s holds the character %U, which YAML has no place for", object.ID, path, r),
			hint: "have the value corrected where it comes from, or put it through slugify, b64enc or regexReplaceAll"}
	}
	if _, err := Encode(object.Content); err != nil {
		return defectf("shorten the value, or leave it out", "%s: cannot be written as YAML: %s", object.ID, yamlMessage(err))
	}
	return nil
}

// maxUsualDepth is a depth that every encoder writes.
const maxUsualDepth = 100

// unusual says that a value may have no form in YAML.
func unusual(value any, depth int) bool {
	if depth > maxUsualDepth {
		return true
	}
	switch v := value.(type) {
	case string:
		return unwritableRune(v) >= 0
	case []any:
		for _, item := range v {
			if unusual(item, depth+1) {
				return true
			}
		}
	case map[string]any:
		for key, item := range v {
			if len(key) > maxSimple || unwritableRune(key) >= 0 || unusual(item, depth+1) {
				return true
			}
		}
	}
	return false
}

// unwritableAt is the path of the first text with such a character, and the character.
func unwritableAt(path string, value any) (string, rune) {
	switch v := value.(type) {
	case string:
		if r := unwritableRune(v); r >= 0 {
			return path, r
		}
	case []any:
		for i, item := range v {
			if at, r := unwritableAt(fmt.Sprintf("%s[%d]", path, i), item); at != "" {
				return at, r
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if r := unwritableRune(key); r >= 0 {
				if path == "" {
					path = "a key"
				}
				return path, r
			}
			if at, r := unwritableAt(join2(path, key), v[key]); at != "" {
				return at, r
			}
		}
	}
	return "", 0
}

// unwritableRune is the first character of a text that YAML does not take inside of
// quotes either, or -1: U+0085 it takes, for a line break, and makes a blank of it.
// Those below a blank are written with a backslash.
// Source: YAML 1.1, "Character Set".
func unwritableRune(text string) rune {
	for i := 0; i < len(text); i++ {
		if text[i] < 0x7f {
			continue
		}
		for _, r := range text[i:] {
			if 0x7f <= r && r < 0xa0 || r == 0xfffe || r == 0xffff {
				return r
			}
		}
		break
	}
	return -1
}
