// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// A read takes the node of a field into its place.
type read func(path string, n *yaml.Node)

// A schema maps the fields of an object to how they are read. A nil read is a
// field that is known and of no concern here.
type schema map[string]read

// fields reads the fields of a map. A null stands for an absent field.
func (d *decoder) fields(path string, at *yaml.Node, s schema) {
	n := target(at)
	if !d.is(path, at, yaml.MappingNode) || !d.enter(n, at) {
		return
	}
	defer d.leave(n)
	for _, e := range d.entries(n) {
		field := join(path, e.name)
		read, known := s[e.name]
		if !known {
			d.fault(e.key, unknownHint(e.name, s), "unknown field %s", field)
			continue
		}
		d.lines[field] = lineOf(e)
		if read == nil || isNull(e.value) {
			continue
		}
		read(field, e.value)
	}
}

// lineOf is the line that a field's value starts on: the key's, or for a block
// scalar that of its first line of text.
func lineOf(e entry) int {
	v := target(e.value)
	if v.Kind == yaml.ScalarNode && v.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return v.Line + 1
	}
	return e.key.Line
}

// items reads the elements of a list.
func (d *decoder) items(read read) read {
	return func(path string, at *yaml.Node) {
		if !d.is(path, at, yaml.SequenceNode) {
			return
		}
		for i, item := range target(at).Content {
			element := path + "[" + strconv.Itoa(i) + "]"
			d.lines[element] = item.Line
			read(element, item)
		}
	}
}

func (d *decoder) nested(s schema) read {
	return func(path string, n *yaml.Node) { d.fields(path, n, s) }
}

// text reads a string field.
func (d *decoder) text(to *string) read {
	return func(path string, at *yaml.Node) {
		if !d.is(path, at, yaml.ScalarNode) {
			return
		}
		n := target(at)
		value, err := scalarValue(n)
		if s, ok := value.(string); ok && err == nil {
			*to = s
			return
		}
		d.fault(at, "quote it: "+strconv.Quote(n.Value), "%s must be a text, not %s", path, typeName(value))
	}
}

func (d *decoder) boolean(to *bool) read {
	return func(path string, at *yaml.Node) {
		if value, err := d.scalar(at); err == nil {
			if b, ok := value.(bool); ok {
				*to = b
				return
			}
		}
		d.fault(at, "write true or false, without quotes", "%s must be true or false", path)
	}
}

func (d *decoder) integer(to *int) read {
	return func(path string, at *yaml.Node) {
		if value, err := d.scalar(at); err == nil {
			if i, ok := value.(int64); ok && int64(int(i)) == i {
				*to = int(i)
				return
			}
		}
		d.fault(at, "write a number, without quotes", "%s must be a whole number", path)
	}
}

// duration reads a Go duration that is not negative.
func (d *decoder) duration(to *time.Duration) read {
	return func(path string, at *yaml.Node) {
		var s string
		before := len(d.faults)
		d.text(&s)(path, at)
		if len(d.faults) > before {
			return
		}
		v, err := time.ParseDuration(s)
		if err != nil || v < 0 {
			d.fault(at, durationHint, "%s must be a duration, not %q", path, s)
			return
		}
		*to = v
	}
}

const durationHint = `write it like "30s", "10m" or "1h30m"`

func (d *decoder) scalar(at *yaml.Node) (any, error) {
	n := target(at)
	if n.Kind != yaml.ScalarNode {
		return nil, errNotJSON
	}
	return scalarValue(n)
}

func (d *decoder) texts(to *[]string) read {
	return d.items(func(path string, n *yaml.Node) {
		var s string
		d.text(&s)(path, n)
		*to = append(*to, s)
	})
}

// textMap reads labels and the like: every value is a string.
func (d *decoder) textMap(to *map[string]string) read {
	return func(path string, at *yaml.Node) {
		n := target(at)
		if !d.is(path, at, yaml.MappingNode) || !d.enter(n, at) {
			return
		}
		defer d.leave(n)
		entries := d.entries(n)
		*to = make(map[string]string, len(entries))
		for _, e := range entries {
			field := join(path, e.name)
			d.lines[field] = lineOf(e)
			var s string
			before := len(d.faults)
			if !isNull(e.value) {
				d.text(&s)(field, e.value)
			}
			if len(d.faults) == before {
				(*to)[e.name] = s
			}
		}
	}
}

// secretName reads a reference to a Secret of the same namespace.
func (d *decoder) secretName(to *string) read {
	return func(path string, n *yaml.Node) {
		d.fields(path, n, schema{"name": d.text(to)})
		if *to == "" && target(n).Kind == yaml.MappingNode {
			d.fault(n, "name the Secret", "%s.name is missing", path)
		}
	}
}

// is reports a node that is of another kind than it must be.
func (d *decoder) is(path string, at *yaml.Node, kind yaml.Kind) bool {
	n := target(at)
	if n.Kind == kind {
		return true
	}
	got := kindOf(n)
	if n.Kind == yaml.ScalarNode {
		value, _ := scalarValue(n)
		got = typeName(value)
	} else {
		got = article(got)
	}
	want := map[yaml.Kind]string{yaml.MappingNode: "a map", yaml.SequenceNode: "a list", yaml.ScalarNode: "a text"}[kind]
	hint := ""
	if kind == yaml.SequenceNode {
		hint = `put "- " before each element`
	}
	d.fault(at, hint, "%s must be %s, not %s", path, want, got)
	return false
}

func isNull(at *yaml.Node) bool {
	n := target(at)
	if n.Kind != yaml.ScalarNode {
		return false
	}
	value, err := scalarValue(n)
	return value == nil && err == nil
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "map"
	case yaml.SequenceNode:
		return "list"
	}
	return "text"
}

func article(kind string) string { return "a " + kind }

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case string:
		return "a text"
	case []any:
		return "a list"
	}
	return "a map"
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func unknownHint(name string, s schema) string {
	known := make([]string, 0, len(s))
	for field, read := range s {
		if read != nil {
			known = append(known, field)
		}
	}
	slices.Sort(known)
	if near := nearest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "known fields here: " + strings.Join(known, ", ")
}
