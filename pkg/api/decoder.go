// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// A decoder reads one object from its YAML nodes. It never stops at a fault:
// what is wrong is noted with its line, and reading goes on behind it.
type decoder struct {
	file   string
	object string // how messages name the object being read
	lines  map[string]int

	faults   []*Fault
	warnings []*Fault

	// budget is how many more nodes may be visited. A file cannot hold more nodes
	// than bytes, so only aliases can use it up.
	budget    int
	exhausted bool
	open      map[*yaml.Node]bool // anchors that are being expanded
}

func (d *decoder) fault(n *yaml.Node, hint, format string, args ...any) {
	d.faults = append(d.faults, d.note(n, hint, format, args...))
}

func (d *decoder) warn(n *yaml.Node, hint, format string, args ...any) {
	d.warnings = append(d.warnings, d.note(n, hint, format, args...))
}

func (d *decoder) note(n *yaml.Node, hint, format string, args ...any) *Fault {
	return &Fault{
		Pos:    Position{File: d.file, Line: n.Line},
		Object: d.object,
		Msg:    fmt.Sprintf(format, args...),
		Hint:   hint,
	}
}

// spend counts one visited node and says whether reading may go on.
func (d *decoder) spend(n *yaml.Node) bool {
	if d.budget > 0 {
		d.budget--
		return true
	}
	if !d.exhausted {
		d.exhausted = true
		d.fault(n, "write the repeated parts out, or move them into the template",
			"the aliases of this document expand to more than %d values", aliasAllowance)
	}
	return false
}

// target follows an alias.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// An entry is one key of a map, merge keys resolved.
type entry struct {
	name   string
	key    *yaml.Node
	value  *yaml.Node
	merged bool
}

// entries lists the keys of a map in file order and reports repeated ones. A
// merge key overrides what stands before it and is overridden by what follows,
// as in the YAML library that Kubernetes uses.
func (d *decoder) entries(n *yaml.Node) []entry {
	m := entryList{list: make([]entry, 0, len(n.Content)/2)}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !d.spend(key) {
			break
		}
		if isMerge(key) {
			d.merge(&m, value)
			continue
		}
		name, ok := d.key(key)
		if !ok {
			continue
		}
		if old := m.put(entry{name: name, key: key, value: value}); old != nil && !old.merged {
			d.fault(key, "keep one of them", "the key %q stands twice in one map, first on line %d", name, old.key.Line)
		}
	}
	return m.list
}

func (d *decoder) key(n *yaml.Node) (string, bool) {
	k := target(n)
	if k.Kind != yaml.ScalarNode {
		d.fault(n, "quote placeholders that stand where a key is due", "a map or list cannot be a key")
		return "", false
	}
	name, err := keyText(k)
	if err != nil {
		d.fault(n, "", "the key %q %v", k.Value, err)
		return "", false
	}
	if name != k.Value && (name == "true" || name == "false") {
		d.warn(n, "quote it: "+strconv.Quote(k.Value), "the key %s is a boolean in YAML 1.1, and is read as %q", k.Value, name)
	}
	return name, true
}

// merge adds the keys of a merge key's value: a map, or a list of maps of which
// the first one wins.
func (d *decoder) merge(m *entryList, value *yaml.Node) {
	v := target(value)
	switch {
	case !d.enter(v, value):
		return
	case v.Kind == yaml.MappingNode:
		for _, e := range d.entries(v) {
			e.merged = true
			m.put(e)
		}
	case v.Kind == yaml.SequenceNode:
		for _, item := range slices.Backward(v.Content) {
			if target(item).Kind != yaml.MappingNode {
				d.fault(item, "", "a merge key needs maps, not %s", article(kindOf(target(item))))
				continue
			}
			d.merge(m, item)
		}
	default:
		d.fault(value, "a placeholder cannot stand before a colon in a file: quote it, or use resourcesTemplate",
			"the merge key << needs a map, not %s", article(kindOf(v)))
	}
	d.leave(v)
}

// enter guards the expansion of n against an anchor that contains itself.
func (d *decoder) enter(n, at *yaml.Node) bool {
	if n.Anchor == "" {
		return true
	}
	if d.open[n] {
		d.fault(at, "", "the anchor %q contains itself", n.Anchor)
		return false
	}
	if d.open == nil {
		d.open = map[*yaml.Node]bool{}
	}
	d.open[n] = true
	return true
}

func (d *decoder) leave(n *yaml.Node) {
	if n.Anchor != "" {
		delete(d.open, n)
	}
}

func isMerge(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "<<" && (n.Tag == "!!merge" || n.Tag == "")
}

// entryList keeps entries in order and finds them by name.
type entryList struct {
	list  []entry
	index map[string]int // only for long lists
}

const indexFrom = 16

// put adds an entry or replaces the one of that name, which it returns.
func (m *entryList) put(e entry) *entry {
	if i := m.find(e.name); i >= 0 {
		old := m.list[i]
		m.list[i] = e
		return &old
	}
	m.list = append(m.list, e)
	if m.index != nil {
		m.index[e.name] = len(m.list) - 1
	}
	return nil
}

func (m *entryList) find(name string) int {
	if m.index == nil && len(m.list) < indexFrom {
		return slices.IndexFunc(m.list, func(e entry) bool { return e.name == name })
	}
	if m.index == nil {
		m.index = make(map[string]int, 2*len(m.list))
		for i, e := range m.list {
			m.index[e.name] = i
		}
	}
	if i, ok := m.index[name]; ok {
		return i
	}
	return -1
}

// value is the JSON value of a node.
func (d *decoder) value(at *yaml.Node) any {
	n := target(at)
	if !d.spend(at) || !d.enter(n, at) {
		return nil
	}
	defer d.leave(n)
	switch n.Kind {
	case yaml.MappingNode:
		entries := d.entries(n)
		m := make(map[string]any, len(entries))
		for _, e := range entries {
			m[e.name] = d.value(e.value)
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = d.value(item)
		}
		return list
	default:
		value, err := scalarValue(n)
		if err != nil {
			d.fault(at, "quote it if it is meant as text", "the value %.40q %v", n.Value, err)
		}
		return value
	}
}

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
