// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// A Literal is a reference to a ConfigMap that a template writes without any placeholder:
// whether it leads anywhere can be said without inputs.
type Literal struct {
	Annotation string // api.Group + "/copyFrom", …
	Name       string // "namespace/name"
	Pos        api.Position
}

// Literals are the references to ConfigMaps that the templates write out. What the same
// templates render under a name that they write out, too, is left out. The annotation that
// takes a kubeconfig is not looked at: nobody else has ConfigMaps for it.
func (p *Program) Literals() []Literal {
	own := map[string]bool{}
	for _, part := range p.parts {
		for id := range part.static {
			if id.Group == "" && id.Kind == api.KindConfigMap {
				own[id.Namespace+"/"+id.Name] = true
			}
		}
	}
	var found []Literal
	for _, part := range p.parts {
		add := func(annotation, value string, pos api.Position) {
			for _, name := range literalNames(annotation, value) {
				if !own[name] {
					found = append(found, Literal{Annotation: annotation, Name: name, Pos: pos})
				}
			}
		}
		if part.documents {
			p.literalsOfText(part, add)
		} else {
			p.literalsOfItem(part.item, part.field, add)
		}
	}
	return found
}

// literalNames are the ConfigMaps that an annotation's value names.
func literalNames(annotation, value string) []string {
	var names []string
	for ref := range strings.SplitSeq(value, ",") {
		ref = strings.TrimSpace(ref)
		if annotation == annotationChecksumFrom {
			var ok bool
			if ref, ok = strings.CutPrefix(ref, api.KindConfigMap+"/"); !ok {
				continue
			}
		}
		if ref != "" && !strings.Contains(ref, leftDelim) {
			names = append(names, ref)
		}
	}
	return names
}

// literalsOfItem looks into an item of spec.resources.
func (p *Program) literalsOfItem(value any, path string, add func(annotation, value string, pos api.Position)) {
	switch v := value.(type) {
	case map[string]any:
		for _, annotation := range []string{annotationCopyFrom, annotationChecksumFrom} {
			if text, ok := annotationsOf(v)[annotation].(string); ok {
				add(annotation, text, p.rs.At(path+".metadata.annotations."+annotation))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			p.literalsOfItem(v[key], path+"."+key, add)
		}
	case []any:
		for i, item := range v {
			p.literalsOfItem(item, fmt.Sprintf("%s[%d]", path, i), add)
		}
	}
}

// literalLine is an annotation as a line of a template has it: its name, and a value that
// is quoted, a plain text, or the mark of a block that follows.
var literalLine = regexp.MustCompile(`["']?` + regexp.QuoteMeta(api.Group+"/") + `(copyFrom|checksumFrom)["']?:\s+(?:"([^"]*)"|'([^']*)'|([^\s"'{}#][^"'{}#]*))`)

// literalsOfText looks through a resourcesTemplate.
func (p *Program) literalsOfText(part *part, add func(annotation, value string, pos api.Position)) {
	lines := strings.Split(part.text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, m := range literalLine.FindAllStringSubmatch(line, -1) {
			value := m[2] + m[3] + m[4]
			if strings.ContainsAny(value[:min(1, len(value))], "|>") {
				value = blockBelow(lines[i:])
			}
			add(api.Group+"/"+m[1], value, p.errorIn(part, i+1, "", "").Pos)
		}
	}
}

// blockBelow is the text of a block: the lines that are indented more than the first one.
func blockBelow(lines []string) string {
	indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
	var text []string
	for _, line := range lines[1:] {
		if strings.TrimSpace(line) != "" && indent(line) <= indent(lines[0]) {
			break
		}
		text = append(text, line)
	}
	return strings.Join(text, "\n")
}
