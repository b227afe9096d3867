// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// A TemplateError is one fault in one template: text that is no template, a
// function that does not exist, a field that an input set lacks, or output that
// is no Kubernetes object.
type TemplateError struct {
	// Pos is the line in the definitions file, as exactly as it is known.
	Pos api.Position
	// Object is "ResourceSet apps/podinfo".
	Object string
	// Step is the name of the step that the template belongs to, or empty.
	Step string
	// Path names the template: "resources[1]" or "resourcesTemplate".
	Path string
	// Line counts lines within the template's text; 0 is unknown.
	Line int
	// Origin is the input set at fault (Set.Origin), empty for faults of the
	// template itself.
	Origin string
	// Missing is the field that the input set lacks, or empty.
	Missing string
	Msg     string
	Hint    string
}

// Error is one line: where, which object, template and input set, and what.
func (e *TemplateError) Error() string {
	var parts []string
	add := func(part string) {
		if part != "" {
			parts = append(parts, part)
		}
	}
	add(e.Pos.String())
	add(e.Object)
	if e.Step != "" {
		add(fmt.Sprintf("step %q", e.Step))
	}
	where := e.Path
	if e.Line > 0 {
		where += fmt.Sprintf(" line %d", e.Line)
	}
	add(where)
	add(e.Origin)
	add(e.Msg)
	return strings.Join(parts, ": ")
}

// Suggestion is the hint line that is printed below the error.
func (e *TemplateError) Suggestion() string { return e.Hint }

// faultOf is an error about the ResourceSet as a whole, or one field of its spec.
func faultOf(rs *api.ResourceSet, path, hint, format string, args ...any) *api.Fault {
	return &api.Fault{Pos: rs.At(path), Object: rs.String(), Msg: fmt.Sprintf(format, args...), Hint: hint}
}
