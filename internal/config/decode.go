// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"
)

// A decoder fills a struct from YAML nodes. Other than yaml.Decoder it goes on
// after a fault, knows the path of each field, and takes no value of another
// type than the field's: "60" is not a duration, and yes is not a boolean.
type decoder struct {
	file   string
	root   reflect.Type
	faults Faults
	lines  map[string]int
}

func (d *decoder) fault(line int, path, hint, format string, args ...any) {
	d.faults = append(d.faults, &Fault{
		File: d.file, Line: line, Path: path, Msg: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// decode stores node in v. An explicit null leaves v as it is.
func (d *decoder) decode(node *yaml.Node, v reflect.Value, path string) {
	line := node.Line
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Tag == "!!null" {
		return
	}
	if path != "" {
		d.lines[path] = line
	}
	switch v.Interface().(type) {
	case time.Duration:
		d.duration(node, v, path)
		return
	case SecretRef:
		d.secretRef(node, v, path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(node, v.Elem(), path)
	case reflect.Struct:
		d.mapping(node, v, path)
	case reflect.Slice:
		d.sequence(node, v, path)
	case reflect.String:
		if text, ok := d.scalar(node, path, "text", "!!str"); ok {
			v.SetString(text)
		}
	case reflect.Bool:
		if text, ok := d.scalar(node, path, "true or false", "!!bool"); ok {
			v.SetBool(strings.EqualFold(text, "true"))
		}
	case reflect.Int:
		d.integer(node, v, path)
	default:
		d.fault(line, path, "", "fields of type %s cannot be read", v.Type())
	}
}

func (d *decoder) mapping(node *yaml.Node, v reflect.Value, path string) {
	if node.Kind != yaml.MappingNode {
		d.fault(node.Line, path, "its fields are "+strings.Join(fieldNames(v.Type()), ", "),
			"is %s where a mapping is due", describe(node))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		child := join(path, key.Value)
		if first, ok := seen[key.Value]; ok {
			d.fault(key.Line, child, "keep one of the two", "is set twice, first on line %d", first)
			continue
		}
		seen[key.Value] = key.Line
		field, ok := fieldByName(v, key.Value)
		if !ok {
			d.unknown(key, v.Type(), path)
			continue
		}
		d.decode(value, field, child)
	}
}

func (d *decoder) sequence(node *yaml.Node, v reflect.Value, path string) {
	if node.Kind != yaml.SequenceNode {
		d.fault(node.Line, path, "write it as a list: [...], or lines that start with a dash",
			"is %s where a list is due", describe(node))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(node.Content), len(node.Content)))
	for i, item := range node.Content {
		at := path + "[" + strconv.Itoa(i) + "]"
		if item.Tag == "!!null" {
			d.fault(item.Line, at, "remove it, or give it a value", "is empty")
			continue
		}
		d.decode(item, v.Index(i), at)
	}
}

// scalar is the text of a node that has the wanted tag.
func (d *decoder) scalar(node *yaml.Node, path, want, tag string) (string, bool) {
	if node.Kind == yaml.ScalarNode && node.Tag == tag {
		return node.Value, true
	}
	hint := ""
	if tag == "!!str" && node.Kind == yaml.ScalarNode {
		hint = "put it in quotes"
	}
	d.fault(node.Line, path, hint, "is %s where %s is due", describe(node), want)
	return "", false
}

func (d *decoder) integer(node *yaml.Node, v reflect.Value, path string) {
	text, ok := d.scalar(node, path, "a whole number", "!!int")
	if !ok {
		return
	}
	var n int
	if err := node.Decode(&n); err != nil {
		d.fault(node.Line, path, "", "%s is not a number that fits", text)
		return
	}
	if n < 0 {
		d.fault(node.Line, path, "", "is %d, and may not be negative", n)
		return
	}
	v.SetInt(int64(n))
}

func (d *decoder) duration(node *yaml.Node, v reflect.Value, path string) {
	const hint = "write a number with its unit: 30s, 10m, 1h30m"
	text := node.Value
	if node.Kind != yaml.ScalarNode {
		d.fault(node.Line, path, hint, "is %s where a duration is due", describe(node))
		return
	}
	n, err := time.ParseDuration(text)
	switch {
	case err != nil:
		d.fault(node.Line, path, hint, "%q is not a duration", text)
	case n < 0:
		d.fault(node.Line, path, "", "is %s, and may not be negative", text)
	default:
		v.SetInt(int64(n))
	}
}

func (d *decoder) secretRef(node *yaml.Node, v reflect.Value, path string) {
	const hint = "write <namespace>/<name>, as in flux-system/git-credentials"
	if node.Kind != yaml.ScalarNode {
		d.fault(node.Line, path, hint, "is %s where the name of a secret is due", describe(node))
		return
	}
	namespace, name, ok := strings.Cut(node.Value, "/")
	if !ok || !isDNSLabel(namespace) || !isDNSSubdomain(name) {
		// The value is not repeated: it may be a credential that was put here by mistake.
		d.fault(node.Line, path, hint, "is not the name of a secret")
		return
	}
	v.Set(reflect.ValueOf(SecretRef{Namespace: namespace, Name: name}))
}

// unknown reports a field that does not exist, with the one that was meant.
func (d *decoder) unknown(key *yaml.Node, in reflect.Type, path string) {
	names := fieldNames(in)
	hint := "fields here are " + strings.Join(names, ", ")
	if near := nearest(key.Value, names); near != "" {
		hint = "did you mean " + join(path, near) + "?"
	} else if places := fieldPaths(d.root, "", key.Value); len(places) > 0 {
		hint = "did you mean " + strings.Join(places, " or ") + "?"
	}
	d.fault(key.Line, join(path, key.Value), hint, "there is no such field")
}

func describe(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.Tag == "!!int" || node.Tag == "!!float":
		return "a number"
	case node.Tag == "!!bool":
		return "a boolean"
	case node.Tag == "!!timestamp":
		return "a date"
	}
	return "text"
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func fieldByName(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if tag := v.Type().Field(i).Tag.Get("yaml"); tag != "" && tag == name {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("yaml"); tag != "" {
			names = append(names, tag)
		}
	}
	return names
}

// fieldPaths lists every place below t that has a field of that name.
func fieldPaths(t reflect.Type, path, name string) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var found []string
	for i := range t.NumField() {
		tag := t.Field(i).Tag.Get("yaml")
		if tag == "" {
			continue
		}
		if tag == name {
			found = append(found, join(path, tag))
		}
		found = append(found, fieldPaths(t.Field(i).Type, join(path, tag), name)...)
	}
	return found
}

// nearest is the name that a typing mistake was most likely meant to be.
func nearest(word string, names []string) string {
	best, at := "", 3 // two slips are still the same word
	for _, name := range names {
		d := distance(strings.ToLower(word), strings.ToLower(name))
		if d < at && d < len(name) {
			best, at = name, d
		}
	}
	return best
}

// distance is the Levenshtein distance of two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + slices.Min([]int{diagonal, row[j], row[j+1]})
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
