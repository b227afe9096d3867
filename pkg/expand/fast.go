// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// Most of the time of a rendering goes into reading YAML. Nearly always that can be
// told beforehand: an item of spec.resources is a tree already, its placeholders
// stand in single texts, and what they give are plain words. A form is such an item
// with holes in the place of those texts. Filling it gives what executing the
// template and reading the outcome would give, or says that it cannot tell, and then
// the long way is taken. FuzzForm holds both ways together.

// A form is an item of spec.resources whose placeholders stand in texts.
type form struct {
	root  *formNode
	holes []*hole
}

// A formNode is a part of the item that holds a hole, or metadata.
type formNode struct {
	literal any // when nothing of it changes; shared by all objects
	hole    int // number of the hole plus one
	keys    []string
	fields  []*formNode // of a map, in the order of keys
	items   []*formNode // of a list
}

// A hole is a text with placeholders.
type hole struct {
	index    int
	quoted   bool // stands in single quotes in the text of the template
	segments []segment
	tmpl     *template.Template // when the placeholders are not simple ones
}

// A segment is fixed text, or the value of an input field.
type segment struct {
	text  string
	path  []string
	apply string // "", "quote" or "slugify"
}

// newForm is the form of a part, or nil when there is none: a placeholder in a key,
// a template that spans several texts, text that YAML folds or puts in a block.
func newForm(part *part, funcs template.FuncMap) *form {
	item, ok := part.item.(map[string]any)
	if !ok || part.mutates || len(part.trees) != 1 || strings.Contains(part.text, "<<-") || strings.Contains(part.text, "->>") {
		return nil
	}
	f := &form{}
	if f.root, ok = f.node(item, 0, 0, funcs, true); !ok {
		return nil
	}
	return f
}

// node makes the node of a value at an indent and column of the template's text.
func (f *form) node(value any, indent, column int, funcs template.FuncMap, fresh bool) (*formNode, bool) {
	holes := len(f.holes)
	n := &formNode{}
	switch v := value.(type) {
	case string:
		return f.text(v, column, funcs)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if strings.Contains(key, leftDelim) {
				return nil, false
			}
			// metadata gets labels and annotations later, so it is never shared.
			child, ok := f.node(v[key], indent+yamlIndent, indent+len(key)+4, funcs, fresh && key == "metadata" || fresh && indent == yamlIndent)
			if !ok {
				return nil, false
			}
			n.keys = append(n.keys, key)
			n.fields = append(n.fields, child)
		}
	case []any:
		for _, item := range v {
			child, ok := f.node(item, indent+yamlIndent, indent+yamlIndent, funcs, false)
			if !ok {
				return nil, false
			}
			n.items = append(n.items, child)
		}
	}
	if len(f.holes) == holes && !fresh {
		literal, err := jsonValue(value)
		return &formNode{literal: literal}, err == nil
	}
	return n, true
}

// text is the node of a text: a literal or a hole.
func (f *form) text(s string, column int, funcs template.FuncMap) (*formNode, bool) {
	if !strings.Contains(s, leftDelim) {
		return &formNode{literal: s}, true
	}
	h := &hole{index: len(f.holes)}
	switch written, ok := writeText(nil, s, column); {
	case isPrintable(s) && readsAsText(s) && isPlainText(s):
		// It may be folded at single blanks, and reading undoes that.
	case ok && string(written) == "'"+s+"'":
		h.quoted = true
	default:
		return nil, false
	}
	tree := parse.New("hole")
	tree.Mode = parse.SkipFuncCheck
	trees := make(map[string]*parse.Tree)
	if _, err := tree.Parse(s, leftDelim, rightDelim, trees); err != nil || len(trees) != 1 {
		return nil, false
	}
	if !h.simple(tree) {
		countSteps(tree)
		h.tmpl = template.New("hole").Option("missingkey=error").Funcs(funcs)
		if _, err := h.tmpl.AddParseTree("hole", tree); err != nil {
			return nil, false
		}
	}
	f.holes = append(f.holes, h)
	return &formNode{hole: len(f.holes)}, true
}

// simple takes a template apart into segments if it has only placeholders of the
// kinds << inputs.a.b >> and << inputs.a | quote >>.
func (h *hole) simple(tree *parse.Tree) bool {
	for _, node := range tree.Root.Nodes {
		switch n := node.(type) {
		case *parse.TextNode:
			h.segments = append(h.segments, segment{text: string(n.Text)})
		case *parse.ActionNode:
			if len(n.Pipe.Decl) > 0 || len(n.Pipe.Cmds) > 2 || len(n.Pipe.Cmds[0].Args) != 1 {
				return false
			}
			chain, ok := n.Pipe.Cmds[0].Args[0].(*parse.ChainNode)
			if !ok || inputsCall(chain.Node) == nil {
				return false
			}
			s := segment{path: chain.Field}
			if len(n.Pipe.Cmds) == 2 {
				ident, ok := n.Pipe.Cmds[1].Args[0].(*parse.IdentifierNode)
				if !ok || len(n.Pipe.Cmds[1].Args) != 1 || ident.Ident != "quote" && ident.Ident != "slugify" {
					return false
				}
				s.apply = ident.Ident
			}
			h.segments = append(h.segments, s)
		case *parse.CommentNode:
		default:
			return false
		}
	}
	return true
}

// clones are the templates of the holes with other functions.
func (f *form) clones(funcs template.FuncMap) []*template.Template {
	if f == nil {
		return nil
	}
	clones := make([]*template.Template, len(f.holes))
	for i, h := range f.holes {
		if h.tmpl != nil {
			clones[i] = template.Must(h.tmpl.Clone()).Funcs(funcs)
		}
	}
	return clones
}

// fill makes the object of the current set, or says that it cannot tell.
func (w *worker) fill(n int) (map[string]any, bool) {
	f := w.parts[n].form
	w.inputs = w.set.Inputs
	w.steps, w.left = 0, maxOutput
	w.values = w.values[:0]
	for _, h := range f.holes {
		w.buf.Reset()
		if !w.fillHole(n, h) {
			return nil, false
		}
		value, ok := readHole(w.buf.Bytes(), h.quoted)
		if !ok {
			return nil, false
		}
		w.values = append(w.values, value)
	}
	content, ok := f.root.build(w.values).(map[string]any)
	return content, ok
}

// fillHole writes the text of a hole into the buffer.
func (w *worker) fillHole(n int, h *hole) bool {
	if h.tmpl != nil {
		return w.holes[n][h.index].Execute(w, nil) == nil
	}
	for i := range h.segments {
		s := &h.segments[i]
		if s.path == nil {
			w.buf.WriteString(s.text)
			continue
		}
		value := any(w.inputs)
		for _, name := range s.path {
			fields, ok := value.(map[string]any)
			if !ok {
				return false
			}
			if value, ok = fields[name]; !ok {
				return false
			}
		}
		if !s.write(&w.buf, value) {
			return false
		}
	}
	return true
}

// write writes a value as text/template does.
func (s *segment) write(buf *bytes.Buffer, value any) bool {
	text, isText := value.(string)
	switch {
	case s.apply == "slugify":
		if isText {
			buf.WriteString(slugify(text))
		}
		return isText
	case s.apply == "quote":
		if isText {
			buf.Write(strconv.AppendQuote(buf.AvailableBuffer(), text))
			return true
		}
		number, ok := value.(int64)
		if ok {
			buf.Write(strconv.AppendQuote(buf.AvailableBuffer(), strconv.FormatInt(number, 10)))
		}
		return ok
	case isText:
		buf.WriteString(text)
		return true
	}
	switch v := value.(type) {
	case int64:
		buf.Write(strconv.AppendInt(buf.AvailableBuffer(), v, 10))
		return true
	case bool:
		buf.Write(strconv.AppendBool(buf.AvailableBuffer(), v))
		return true
	}
	return false
}

// readHole is the text that YAML reads where a hole stands, if it is sure to be a
// text that reads as it is written.
func readHole(text []byte, quoted bool) (string, bool) {
	if len(text) == 0 || len(text) > maxValue {
		return "", false
	}
	s := string(text)
	last := len(s) - 1
	switch {
	case quoted:
		return s, isQuotable(s, '\'')
	case s[0] == '"' && s[last] == '"' && last > 0:
		return s[1:last], isQuotable(s[1:last], '"')
	}
	return s, !changesStructure(s, false) && !strings.Contains(s, "  ") && readsAsText(s)
}

// isQuotable says that a text in quotes reads as it is.
func isQuotable(s string, quote rune) bool {
	for _, r := range s {
		if r == quote || r == '\\' || r < ' ' || r > '~' && !isWordRune(r) {
			return false
		}
	}
	return true
}

// build makes a value with texts in the holes.
func (n *formNode) build(values []string) any {
	switch {
	case n.hole > 0:
		return values[n.hole-1]
	case n.fields != nil:
		// Room for the labels that every object gets.
		content := make(map[string]any, len(n.keys)+1)
		for i, key := range n.keys {
			content[key] = n.fields[i].build(values)
		}
		return content
	case n.items != nil:
		items := make([]any, len(n.items))
		for i, item := range n.items {
			items[i] = item.build(values)
		}
		return items
	}
	return n.literal
}
