// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An Original is a file as its author wrote it. What a tool like kustomize makes
// of its objects has lines of its own, which nobody ever saw; [Original.ParseBuilt]
// reports on such an object with the lines of the original.
type Original struct {
	file    string
	objects []*yaml.Node
}

// NewOriginal prepares a file. What is not YAML in it is passed over.
func NewOriginal(file string, data []byte) *Original {
	o := &Original{file: file}
	for _, c := range split(bytes.TrimPrefix(data, []byte(byteOrderMark))) {
		o.chunk(c)
	}
	return o
}

func (o *Original) chunk(c chunk) {
	docs := yaml.NewDecoder(bytes.NewReader(c.data))
	for {
		var doc yaml.Node
		if decodeNode(docs, &doc) != nil {
			return
		}
		if len(doc.Content) > 0 {
			shiftLines(&doc, c.line)
			o.add(doc.Content[0])
		}
	}
}

func (o *Original) add(n *yaml.Node) {
	n = target(n)
	if n.Kind != yaml.MappingNode {
		return
	}
	o.objects = append(o.objects, n)
	if items := child(n, "items"); items != nil {
		for _, item := range target(items).Content {
			o.add(item)
		}
	}
}

// Has says whether the file declares an object of this kind and name.
func (o *Original) Has(kind, name string) bool {
	n := o.find(kind, name)
	return n != nil && nameOf(n) == name
}

// find is the object that one of this kind and name was built from. A tool may
// have put something before and behind the name.
func (o *Original) find(kind, name string) *yaml.Node {
	var best *yaml.Node
	for _, n := range o.objects {
		if header(n, "kind") != kind {
			continue
		}
		switch own := nameOf(n); {
		case own == name:
			return n
		case own != "" && strings.Contains(name, own) && (best == nil || len(own) > len(nameOf(best))):
			best = n
		}
	}
	return best
}

func nameOf(n *yaml.Node) string {
	if meta := child(n, "metadata"); meta != nil {
		return header(target(meta), "name")
	}
	return ""
}

// ParseBuilt reads an object of this kind and name that was built from one in
// the file.
func (o *Original) ParseBuilt(kind, name string, built []byte) *Definitions {
	f := &fileReader{file: o.file, defs: &Definitions{}, budget: len(built) + aliasAllowance}
	var doc yaml.Node
	err := decodeNode(yaml.NewDecoder(bytes.NewReader(built)), &doc)
	switch {
	case errors.Is(err, io.EOF):
		return f.defs
	case err != nil || len(doc.Content) == 0:
		f.fault(0, "", "%s %s: not valid YAML after building: %v", kind, name, err)
		return f.defs
	}
	if n := o.find(kind, name); n != nil {
		transplant(doc.Content[0], n, n.Line)
	} else {
		setLines(doc.Content[0], 0)
	}
	f.document(doc.Content[0])
	return f.defs
}

// transplant gives the nodes of a built object the lines of the original ones.
// What the original does not have gets the line of its parent.
func transplant(built, original *yaml.Node, line int) {
	original = target(original)
	built.Line = line
	switch {
	case built.Kind == yaml.ScalarNode && original.Kind == yaml.ScalarNode:
		built.Line = original.Line
		if built.Value == original.Value { // so that the lines of a block's text can be counted
			built.Style |= original.Style & (yaml.LiteralStyle | yaml.FoldedStyle)
		}
	case built.Kind == yaml.SequenceNode && original.Kind == yaml.SequenceNode:
		for i, item := range built.Content {
			if i < len(original.Content) {
				transplant(item, original.Content[i], original.Content[i].Line)
			} else {
				setLines(item, line)
			}
		}
	case built.Kind == yaml.MappingNode && original.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(built.Content); i += 2 {
			key, value := built.Content[i], built.Content[i+1]
			if k, v := pair(original, key.Value); k != nil {
				key.Line = k.Line
				transplant(value, v, v.Line)
			} else {
				setLines(key, line)
				setLines(value, line)
			}
		}
	default:
		setLines(built, line)
	}
}

func pair(n *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

func setLines(n *yaml.Node, line int) {
	n.Line = line
	for _, c := range n.Content {
		setLines(c, line)
	}
}
