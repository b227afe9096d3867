// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"

	yamlv3 "go.yaml.in/yaml/v3" // for the lines of fields only
	"sigs.k8s.io/yaml"

	"resourceset.example/renderer/pkg/api"
)

// Delimiters of placeholders.
const (
	leftDelim  = "<<"
	rightDelim = ">>"
)

// A Program is a ResourceSet whose templates are parsed. It does not change and
// may be used by several goroutines.
type Program struct {
	rs        *api.ResourceSet
	parts     []*part
	directory *part // the annotation renderer/directory, or nil
	fields    *Fields
	namePaths [][]string // input fields that end up in the names and namespaces of objects
}

// A part is one template of a ResourceSet: an item of spec.resources, or
// spec.resourcesTemplate, of the spec itself or of a step.
type part struct {
	step  string // name of the step, or empty
	order int    // number of the step
	path  string // as errors name it: "resources[1]"
	field string // as the spec names it: "spec.steps[0].resources[1]"
	item  any    // the item of spec.resources, nil for a resourcesTemplate
	text  string
	tmpl  *template.Template
	trees map[string]*parse.Tree
	// documents says that the text may hold several documents, as resourcesTemplate may.
	documents bool
	// flow says that the text may hold lists or maps in flow style around placeholders.
	flow bool
	form *form // a faster way to the same objects, or nil
	// sumless says that the item holds no checksumFrom. A form adds no keys.
	sumless bool
	// mutates says that the template calls a function that changes its argument.
	mutates bool
	// static are the identities that the template writes without any placeholder.
	static map[ObjectID]bool
}

// Compile parses the templates of rs. The error joins the faults of all of them,
// each a *TemplateError.
func Compile(rs *api.ResourceSet) (*Program, error) {
	p := &Program{rs: rs}
	funcs := functions()
	var errs []error
	add := func(part *part, err error) {
		if err == nil {
			err = p.parse(part, funcs)
		}
		if err != nil {
			errs = append(errs, err)
		}
		p.parts = append(p.parts, part)
	}
	if len(rs.Spec.Steps) == 0 {
		p.addSource(add, "", 0, "spec", rs.Spec.Resources, rs.Spec.ResourcesTemplate)
	}
	for i, step := range rs.Spec.Steps {
		p.addSource(add, step.Name, i, fmt.Sprintf("spec.steps[%d]", i), step.Resources, step.ResourcesTemplate)
	}
	if text, ok := rs.Annotations[api.AnnotationDirectory]; ok {
		field := "metadata.annotations." + api.AnnotationDirectory
		p.directory = &part{path: "annotation " + api.AnnotationDirectory, field: field, text: text}
		if err := p.parse(p.directory, funcs); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p.analyse()
	return p, nil
}

// addSource passes the templates of a spec or of a step to add.
func (p *Program) addSource(add func(*part, error), step string, order int, field string, resources []any, text string) {
	for i, item := range resources {
		part := &part{step: step, order: order, item: item}
		part.path = fmt.Sprintf("resources[%d]", i)
		part.field = field + "." + part.path
		data, err := templateText(item)
		part.text = string(data)
		if err != nil {
			err = p.errorIn(part, 0, err.Error(), "")
		}
		add(part, err)
	}
	if text != "" {
		add(&part{step: step, order: order, path: "resourcesTemplate", field: field + ".resourcesTemplate",
			text: text, documents: true, flow: strings.ContainsAny(text, "[{")}, nil)
	}
}

// templateText is the text that an item of spec.resources is a template of: the
// item as YAML with sorted keys, as the operator writes it. So quotes around a
// placeholder are there only where YAML needs them.
func templateText(item any) ([]byte, error) {
	switch item.(type) {
	case map[string]any, string:
		return yaml.Marshal(item)
	}
	return nil, fmt.Errorf("is %s, not an object", describe(item))
}

// errorIn is a fault at a line of a part's text; line 0 is unknown.
func (p *Program) errorIn(part *part, line int, msg, hint string) *TemplateError {
	e := &TemplateError{Pos: p.rs.At(part.field), Object: p.rs.String(), Step: part.step, Path: part.path, Msg: msg, Hint: hint}
	switch {
	case line <= 0:
	case part.documents:
		e.Line = line
		if e.Pos.Line > 0 {
			e.Pos.Line += line - 1
		}
	default:
		e.Pos = p.rs.At(part.field + part.fieldAt(line))
	}
	return e
}

// fieldPos is the position of a field of what a part renders to, "[0].data.name",
// as near as the file tells. Fields of a resourcesTemplate have no position.
func (p *Program) fieldPos(part *part, field string) api.Position {
	path, ok := strings.CutPrefix(field, "[0]")
	if part.documents || !ok {
		return p.rs.At(part.field)
	}
	return p.rs.At(part.field + path)
}

// fieldAt is the path of the field at a line of the text of an item of
// spec.resources, which is YAML: ".metadata.name".
func (part *part) fieldAt(line int) string {
	var doc yamlv3.Node
	if err := yamlv3.Unmarshal([]byte(part.text), &doc); err != nil || len(doc.Content) == 0 {
		return ""
	}
	path, node := "", doc.Content[0]
	for {
		step, next := "", (*yamlv3.Node)(nil)
		for i := range node.Content {
			child := node.Content[i]
			if child.Line > line {
				break
			}
			switch node.Kind {
			case yamlv3.MappingNode:
				if i%2 == 0 && i+1 < len(node.Content) {
					step, next = "."+child.Value, node.Content[i+1]
				}
			case yamlv3.SequenceNode:
				step, next = fmt.Sprintf("[%d]", i), child
			}
		}
		if next == nil {
			return path
		}
		path, node = path+step, next
	}
}

// describe is how messages call a JSON value.
func describe(value any) string {
	switch value.(type) {
	case nil:
		return "empty"
	case bool:
		return "a boolean"
	case int64, float64, int, uint64:
		return "a number"
	case string:
		return "a text"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return fmt.Sprintf("a %T", value)
}
