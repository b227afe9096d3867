// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// A parse error of text/template starts with "template: NAME:LINE: " or
// "template: NAME:LINE:COLUMN: ".
var templateErrorPrefix = regexp.MustCompile(`^template: .*?:(\d+):(?:(\d+):)? `)

// parse makes the template of a part. Functions are looked up here and not by
// text/template, so that all unknown ones are reported, with the reason why a
// function of sprig does not exist.
func (p *Program) parse(part *part, funcs template.FuncMap) error {
	tree := parse.New(part.path)
	tree.Mode = parse.SkipFuncCheck
	part.trees = make(map[string]*parse.Tree)
	if _, err := tree.Parse(part.text, leftDelim, rightDelim, part.trees); err != nil {
		line, msg := splitTemplateError(err.Error())
		hint := `"<<" starts a placeholder and ">>" ends it; write << "<<" >> where the text itself needs one`
		if !part.documents && strings.Contains(msg, "unterminated quoted string") {
			hint = "items of spec.resources are written anew as YAML, which breaks lines after 80 columns also " +
				"within a text in a placeholder; shorten it, or move the item to resourcesTemplate"
		}
		return p.errorIn(part, line, msg, hint)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(part.trees)) {
		for _, ident := range unknownFunctions(part.trees[name], funcs) {
			msg, hint := missingFunction(ident.Ident, funcs)
			errs = append(errs, p.errorIn(part, lineOf(part.text, ident.Pos), msg, hint))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	part.tmpl = template.New(part.path).Option("missingkey=error").Funcs(funcs)
	part.mutates = slices.ContainsFunc(slices.Collect(maps.Values(part.trees)), mutates)
	for _, name := range slices.Sorted(maps.Keys(part.trees)) {
		counted := part.trees[name].Copy()
		countSteps(counted)
		if part.mutates {
			checkOutput(counted)
		}
		if _, err := part.tmpl.AddParseTree(name, counted); err != nil {
			return p.errorIn(part, 0, err.Error(), "")
		}
	}
	part.form = newForm(part, funcs)
	part.sumless = part.form != nil && !wantsSum(part.item)
	if part.tmpl.Tree == nil { // nothing but definitions, or nothing at all
		part.tmpl.Tree = &parse.Tree{Name: part.path, Root: &parse.ListNode{NodeType: parse.NodeList}}
	}
	return nil
}

// splitTemplateError takes the line and the message out of an error of text/template.
func splitTemplateError(text string) (line int, msg string) {
	m := templateErrorPrefix.FindStringSubmatch(text)
	if m == nil {
		return 0, strings.TrimPrefix(text, "template: ")
	}
	line, _ = strconv.Atoi(m[1]) // digits only; beyond an int it is unknown
	return line, text[len(m[0]):]
}

// lineOf is the line of a byte offset in text, counted from 1.
func lineOf(text string, pos parse.Pos) int {
	return 1 + strings.Count(text[:min(int(pos), len(text))], "\n")
}

// unknownFunctions are the function names in tree that are neither in funcs nor built in.
func unknownFunctions(tree *parse.Tree, funcs template.FuncMap) []*parse.IdentifierNode {
	var unknown []*parse.IdentifierNode
	walk(tree.Root, func(node parse.Node) {
		ident, ok := node.(*parse.IdentifierNode)
		known := ok && funcs[ident.Ident] != nil && ident.Ident[0] != '_' || ok && isBuiltin(ident.Ident)
		if ok && !known {
			unknown = append(unknown, ident)
		}
	})
	return unknown
}

// isBuiltin says that text/template itself has the function.
func isBuiltin(name string) bool {
	switch name {
	case "and", "or", "not", "call", "html", "index", "slice", "js", "len", "print", "printf",
		"println", "urlquery", "eq", "ge", "gt", "le", "lt", "ne":
		return true
	}
	return false
}

// missingFunction says why a function does not exist and what to do.
func missingFunction(name string, funcs template.FuncMap) (msg, hint string) {
	msg = fmt.Sprintf("function %q does not exist", name)
	if reason := forbidden(name); reason != "" {
		return msg + ": it " + reason, "the same inputs must always give the same output; put the value into the inputs"
	}
	names := slices.AppendSeq([]string{"printf", "print", "index", "len", "html", "not"}, maps.Keys(funcs))
	if near := nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else {
		hint = fmt.Sprintf("a field of the inputs is written inputs.%s; write << \"<<\" >> where the text itself needs \"<<\"", name)
	}
	return msg, hint
}

// walk calls visit for node and all nodes below it, in the order of the text.
func walk(node parse.Node, visit func(parse.Node)) {
	switch n := node.(type) {
	case nil:
		return
	case *parse.ListNode:
		if n == nil {
			return
		}
		visit(n)
		for _, child := range n.Nodes {
			walk(child, visit)
		}
		return
	case *parse.PipeNode:
		if n == nil {
			return
		}
		visit(n)
		for _, v := range n.Decl {
			walk(v, visit)
		}
		for _, cmd := range n.Cmds {
			walk(cmd, visit)
		}
		return
	}
	visit(node)
	switch n := node.(type) {
	case *parse.ActionNode:
		walk(n.Pipe, visit)
	case *parse.CommandNode:
		for _, arg := range n.Args {
			walk(arg, visit)
		}
	case *parse.ChainNode:
		walk(n.Node, visit)
	case *parse.TemplateNode:
		walk(n.Pipe, visit)
	case *parse.IfNode:
		walkBranch(&n.BranchNode, visit)
	case *parse.WithNode:
		walkBranch(&n.BranchNode, visit)
	case *parse.RangeNode:
		walkBranch(&n.BranchNode, visit)
	}
}

func walkBranch(n *parse.BranchNode, visit func(parse.Node)) {
	walk(n.Pipe, visit)
	walk(n.List, visit)
	walk(n.ElseList, visit)
}

// stepFunction is called on every pass of a loop and every call of a template, so
// that an endless one ends. Templates cannot be told from outside to stop.
const stepFunction = "_step"

// countSteps puts a call of stepFunction at the start of the tree and of every loop in it.
func countSteps(tree *parse.Tree) {
	call := func(pos parse.Pos) parse.Node {
		cmd := callOf(tree, stepFunction, pos)
		pipe := &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Cmds: []*parse.CommandNode{cmd}}
		return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Pipe: pipe}
	}
	walk(tree.Root, func(node parse.Node) {
		if loop, ok := node.(*parse.RangeNode); ok {
			loop.List.Nodes = slices.Insert(loop.List.Nodes, 0, call(loop.Pos))
		}
	})
	tree.Root.Nodes = slices.Insert(tree.Root.Nodes, 0, call(tree.Root.Pos))
}

// outFunction gives back its argument unless that is too large. Values are checked
// where they are made, which is not enough once set or merge can change them.
const outFunction = "_out"

func checked(value any) (any, error) {
	_, err := weight(value)
	return value, err
}

// checkOutput puts a call of outFunction at the end of every placeholder that prints.
func checkOutput(tree *parse.Tree) {
	walk(tree.Root, func(node parse.Node) {
		if action, ok := node.(*parse.ActionNode); ok && len(action.Pipe.Decl) == 0 {
			action.Pipe.Cmds = append(action.Pipe.Cmds, callOf(tree, outFunction, action.Pos))
		}
	})
}

func callOf(tree *parse.Tree, function string, pos parse.Pos) *parse.CommandNode {
	ident := parse.NewIdentifier(function).SetPos(pos).SetTree(tree)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: []parse.Node{ident}}
}

// nearest is the name that differs least from name, or empty when none is near.
func nearest(name string, names []string) string {
	best, bestDistance := "", max(1, len(name)/3)+1
	for _, candidate := range slices.Sorted(slices.Values(names)) {
		if d := editDistance(strings.ToLower(name), strings.ToLower(candidate)); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// editDistance counts the bytes to insert, delete, replace or swap with the next
// between a and b.
func editDistance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1) // of the last two bytes of a
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(next[j]+1, row[j+1]+1, row[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
