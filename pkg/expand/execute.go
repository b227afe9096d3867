// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"resourceset.example/renderer/pkg/api"
)

// A worker renders one set after the other. It has clones of the templates whose
// function "inputs" returns the worker's current set.
type worker struct {
	ctx      context.Context // of the call of Render that the worker belongs to
	p        *Program
	opts     Options
	parts    []*part
	tmpls    []*template.Template
	holes    [][]*template.Template // by part and hole, see form
	values   []string               // of the holes of the current part
	set      *Set
	inputs   api.Input // those of set, or a copy that templates may change
	steps    int
	warnings []doubt
	buf      bytes.Buffer
	left     int // bytes that may still be written
}

func (p *Program) newWorker(ctx context.Context, parts ...*part) *worker {
	w := &worker{ctx: ctx, p: p, parts: parts}
	funcs := template.FuncMap{
		"inputs":     func() map[string]any { return w.inputs },
		stepFunction: w.step,
	}
	for _, part := range parts {
		// Clone fails only for templates that have been executed as HTML.
		clone := template.Must(part.tmpl.Clone())
		w.tmpls = append(w.tmpls, clone.Funcs(funcs))
		w.holes = append(w.holes, part.form.clones(funcs))
	}
	return w
}

func (w *worker) step() (string, error) {
	w.steps++
	if w.steps > maxSteps {
		return "", fmt.Errorf("more than %d passes of loops", maxSteps)
	}
	if w.steps%1024 == 0 && w.ctx.Err() != nil {
		return "", w.ctx.Err()
	}
	return "", nil
}

// Write appends to the text of the current part.
func (w *worker) Write(data []byte) (int, error) {
	if len(data) > w.left {
		return 0, fmt.Errorf("more than %d MiB of output", maxOutput>>20)
	}
	w.left -= len(data)
	return w.buf.Write(data)
}

func (w *worker) renderSet(set *Set) setResult {
	w.start(set)
	result := setResult{objects: make([][]Object, len(w.parts))}
	var errs []error
	for n, part := range w.parts {
		objects, err := w.renderPart(n)
		if err != nil {
			errs = append(errs, w.p.failure(part, set, err))
			continue
		}
		for _, object := range objects {
			if !object.excluded() {
				decorate(w.p.rs, object.Content)
				result.objects[n] = append(result.objects[n], object)
			}
		}
	}
	result.warnings = w.warnings
	result.err = errors.Join(errs...)
	return result
}

// start makes set the current one.
func (w *worker) start(set *Set) {
	w.set = set
	w.warnings = nil
}

// execute is the text of part n for the current set. It is overwritten by the next call.
func (w *worker) execute(n int) ([]byte, error) {
	w.inputs = w.set.Inputs
	return w.run(n)
}

// run is the text of part n for w.inputs.
func (w *worker) run(n int) ([]byte, error) {
	if w.parts[n].mutates {
		w.inputs = copyMap(w.inputs)
	}
	w.steps, w.left = 0, maxOutput
	w.buf.Reset()
	if err := w.tmpls[n].Execute(w, nil); err != nil {
		return nil, err
	}
	return w.buf.Bytes(), nil
}

func (w *worker) renderPart(n int) ([]Object, error) {
	part := w.parts[n]
	if part.form != nil {
		if content, ok := w.fill(n); ok {
			// Every value went into the place of one text: there is nothing to judge.
			objects, err := part.objectsIn([]any{content})
			for i := range objects {
				objects[i].sumless = part.sumless
			}
			return objects, err
		}
	}
	text, err := w.execute(n)
	if err != nil {
		return nil, err
	}
	docs, err := decodeDocuments(text)
	if err != nil {
		return nil, defectf("a text with YAML's own characters needs << … | quote >>, several lines need nindent",
			"does not render to valid YAML: %v", err)
	}
	if w.opts.Structure != StructureOff {
		if err := w.judge(n, docs); err != nil {
			return nil, err
		}
	}
	objects, err := part.objectsIn(docs)
	if err == nil && !part.documents && len(objects) == 0 {
		err = defectf("the annotation "+api.AnnotationReconcile+": disabled leaves an object out", "renders to nothing")
	}
	for i := range objects {
		if err != nil {
			break
		}
		if d := unwritable(&objects[i]); d != nil && !objects[i].excluded() {
			err = d
		}
	}
	return objects, err
}

// A doubt is a warning about a part that is not yet about a ResourceSet: many sets
// may have the same.
type doubt struct {
	part      int
	path      string
	msg, hint string
}

// judge looks for what input values did to the structure and the types of docs,
// what part n rendered to.
func (w *worker) judge(n int, docs []any) error {
	if w.p.rs.Annotations[api.AnnotationAllowStructure] != "true" {
		if err := w.guard(n, docs); err != nil {
			if w.opts.Structure == StructureEnforce {
				return &defect{field: err.path, msg: err.Error(), hint: err.Suggestion()}
			}
			w.warnings = append(w.warnings, doubt{part: n, path: err.path, msg: err.Error(), hint: err.Suggestion()})
		}
	}
	for _, r := range w.retypings(n, docs) {
		msg := fmt.Sprintf("%s: YAML reads the text %q as %v", shownPath(r.path), r.text, r.value)
		hint := "write << … | quote >> if it is meant to stay a text"
		if r.mustBeText() && w.opts.Structure == StructureEnforce {
			return &defect{field: r.path, msg: msg, hint: hint}
		}
		w.warnings = append(w.warnings, doubt{part: n, path: r.path, msg: msg, hint: hint})
	}
	return nil
}

func copyMap(in map[string]any) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		out[key] = copyValue(value)
	}
	return out
}

func copyValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return copyMap(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = copyValue(v[i])
		}
		return out
	}
	return value
}

var (
	// text/template says where an execution stopped.
	executionPlace = regexp.MustCompile(`^executing .*? at <(.*?)>: `)
	missingEntry   = regexp.MustCompile(`map has no entry for key "(.*)"$`)
)

// executionError makes one line of what text/template says, and a hint where a
// field is missing.
func (p *Program) executionError(part *part, set *Set, err error) *TemplateError {
	line, msg := splitTemplateError(err.Error())
	place := ""
	if m := executionPlace.FindStringSubmatch(msg); m != nil {
		place, msg = m[1], msg[len(m[0]):]
	}
	if m := missingEntry.FindStringSubmatch(msg); m != nil {
		return p.missingError(part, set, line, place, m[1])
	}
	msg = strings.TrimPrefix(msg, "error calling fail: ")
	if place != "" && !strings.HasPrefix(place, "fail ") {
		msg = fmt.Sprintf("at << %s >>: %s", place, msg)
	}
	hint := ""
	if strings.Contains(msg, "expected int; got int64") {
		hint = "write (int inputs.name): numbers of inputs are int64, and this function takes an int"
	}
	return p.errorIn(part, line, msg, hint)
}

// missingError is about a field that the inputs lack. The place is what text/template
// was evaluating, "inputs.bed.frame"; it tells which map lacks the field.
func (p *Program) missingError(part *part, set *Set, line int, place, field string) *TemplateError {
	have, owner := set.Inputs, "inputs"
	if path, ok := strings.CutPrefix(place, "inputs."); ok {
		for _, name := range strings.Split(path, ".") {
			next, isMap := have[name].(map[string]any)
			if name == field || !isMap {
				break
			}
			have, owner = next, owner+"."+name
		}
	}
	names := slices.Sorted(maps.Keys(have))
	hint := "this set has no fields"
	if len(names) > 0 {
		hint = "this set has " + strings.Join(names, ", ")
	}
	if near := nearest(field, names); near != "" {
		hint = fmt.Sprintf("did you mean %q? ", near) + hint
	}
	e := p.errorIn(part, line, fmt.Sprintf("%s has no %q", owner, field), hint)
	e.Missing = field
	return e
}
