// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"slices"
	"strconv"

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
