// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// document is the section "flux" of inputs.lock.
func (f *LockedFlux) document() map[string]any {
	doc := map[string]any{
		"files":  textMap(f.Files),
		"source": map[string]any{"kind": f.Source.Kind, "name": f.Source.Name, "namespace": f.Source.Namespace},
	}
	if f.Interval != "" {
		doc["interval"] = f.Interval
	}
	if f.ServiceAccount != "" {
		doc["serviceAccount"] = f.ServiceAccount
	}
	if f.Generation > 0 {
		doc["generation"] = int64(f.Generation)
	}
	if f.Protected != "" {
		doc["protected"] = f.Protected
	}
	list(doc, "after", f.After, func(d FluxDependency) map[string]any {
		return texts("name", d.Name, "namespace", d.Namespace, "readyExpr", d.ReadyExpr)
	})
	list(doc, "parts", f.Parts, func(p FluxPart) map[string]any {
		part := texts("name", p.Name, "step", p.Step)
		part["number"] = int64(p.Number)
		return part
	})
	list(doc, "retired", f.Retired, func(p RetiredPart) map[string]any {
		part := texts("name", p.Name, "since", p.Since)
		if len(p.Objects) > 0 {
			part["objects"] = textList(p.Objects)
		}
		return part
	})
	return doc
}

// list adds a list of maps to doc, unless it is empty.
func list[T any](doc map[string]any, name string, items []T, document func(T) map[string]any) {
	if len(items) == 0 {
		return
	}
	docs := make([]any, len(items))
	for i, item := range items {
		docs[i] = document(item)
	}
	doc[name] = docs
}

// texts makes a map of pairs of names and values, without the empty values.
func texts(pairs ...string) map[string]any {
	doc := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			doc[pairs[i]] = pairs[i+1]
		}
	}
	return doc
}

func (l *Lock) readFlux(fields *fieldReader, doc map[string]any) {
	if doc == nil {
		return
	}
	f := fieldReader{doc: doc}
	flux := &LockedFlux{
		Interval:       f.text("interval"),
		ServiceAccount: f.text("serviceAccount"),
		Generation:     f.number("generation"),
		Protected:      f.text("protected"),
		Files:          f.texts("files"),
	}
	each(&f, "source", []any{take[map[string]any](&f, "source", "a map")}, func(s *fieldReader) {
		flux.Source = FluxSource{Kind: s.text("kind"), Name: s.text("name"), Namespace: s.text("namespace")}
	})
	each(&f, "after", f.list("after"), func(d *fieldReader) {
		flux.After = append(flux.After, FluxDependency{Name: d.text("name"), Namespace: d.text("namespace"), ReadyExpr: d.text("readyExpr")})
	})
	each(&f, "parts", f.list("parts"), func(p *fieldReader) {
		flux.Parts = append(flux.Parts, FluxPart{Name: p.text("name"), Step: p.text("step"), Number: p.number("number")})
	})
	each(&f, "retired", f.list("retired"), func(p *fieldReader) {
		flux.Retired = append(flux.Retired, RetiredPart{Name: p.text("name"), Objects: p.textList("objects"), Since: p.text("since")})
	})
	f.end("flux")
	fields.fail(f.err)
	l.Flux = flux
}

// each reads the maps of a list.
func each(f *fieldReader, name string, items []any, read func(*fieldReader)) {
	for _, item := range items {
		fields := fieldReader{}
		fields.doc, _ = item.(map[string]any)
		read(&fields)
		fields.end(name)
		f.fail(fields.err)
	}
}

// number takes a whole number; absent is 0.
func (f *fieldReader) number(name string) int {
	n := take[int64](f, name, "a whole number")
	if n < 0 || n > 1<<30 {
		f.fail(fmt.Errorf("%s is out of range", name))
		return 0
	}
	return int(n)
}

// check is what names and paths must look like before files are made or deleted by them.
func (f *LockedFlux) check() error {
	names := map[string]bool{}
	use := func(name string) error {
		if !isFluxName(name) {
			return fmt.Errorf("flux: %q is no name of a Kustomization", cut(name, maxFolderName))
		}
		if names[name] {
			return fmt.Errorf("flux: a second Kustomization %s", name)
		}
		names[name] = true
		return nil
	}
	for _, part := range f.Parts {
		if part.Number < 1 {
			return fmt.Errorf("flux: part %s has no number", part.Name)
		}
		if err := use(part.Name); err != nil {
			return err
		}
	}
	for _, part := range f.Retired {
		if err := use(part.Name); err != nil {
			return err
		}
		for _, object := range part.Objects {
			if _, ok := parseStub(object); !ok {
				return fmt.Errorf("flux: %q is no object", cut(object, 2*maxFolderName))
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(f.Files)) {
		if !isFluxFile(file) {
			return fmt.Errorf("flux: %q is no file of ours", cut(file, 2*maxFolderName))
		}
		if !isBlob(f.Files[file]) {
			return fmt.Errorf("flux: %s: no Git blob", file)
		}
	}
	if f.Source.Name == "" {
		return errors.New("flux: no source")
	}
	return nil
}

func isFluxName(name string) bool {
	return len(name) <= maxLabel && strings.HasPrefix(name, fluxPrefix) && subdomain.MatchString(name)
}

// isFluxFile says that file is one that fluxFiles can make: an object, or a list or
// stubs in a folder of their own.
func isFluxFile(file string) bool {
	rest, ok := strings.CutPrefix(file, fluxDir+"/")
	folder, name, nested := strings.Cut(rest, "/")
	switch {
	case !ok:
		return false
	case !nested:
		return isManifestName(folder)
	default:
		return (folder == gateDir || folder == protectDir || isFluxName(folder)) && (name == kustomizationFile || name == stubsFile)
	}
}
