// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"strings"
	"text/template/parse"
)

// What a template writes into the identity of its objects is read off its text,
// without running it: the lines apiVersion and kind, and name and namespace below
// metadata, in block style as nearly all YAML is written. Placeholders count as
// opaque. What is not recognised (flow style, JSON, generated keys) is taken to
// depend on inputs, so this errs on the side of less that is static.

// A textLine is one line of a template, placeholders taken out.
type textLine struct {
	text    string     // with a placeholderMark for each placeholder
	blocks  []int      // the branches and loops that its characters are in, each once
	paths   [][]string // input fields that its placeholders, and conditions within it, read
	dynamic bool       // has a placeholder
}

// placeholderMark stands for a placeholder in the text of a line. Unicode keeps it
// for objects that are embedded in text.
const placeholderMark = "\uFFFC"

// A lineScanner lays the text of a template out as lines. Every branch of an "if"
// and every loop is a block of its own, so that lines which appear together can be
// told from lines that exclude each other.
type lineScanner struct {
	part   *part
	lines  []textLine
	line   textLine
	block  int
	last   int                   // number of the newest block
	inside map[int][][]string    // block → fields that its condition reads
	vars   map[string][][]string // variable → fields that it was made from
	dot    [][]string            // fields that the dot was made from
}

func (part *part) scan() []textLine {
	s := &lineScanner{part: part, inside: make(map[int][][]string), vars: make(map[string][][]string)}
	if tree := part.trees[part.path]; tree != nil {
		s.list(tree.Root)
	}
	s.newline()
	return s.lines
}

func (s *lineScanner) newline() {
	s.lines = append(s.lines, s.line)
	s.line = textLine{}
}

func (s *lineScanner) list(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		s.node(node)
	}
}

func (s *lineScanner) node(node parse.Node) {
	switch n := node.(type) {
	case *parse.TextNode:
		s.text(string(n.Text))
	case *parse.ActionNode:
		paths := s.paths(n.Pipe)
		if len(n.Pipe.Decl) > 0 {
			s.declare(n.Pipe, paths)
			return
		}
		s.placeholder(paths)
	case *parse.TemplateNode:
		paths := s.paths(n.Pipe)
		if tree := s.part.trees[n.Name]; tree != nil {
			paths = append(paths, inputPaths(tree.Root)...)
		}
		s.placeholder(paths)
	case *parse.IfNode:
		s.branch(&n.BranchNode, false)
	case *parse.WithNode:
		s.branch(&n.BranchNode, true)
	case *parse.RangeNode:
		s.branch(&n.BranchNode, true)
	}
}

func (s *lineScanner) text(text string) {
	for {
		line, rest, more := strings.Cut(text, "\n")
		if strings.TrimSpace(line) != "" {
			s.touch()
		}
		s.line.text += line
		if !more {
			return
		}
		s.newline()
		text = rest
	}
}

// touch notes that the current line has characters of the current block.
func (s *lineScanner) touch() {
	for _, block := range s.line.blocks {
		if block == s.block {
			return
		}
	}
	s.line.blocks = append(s.line.blocks, s.block)
	if len(s.line.blocks) > 1 {
		s.line.paths = append(s.line.paths, s.inside[s.block]...)
	}
}

func (s *lineScanner) placeholder(paths [][]string) {
	s.touch()
	s.line.text += placeholderMark
	s.line.dynamic = true
	s.line.paths = append(s.line.paths, paths...)
}

// branch lays out both branches, each as a block of its own.
func (s *lineScanner) branch(n *parse.BranchNode, rebinds bool) {
	paths := s.paths(n.Pipe)
	s.declare(n.Pipe, paths)
	block, dot := s.block, s.dot
	condition := append(append([][]string{}, s.inside[block]...), paths...)
	for _, list := range []*parse.ListNode{n.List, n.ElseList} {
		s.last++
		s.block = s.last
		s.inside[s.block] = condition
		if rebinds && list == n.List {
			s.dot = paths
		}
		s.list(list)
		s.dot = dot
	}
	s.block = block
}

func (s *lineScanner) declare(pipe *parse.PipeNode, paths [][]string) {
	for _, variable := range pipe.Decl {
		name := variable.Ident[0]
		s.vars[name] = append(s.vars[name], paths...)
	}
}

// paths are the input fields that go into the value of a pipeline. Unlike
// inputPaths it follows variables and the dot, and get and index with constant names.
func (s *lineScanner) paths(pipe *parse.PipeNode) [][]string {
	if pipe == nil {
		return nil
	}
	var paths [][]string
	for _, cmd := range pipe.Cmds {
		if path := constantField(cmd); path != nil {
			paths = append(paths, path)
			continue
		}
		for _, arg := range cmd.Args {
			paths = append(paths, s.argument(arg)...)
		}
	}
	return paths
}

func (s *lineScanner) argument(arg parse.Node) [][]string {
	switch n := arg.(type) {
	case *parse.VariableNode:
		return s.vars[n.Ident[0]]
	case *parse.DotNode, *parse.FieldNode:
		return s.dot
	case *parse.PipeNode:
		return s.paths(n)
	case *parse.ChainNode:
		if inputsCall(n.Node) != nil {
			return [][]string{n.Field}
		}
		return s.argument(n.Node)
	}
	return inputPaths(arg)
}

// constantField is the path that `get inputs "name"` or `index inputs "a" "b"` reads.
func constantField(cmd *parse.CommandNode) []string {
	if len(cmd.Args) < 3 || inputsCall(cmd.Args[1]) == nil {
		return nil
	}
	function, ok := cmd.Args[0].(*parse.IdentifierNode)
	if !ok || function.Ident != "get" && function.Ident != "index" {
		return nil
	}
	var path []string
	for _, arg := range cmd.Args[2:] {
		name, ok := arg.(*parse.StringNode)
		if !ok {
			return nil
		}
		path = append(path, name.Text)
	}
	return path
}

// identities reads off the template which identities it writes without any
// placeholder, and returns the input fields that go into names and namespaces.
func (part *part) identities() (namePaths [][]string) {
	part.static = make(map[ObjectID]bool)
	var doc identity
	for _, line := range part.scan() {
		if line.text == "---" || strings.HasPrefix(line.text, "--- ") {
			doc.finish(part.static)
			doc = identity{}
			continue
		}
		namePaths = append(namePaths, doc.line(line)...)
	}
	doc.finish(part.static)
	return namePaths
}

// An identity collects the lines that make up the identity of one document, or of
// one item of a List.
type identity struct {
	indent   int // of the line apiVersion
	values   map[string]string
	blocks   map[int]bool
	dynamic  bool
	metadata bool // inside of metadata
	child    int  // indent of the fields of metadata, once one was seen
	found    []map[string]string
}

// line takes one line in, and returns the input fields that it puts into a name.
func (d *identity) line(line textLine) [][]string {
	text := strings.TrimRight(line.text, " \t\r")
	item := strings.TrimLeft(text, " ")
	if item == "" || item[0] == '#' {
		return nil
	}
	indent := len(text) - len(item)
	for strings.HasPrefix(item, "- ") { // an item of a List
		trimmed := strings.TrimLeft(item[2:], " ")
		indent += len(item) - len(trimmed)
		item = trimmed
		if strings.HasPrefix(item, "apiVersion:") || strings.HasPrefix(item, "kind:") {
			d.next(indent)
		}
	}
	field, value, isField := strings.Cut(item, ":")
	if !isField {
		return nil
	}
	if d.metadata && indent > d.indent {
		if d.child == 0 {
			d.child = indent
		}
		if indent == d.child && (field == "name" || field == "namespace") {
			d.set(field, value, line)
			return line.paths
		}
		return nil
	}
	if indent != d.indent {
		return nil
	}
	d.metadata = field == "metadata"
	if field == "apiVersion" || field == "kind" {
		d.set(field, value, line)
	}
	return nil
}

// next starts another object, in an item of a List.
func (d *identity) next(indent int) {
	found := d.complete()
	*d = identity{indent: indent, found: found}
}

func (d *identity) set(field, value string, line textLine) {
	if d.values == nil {
		d.values = make(map[string]string)
		d.blocks = make(map[int]bool)
	}
	if _, twice := d.values[field]; twice {
		d.dynamic = true
	}
	d.dynamic = d.dynamic || line.dynamic
	for _, block := range line.blocks {
		d.blocks[block] = true
	}
	d.values[field] = value
}

// complete are the static identities found so far, the current one included.
func (d *identity) complete() []map[string]string {
	if d.dynamic || len(d.blocks) != 1 || d.values["name"] == "" || d.values["kind"] == "" || d.values["apiVersion"] == "" {
		return d.found
	}
	return append(d.found, d.values)
}

// finish adds the static identities to a set.
func (d *identity) finish(static map[ObjectID]bool) {
	for _, values := range d.complete() {
		id := ObjectID{Kind: scalarOf(values["kind"]), Namespace: scalarOf(values["namespace"]), Name: scalarOf(values["name"])}
		id.Group, _ = splitAPIVersion(scalarOf(values["apiVersion"]))
		static[id] = true
	}
}

// scalarOf is the text that a YAML value stands for, empty if it is no text.
func scalarOf(value string) string {
	docs, err := decodeDocuments([]byte(value))
	if err != nil || len(docs) != 1 {
		return ""
	}
	text, _ := docs[0].(string)
	return text
}
