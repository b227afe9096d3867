// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// aliasAllowance is how many values the aliases of one file may add to those
// that are written out in it.
const aliasAllowance = 200_000

const byteOrderMark = "\xef\xbb\xbf"

// Parse reads the objects of ours in one YAML file, which may hold several
// documents and lists. Documents of other kinds are passed over. What is wrong
// is reported as faults, all at once and in file order; an object with a fault
// is not among the results, every other one is.
//
// The name of the file is used in positions only.
func Parse(file string, data []byte) *Definitions {
	defs := &Definitions{}
	f := &fileReader{file: file, defs: defs, budget: len(data) + aliasAllowance}
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		f.fault(1, "save the file as UTF-8", "the file is UTF-16")
		return defs
	}
	for _, c := range split(data) {
		f.chunk(c)
	}
	return defs
}

// CheckSyntax reports what is not YAML in a file, whatever its objects are.
func CheckSyntax(file string, data []byte) []*Fault {
	f := &fileReader{file: file, defs: &Definitions{}, syntaxOnly: true}
	for _, c := range split(bytes.TrimPrefix(data, []byte(byteOrderMark))) {
		f.chunk(c)
	}
	return f.defs.Faults
}

// Concerns says whether objects of this version and kind are read from
// definitions, or, being nearly that, reported.
func Concerns(apiVersion, kind string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	return isConfigMap(apiVersion, kind) || group == Group || group == ReceiverGroup && kind == KindReceiver || kind == KindResourceSet || kind == KindInputProvider
}

// A fileReader collects what one file holds.
type fileReader struct {
	file   string
	defs   *Definitions
	budget int

	syntaxOnly bool
}

func (f *fileReader) fault(line int, hint, format string, args ...any) {
	f.defs.Faults = append(f.defs.Faults, &Fault{
		Pos: Position{File: f.file, Line: line}, Msg: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// chunk reads the documents of one part of the file. One that is not YAML ends
// the part, not the file.
func (f *fileReader) chunk(c chunk) {
	docs := yaml.NewDecoder(bytes.NewReader(c.data))
	for {
		var doc yaml.Node
		err := decodeNode(docs, &doc)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			line, msg := syntaxError(c.data, err)
			f.fault(c.line+line, syntaxHint(c.data, msg), "not valid YAML: %s", msg)
			return
		}
		if f.syntaxOnly || doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 {
			continue
		}
		shiftLines(&doc, c.line)
		f.document(doc.Content[0])
	}
}

// decodeNode turns a panic of the YAML library, which knows some, into an error.
func decodeNode(docs *yaml.Decoder, doc *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return docs.Decode(doc)
}

// document reads the object, or the list of objects, below a node.
func (f *fileReader) document(n *yaml.Node) {
	n = target(n)
	if n.Kind != yaml.MappingNode {
		return
	}
	apiVersion, kind := header(n, "apiVersion"), header(n, "kind")
	if items := child(n, "items"); items != nil && isList(apiVersion, kind) {
		for _, item := range target(items).Content {
			f.document(item)
		}
		return
	}
	if isConfigMap(apiVersion, kind) {
		f.configMap(n)
		return
	}
	if f.concerns(n, apiVersion, kind) {
		f.object(n, kind)
	}
}

func isConfigMap(apiVersion, kind string) bool { return apiVersion == "v1" && kind == KindConfigMap }

// isList tells the lists that kubectl prints.
func isList(apiVersion, kind string) bool {
	return apiVersion == "v1" && (kind == "List" || kind == KindConfigMap+"List") ||
		apiVersion == APIVersion && (kind == KindResourceSet+"List" || kind == KindInputProvider+"List") ||
		apiVersion == ReceiverAPIVersion && kind == KindReceiver+"List"
}

func (f *fileReader) object(n *yaml.Node, kind string) {
	d := &decoder{file: f.file, lines: map[string]int{}, budget: f.budget}
	meta := Meta{Pos: Position{File: f.file, Line: n.Line}, Lines: d.lines}
	d.object = objectName(n, kind)
	switch kind {
	case KindResourceSet:
		if rs := d.resourceSet(n, meta); d.accepted() {
			f.defs.ResourceSets = append(f.defs.ResourceSets, rs)
		}
	case KindInputProvider:
		if p := d.provider(n, meta); d.accepted() {
			f.defs.Providers = append(f.defs.Providers, p)
		}
	case KindReceiver:
		if r := d.receiver(n, meta); d.accepted() {
			f.defs.Receivers = append(f.defs.Receivers, r)
		}
	}
	f.budget = d.budget
	slices.SortStableFunc(d.faults, byLine)
	slices.SortStableFunc(d.warnings, byLine)
	f.defs.Faults = append(f.defs.Faults, d.faults...)
	f.defs.Warnings = append(f.defs.Warnings, d.warnings...)
}

func (d *decoder) accepted() bool { return len(d.faults) == 0 }

func byLine(a, b *Fault) int { return a.Pos.Line - b.Pos.Line }

// root is the schema of a whole object: what all kinds have, and the spec.
func (d *decoder) root(n *yaml.Node, meta *Meta, spec schema) {
	sawMeta, sawSpec := false, false
	d.fields("", n, schema{
		"apiVersion": nil, "kind": nil, "status": nil,
		"metadata": func(path string, n *yaml.Node) { sawMeta = true; d.metadata(n, meta) },
		"spec":     func(path string, n *yaml.Node) { sawSpec = true; d.fields(path, n, spec) },
	})
	if !sawMeta {
		d.fault(n, "", "metadata is missing: the object needs a metadata.name")
	}
	if !sawSpec {
		d.fault(n, "", "spec is missing")
	}
	if meta.Namespace == "" {
		meta.Namespace = DefaultNamespace
	}
}

// concerns says whether a document is an object of ours that can be read. A
// version or kind that is nearly ours is reported: a definition that drops out
// in silence would take its output with it.
func (f *fileReader) concerns(n *yaml.Node, apiVersion, kind string) bool {
	group, version, _ := strings.Cut(apiVersion, "/")
	note := func(hint, format string, args ...any) *Fault {
		return &Fault{
			Pos: Position{File: f.file, Line: n.Line}, Object: objectName(n, kind),
			Msg: fmt.Sprintf(format, args...), Hint: hint,
		}
	}
	fault := func(hint, format string, args ...any) {
		f.defs.Faults = append(f.defs.Faults, note(hint, format, args...))
	}
	warn := func(hint, format string, args ...any) {
		f.defs.Warnings = append(f.defs.Warnings, note(hint, format, args...))
	}
	ours := kind == KindResourceSet || kind == KindInputProvider
	switch {
	case group == Group && ours && version == "v1", group == ReceiverGroup && kind == KindReceiver && version == "v1":
		return true
	case group == ReceiverGroup && kind == KindReceiver && (version == "v1beta1" || version == "v1beta2"):
		warn("write apiVersion: "+ReceiverAPIVersion, "%s is an old version, read as %s", apiVersion, ReceiverAPIVersion)
		return true
	case group == Group && ours:
		fault("write apiVersion: "+APIVersion, "apiVersion %s is not supported", apiVersion)
	case group == ReceiverGroup && kind == KindReceiver:
		fault("write apiVersion: "+ReceiverAPIVersion, "apiVersion %s is not supported", apiVersion)
	case ours && apiVersion == "":
		fault("write apiVersion: "+APIVersion, "apiVersion is missing")
	case ours:
		warn("renderer reads apiVersion "+APIVersion, "ignored: apiVersion %s is of another product", apiVersion)
	case group == Group && !slices.Contains(foreignKinds, kind):
		if near := nearest(kind, []string{KindResourceSet, KindInputProvider}); near != "" {
			fault("did you mean "+near+"?", "unknown kind %s", kind)
		} else {
			warn("", "ignored: unknown kind %q of %s", kind, Group)
		}
	}
	return false
}

// foreignKinds are of the operator's group, but not for renderer.
var foreignKinds = []string{"FluxInstance", "FluxReport"}

// objectName names the object for messages, as far as it can be read.
func objectName(n *yaml.Node, kind string) string {
	name, namespace := "", DefaultNamespace
	if meta := child(n, "metadata"); meta != nil && target(meta).Kind == yaml.MappingNode {
		name = header(target(meta), "name")
		if ns := header(target(meta), "namespace"); ns != "" {
			namespace = ns
		}
	}
	if name == "" {
		return kind
	}
	return fmt.Sprintf("%s %s/%s", kind, oneLine(namespace), oneLine(name))
}

// oneLine keeps names with line breaks and the like from spoiling messages.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}

// child is the value of a key, without merge keys; nil when there is none.
func child(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name && n.Content[i].Kind == yaml.ScalarNode {
			return n.Content[i+1]
		}
	}
	return nil
}

// header is the text of a key's value, or empty.
func header(n *yaml.Node, name string) string {
	c := child(n, name)
	if c == nil || target(c).Kind != yaml.ScalarNode {
		return ""
	}
	return target(c).Value
}

// shiftLines moves the lines of a chunk's nodes to those of the file.
func shiftLines(n *yaml.Node, by int) {
	if by == 0 {
		return
	}
	n.Line += by
	for _, c := range n.Content {
		shiftLines(c, by)
	}
}
