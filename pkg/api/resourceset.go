// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

func (d *decoder) resourceSet(n *yaml.Node, meta Meta) *ResourceSet {
	rs := &ResourceSet{Meta: meta}
	s := &rs.Spec
	d.root(n, &rs.Meta, schema{
		"commonMetadata": func(path string, n *yaml.Node) {
			s.CommonMetadata = &CommonMetadata{}
			d.fields(path, n, schema{
				"labels":      d.textMap(&s.CommonMetadata.Labels),
				"annotations": d.textMap(&s.CommonMetadata.Annotations),
			})
		},
		"inputStrategy": d.nested(schema{"name": d.strategy(&s.InputStrategy)}),
		"inputs": d.items(func(path string, n *yaml.Node) {
			if input, ok := d.input(path, n); ok {
				s.Inputs = append(s.Inputs, input)
			}
		}),
		"inputsFrom":         d.items(func(path string, n *yaml.Node) { s.InputsFrom = append(s.InputsFrom, d.inputsFrom(path, n)) }),
		"resources":          d.resources(&s.Resources),
		"resourcesTemplate":  d.text(&s.ResourcesTemplate),
		"steps":              d.items(func(path string, n *yaml.Node) { s.Steps = append(s.Steps, d.step(path, n)) }),
		"dependsOn":          d.items(func(path string, n *yaml.Node) { s.DependsOn = append(s.DependsOn, d.dependency(path, n)) }),
		"serviceAccountName": d.text(&s.ServiceAccountName),
		"wait":               d.boolean(&s.Wait),
	})
	if s.InputStrategy == "" {
		s.InputStrategy = StrategyFlatten
	}
	d.checkSteps(n, s)
	return rs
}

func (d *decoder) strategy(to *string) read {
	return func(path string, n *yaml.Node) {
		d.text(to)(path, n)
		if *to != "" && *to != StrategyFlatten && *to != StrategyPermute {
			d.fault(n, "write Flatten or Permute", "unknown input strategy %q", *to)
		}
	}
}

// ParseInput reads one input set out of a file in YAML or JSON that holds nothing
// else, with the rules for those in a ResourceSet: texts stay texts.
func ParseInput(file string, data []byte) (Input, []*Fault) {
	f := &fileReader{file: file, defs: &Definitions{}, budget: len(data) + aliasAllowance}
	wrong := func(hint, format string, args ...any) (Input, []*Fault) {
		f.fault(0, hint, format, args...)
		return nil, f.defs.Faults
	}
	chunks := split(bytes.TrimPrefix(data, []byte(byteOrderMark)))
	var found []*yaml.Node
	for _, c := range chunks {
		docs := yaml.NewDecoder(bytes.NewReader(c.data))
		for {
			var doc yaml.Node
			err := decodeNode(docs, &doc)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				line, msg := syntaxError(c.data, err)
				f.fault(c.line+line, syntaxHint(c.data, msg), "not valid YAML: %s", msg)
				return nil, f.defs.Faults
			}
			if doc.Kind == yaml.DocumentNode && len(doc.Content) > 0 && !isNull(doc.Content[0]) {
				shiftLines(&doc, c.line)
				found = append(found, doc.Content[0])
			}
		}
	}
	if len(found) != 1 {
		return wrong("write one map of fields in it", "holds %d documents", len(found))
	}
	d := &decoder{file: file, lines: map[string]int{}, budget: f.budget}
	input, ok := d.input("", found[0])
	if !ok || len(d.faults) > 0 {
		return nil, d.faults
	}
	return input, nil
}

// input reads one input set: a map whose direct values are not null.
func (d *decoder) input(path string, at *yaml.Node) (Input, bool) {
	if !d.is(path, at, yaml.MappingNode) {
		return nil, false
	}
	n := target(at)
	if !d.spend(at) || !d.enter(n, at) {
		return nil, false
	}
	defer d.leave(n)
	entries := d.entries(n)
	input := make(Input, len(entries))
	for _, e := range entries {
		value := d.value(e.value)
		if value == nil && isNull(e.value) {
			d.fault(e.key, `leave the field out, or write "" for an empty text`, "%s is null", join(path, e.name))
		}
		input[e.name] = value
	}
	return input, true
}

func (d *decoder) inputsFrom(path string, at *yaml.Node) InputProviderReference {
	var ref InputProviderReference
	d.fields(path, at, schema{
		"apiVersion": d.text(&ref.APIVersion),
		"kind":       d.text(&ref.Kind),
		"name":       d.text(&ref.Name),
		"selector": func(path string, n *yaml.Node) {
			ref.Selector = &LabelSelector{}
			d.fields(path, n, d.selector(ref.Selector))
		},
	})
	if target(at).Kind != yaml.MappingNode {
		return ref
	}
	if ref.APIVersion != "" && ref.APIVersion != APIVersion {
		d.fault(d.line(path+".apiVersion", at), "write "+APIVersion+", or leave it out", "%s.apiVersion %s is not supported", path, ref.APIVersion)
	}
	if ref.Kind != "" && ref.Kind != KindInputProvider {
		d.fault(d.line(path+".kind", at), "write "+KindInputProvider+", or leave it out", "%s.kind %s is not supported", path, ref.Kind)
	}
	switch {
	case ref.Name == "" && ref.Selector == nil:
		d.fault(at, "", "%s needs a name or a selector", path)
	case ref.Name != "" && ref.Selector != nil:
		d.fault(at, "keep one of them; several entries add up", "%s has both name and selector", path)
	}
	return ref
}

// selector is the schema of a LabelSelector.
func (d *decoder) selector(to *LabelSelector) schema {
	return schema{
		"matchLabels": d.textMap(&to.MatchLabels),
		"matchExpressions": d.items(func(path string, n *yaml.Node) {
			to.MatchExpressions = append(to.MatchExpressions, d.requirement(path, n))
		}),
	}
}

func (d *decoder) requirement(path string, at *yaml.Node) LabelSelectorRequirement {
	var r LabelSelectorRequirement
	before := len(d.faults)
	d.fields(path, at, schema{"key": d.text(&r.Key), "operator": d.text(&r.Operator), "values": d.texts(&r.Values)})
	if target(at).Kind != yaml.MappingNode {
		return r
	}
	operator := d.line(path+".operator", at)
	switch r.Operator {
	case "In", "NotIn":
		if len(r.Values) == 0 && len(d.faults) == before {
			d.fault(operator, "", "%s: the operator %s needs values", path, r.Operator)
		}
	case "Exists", "DoesNotExist":
		if len(r.Values) > 0 {
			d.fault(operator, "take values out", "%s: the operator %s takes no values", path, r.Operator)
		}
	default:
		d.fault(operator, "write In, NotIn, Exists or DoesNotExist", "%s: unknown operator %q", path, r.Operator)
	}
	if r.Key == "" {
		d.fault(at, "", "%s.key is missing", path)
	}
	return r
}

// resources reads a list of objects. An item may also be a text: a placeholder
// that yields the whole object.
func (d *decoder) resources(to *[]any) read {
	return d.items(func(path string, at *yaml.Node) {
		switch value := d.value(at).(type) {
		case map[string]any, string:
			d.deepLines(path, target(at), lineBudget)
			*to = append(*to, value)
		default:
			d.fault(at, "an item is an object, or one placeholder that yields it", "%s must be a map, not %s", path, typeName(value))
		}
	})
}

// lineBudget bounds how many fields of one resource have their lines recorded.
const lineBudget = 2000

// deepLines records the lines of the fields below n, so that messages about a
// template can name the line. It returns what is left of the budget.
func (d *decoder) deepLines(path string, n *yaml.Node, budget int) int {
	for i := 0; i < len(n.Content) && budget > 0; i++ {
		at := n.Content[i]
		field, line := path+"["+strconv.Itoa(i)+"]", at.Line
		if n.Kind == yaml.MappingNode {
			if i++; i >= len(n.Content) || at.Kind != yaml.ScalarNode || isMerge(at) {
				continue
			}
			field, line = join(path, at.Value), lineOf(entry{key: at, value: n.Content[i]})
			at = n.Content[i]
		}
		d.lines[field] = line
		budget = d.deepLines(field, at, budget-1)
	}
	return budget
}

func (d *decoder) step(path string, at *yaml.Node) Step {
	var step Step
	d.fields(path, at, schema{
		"name":              d.text(&step.Name),
		"timeout":           d.duration(&step.Timeout),
		"resources":         d.resources(&step.Resources),
		"resourcesTemplate": d.text(&step.ResourcesTemplate),
	})
	return step
}

// checkSteps checks what concerns several fields of the spec.
func (d *decoder) checkSteps(n *yaml.Node, s *ResourceSetSpec) {
	spec := d.line("spec", n)
	if len(s.Steps) == 0 {
		if len(s.Resources) == 0 && strings.TrimSpace(s.ResourcesTemplate) == "" && d.accepted() {
			d.warn(spec, "add resources, resourcesTemplate or steps", "renders nothing: it has no resources")
		}
		return
	}
	for _, other := range []string{"resources", "resourcesTemplate"} {
		if _, both := d.lines["spec."+other]; both {
			d.fault(d.line("spec."+other, n), "move them into a step", "spec.steps and spec.%s exclude each other", other)
		}
	}
	var names []string
	for i, step := range s.Steps {
		path := "spec.steps[" + strconv.Itoa(i) + "]"
		at := d.line(path, n)
		switch {
		case step.Name == "":
			d.fault(at, "", "%s.name is missing", path)
		case slices.Contains(names, step.Name):
			d.fault(d.line(path+".name", n), "", "the step name %q is used twice", step.Name)
		}
		names = append(names, step.Name)
		if len(step.Resources) == 0 && strings.TrimSpace(step.ResourcesTemplate) == "" {
			d.fault(at, "", "%s (step %q) has neither resources nor resourcesTemplate", path, step.Name)
		}
	}
}

func (d *decoder) dependency(path string, at *yaml.Node) Dependency {
	var dep Dependency
	d.fields(path, at, schema{
		"apiVersion": d.text(&dep.APIVersion),
		"kind":       d.text(&dep.Kind),
		"name":       d.text(&dep.Name),
		"namespace":  d.text(&dep.Namespace),
		"ready":      d.boolean(&dep.Ready),
		"readyExpr":  d.text(&dep.ReadyExpr),
	})
	if target(at).Kind != yaml.MappingNode {
		return dep
	}
	for _, field := range []struct{ name, value string }{
		{"apiVersion", dep.APIVersion}, {"kind", dep.Kind}, {"name", dep.Name},
	} {
		if field.value == "" {
			d.fault(at, "", "%s.%s is missing", path, field.name)
		}
	}
	if dep.ReadyExpr != "" && !dep.Ready {
		d.warn(d.line(path+".readyExpr", at), "add ready: true", "%s.readyExpr has no effect without ready", path)
	}
	return dep
}
