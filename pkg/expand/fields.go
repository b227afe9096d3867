// SPDX-License-Identifier: Apache-2.0

package expand

import "resourceset.example/renderer/pkg/api"

// Fields are the input fields that templates read: a tree of names.
type Fields struct {
	all      bool // all of the value, whatever it holds
	children map[string]*Fields
}

// Fields are the input fields that the templates of the program read.
func (p *Program) Fields() *Fields { return p.fields }

func (p *Program) nameFieldsBelow(key string) []string { return nil }
func (f *Fields) below(key string) *Fields             { return f }

// NameFields are the top-level input fields whose values the templates put into
// the name or namespace of an object, in the order of the templates.
func (p *Program) NameFields() []string { return p.nameFields }

// Project is in without what f does not name.
func (f *Fields) Project(in api.Input) api.Input {
	return in
}

func (p *Program) analyse() {
	p.fields = &Fields{all: true}
	p.mutates = true
}
