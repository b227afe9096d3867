// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"maps"
	"slices"
	"text/template/parse"

	"resourceset.example/renderer/pkg/api"
)

// Fields are the input fields that templates read: a tree of names. A name
// without names below it stands for all of its value.
type Fields struct {
	all      bool
	children map[string]*Fields
}

// Fields are the input fields that the templates of the program read.
func (p *Program) Fields() *Fields { return p.fields }

// All says that the templates take the inputs as a whole, so that every field counts.
func (f *Fields) All() bool { return f.all }

// Names are the names at the top of the tree, sorted.
func (f *Fields) Names() []string { return slices.Sorted(maps.Keys(f.children)) }

// Project is in without what f does not name. It shares values with in, and keeps
// a value that is no map where f names fields below it: templates fail on it the
// same way.
func (f *Fields) Project(in api.Input) api.Input {
	if f.all {
		return in
	}
	out := make(api.Input, len(f.children))
	for name, child := range f.children {
		value, ok := in[name]
		if !ok {
			continue
		}
		if fields, ok := value.(map[string]any); ok {
			value = child.Project(fields)
		}
		out[name] = value
	}
	return out
}

// below is the tree below a name; empty when nothing of it is read.
func (f *Fields) below(name string) *Fields {
	if f.all {
		return f
	}
	if child := f.children[name]; child != nil {
		return child
	}
	return &Fields{}
}

// add records that the value at path is read whole.
func (f *Fields) add(path []string) {
	for _, name := range path {
		if f.all {
			return
		}
		if f.children == nil {
			f.children = make(map[string]*Fields)
		}
		child := f.children[name]
		if child == nil {
			child = &Fields{}
			f.children[name] = child
		}
		f = child
	}
	f.all, f.children = true, nil
}

// inputPaths are the paths of the input fields that are read at node and below,
// in the order of the text. An empty path is the inputs as a whole.
//
// Only a chain of names that starts at the function "inputs" is told apart:
// inputs.soil.ph reads that one value, everything below included. Wherever
// "inputs" stands alone (index, get, dig, range, toYaml, a variable) all of it is
// read. What happens to a value afterwards does not matter, so this errs on the
// side of reading more.
func inputPaths(node parse.Node) [][]string {
	var paths [][]string
	chained := make(map[parse.Node]bool)
	walk(node, func(node parse.Node) {
		switch n := node.(type) {
		case *parse.ChainNode:
			if inner := inputsCall(n.Node); inner != nil {
				chained[inner] = true
				paths = append(paths, n.Field)
			}
		case *parse.IdentifierNode:
			if n.Ident == inputsFunction && !chained[n] {
				paths = append(paths, nil)
			}
		}
	})
	return paths
}

const inputsFunction = "inputs"

// inputsCall is the identifier "inputs" if node is nothing but a call of it, also
// in parentheses.
func inputsCall(node parse.Node) *parse.IdentifierNode {
	switch n := node.(type) {
	case *parse.IdentifierNode:
		if n.Ident == inputsFunction {
			return n
		}
	case *parse.PipeNode:
		if len(n.Decl) == 0 && len(n.Cmds) == 1 && len(n.Cmds[0].Args) == 1 {
			return inputsCall(n.Cmds[0].Args[0])
		}
	}
	return nil
}

// analyse finds out what the templates do, without running them.
func (p *Program) analyse() {
	p.fields = &Fields{}
	all := p.parts
	if p.directory != nil {
		all = append(slices.Clip(all), p.directory)
	}
	for _, part := range all {
		for _, tree := range part.trees {
			for _, path := range inputPaths(tree.Root) {
				p.fields.add(path)
			}
		}
	}
	seen := make(map[string]bool)
	for _, part := range p.parts {
		names := part.identities()
		for _, path := range names {
			key := key(path...)
			if len(path) > 0 && !seen[key] {
				seen[key] = true
				p.namePaths = append(p.namePaths, path)
			}
		}
	}
}

// mutates says that a template calls a function that changes its argument in
// place. The argument may be part of the inputs.
func mutates(tree *parse.Tree) bool {
	found := false
	walk(tree.Root, func(node parse.Node) {
		if ident, ok := node.(*parse.IdentifierNode); ok {
			switch ident.Ident {
			case "set", "unset", "merge", "mustMerge", "mergeOverwrite", "mustMergeOverwrite":
				found = true
			}
		}
	})
	return found
}

// NameFields are the top-level input fields whose values the templates put into
// the name or namespace of an object, in the order of the templates.
func (p *Program) NameFields() []string {
	var names []string
	for _, path := range p.namePaths {
		if !slices.Contains(names, path[0]) {
			names = append(names, path[0])
		}
	}
	return names
}

// nameFieldsBelow are the same for the sets that Permute puts under a key.
func (p *Program) nameFieldsBelow(key string) []string {
	var names []string
	for _, path := range p.namePaths {
		if len(path) > 1 && path[0] == key && !slices.Contains(names, path[1]) {
			names = append(names, path[1])
		}
	}
	return names
}
