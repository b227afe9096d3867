// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// Folders below "_flux", besides those that are called after a Kustomization.
const (
	gateDir    = "gate"    // an empty list, for Kustomizations that only wait
	protectDir = "protect" // all manifests, protected from being pruned
	stubsFile  = "objects.yaml"
)

// defaultTimeout is the operator's.
const defaultTimeout = "5m0s"

// A gate that has to wait holds one of the few workers of kustomize-controller (4 unless
// its flags say otherwise) until its timeout: with a usual one, a handful of gates would
// stop all that the controller does, also what they wait for. So a gate looks for as
// short as Flux allows, and stays away for twice as long.
const (
	gateTimeout = "30s" // kustomize-controller takes no less
	gateRetry   = "1m0s"
)

// fluxFiles are all files below "_flux" that a lock with a section for Flux stands
// for: path below the ResourceSet's folder to content.
func fluxFiles(rs *api.ResourceSet, targetPath string, lock *Lock) (map[string][]byte, error) {
	w := &fluxWriter{rs: rs, lock: lock, root: path.Join(targetPath, Dir(rs)), files: map[string][]byte{}}
	if lock.Flux.Protected != "" {
		w.files[fluxDir+"/"+protectDir+"/"+kustomizationFile] = protection(lock)
	}
	w.parts()
	for _, part := range lock.Flux.Retired {
		w.retired(part)
	}
	return w.files, w.err
}

// Resources are the entries of the kustomization.yaml of a ResourceSet's folder.
func (l *Lock) Resources() []string {
	var entries []string
	if l == nil {
		return nil
	}
	if l.Flux != nil {
		if l.Flux.Protected != "" {
			entries = append(entries, fluxDir+"/"+protectDir)
		}
		for file := range l.Flux.Files {
			if path.Dir(file) == fluxDir {
				entries = append(entries, file)
			}
		}
	}
	if l.Flux == nil || l.Flux.Protected == "" && len(l.Flux.Parts) == 0 {
		for file := range assignment(l) {
			entries = append(entries, file)
		}
	}
	slices.Sort(entries)
	return entries
}

// protection is a list of all manifests that has Flux prune none of them.
func protection(lock *Lock) []byte {
	var files []string
	for file := range assignment(lock) {
		files = append(files, "../../"+file)
	}
	list := Kustomization(files)
	return append(list, "patches:\n- patch: |\n    apiVersion: any\n    kind: any\n    metadata:\n      name: any\n      annotations:\n        "+
		annotationFluxPrune+": disabled\n  target:\n    name: .*\n"...)
}

// A fluxWriter makes the files for Flux of one ResourceSet.
type fluxWriter struct {
	rs    *api.ResourceSet
	lock  *Lock
	root  string // the ResourceSet's folder in the repository
	files map[string][]byte
	err   error
}

// parts writes the Kustomizations that apply something, and those they wait for.
func (w *fluxWriter) parts() {
	lists := map[partKey][]string{}
	for file, key := range assignment(w.lock) {
		lists[key] = append(lists[key], "../../"+file)
	}
	var before, sameStep []any // the Kustomizations that a part waits for
	var first []any
	if len(w.lock.Flux.Parts) > 0 {
		first = w.first()
	}
	step := ""
	for i, part := range w.lock.Flux.Parts {
		if i == 0 || part.Step != step {
			if i == 0 || w.step(step) == nil {
				before = first // of the steps that are defined
			} else {
				before = sameStep
			}
			step, sameStep = part.Step, nil
		}
		sameStep = append(sameStep, map[string]any{"name": part.Name})
		w.files[fluxDir+"/"+part.Name+"/"+kustomizationFile] = Kustomization(lists[part.key()])
		w.object(part.Name, w.spec(part, before))
	}
}

// first is what the first parts wait for: gates for foreign objects, and other
// ResourceSets' Kustomizations.
func (w *fluxWriter) first() []any {
	var deps []any
	for _, dep := range w.rs.Spec.DependsOn {
		if dep.Kind == api.KindResourceSet && dep.APIVersion == api.APIVersion {
			continue
		}
		name := gateName(w.rs, dep)
		if w.files[fluxDir+"/"+FileName(w.id(name))] != nil {
			continue // named twice
		}
		w.gate(name, dep)
		deps = append(deps, map[string]any{"name": name})
	}
	for _, dep := range w.lock.Flux.After {
		ref := texts("name", dep.Name, "readyExpr", dep.ReadyExpr)
		if dep.Namespace != w.rs.Namespace {
			ref["namespace"] = dep.Namespace
		}
		deps = append(deps, ref)
	}
	return deps
}

func (w *fluxWriter) step(name string) *api.Step {
	for i := range w.rs.Spec.Steps {
		if w.rs.Spec.Steps[i].Name == name {
			return &w.rs.Spec.Steps[i]
		}
	}
	return nil
}

// base is the spec of every Kustomization.
func (w *fluxWriter) base(folder string) map[string]any {
	flux := w.lock.Flux
	source := texts("kind", flux.Source.Kind, "name", flux.Source.Name, "namespace", flux.Source.Namespace)
	spec := map[string]any{
		"interval":  flux.Interval,
		"path":      "./" + w.root + "/" + fluxDir + "/" + folder,
		"prune":     true,
		"sourceRef": source,
		"timeout":   defaultTimeout,
	}
	if every := w.rs.Duration(api.AnnotationReconcileEvery); every > 0 {
		spec["interval"] = every.String()
	}
	if timeout := w.rs.Duration(api.AnnotationReconcileTimeout); timeout > 0 {
		spec["timeout"] = timeout.String()
	}
	if flux.ServiceAccount != "" {
		spec["serviceAccountName"] = flux.ServiceAccount
	}
	return spec
}

func (w *fluxWriter) spec(part FluxPart, before []any) map[string]any {
	spec := w.base(part.Name)
	if len(before) > 0 {
		spec["dependsOn"] = before
	}
	if step := w.step(part.Step); step != nil {
		spec["wait"] = true
		if step.Timeout > 0 {
			spec["timeout"] = step.Timeout.String()
		}
	} else if w.rs.Spec.Wait {
		spec["wait"] = true
	}
	return spec
}

// gate writes a Kustomization that applies nothing and is ready when an object is
// there, and ready if that is asked for.
func (w *fluxWriter) gate(name string, dep api.Dependency) {
	w.files[fluxDir+"/"+gateDir+"/"+kustomizationFile] = Kustomization(nil)
	spec := w.base(gateDir)
	spec["timeout"], spec["retryInterval"] = gateTimeout, gateRetry
	check := texts("apiVersion", dep.APIVersion, "kind", dep.Kind, "name", dep.Name, "namespace", dep.Namespace)
	spec["healthChecks"] = []any{check}
	expr := dep.ReadyExpr
	if !dep.Ready {
		expr = "true" // it exists: nothing else was asked for
	}
	if expr != "" {
		spec["healthCheckExprs"] = []any{map[string]any{"apiVersion": dep.APIVersion, "kind": dep.Kind, "current": expr}}
	}
	w.object(name, spec)
}

// retired writes a Kustomization that applies nothing any more. What others have of
// its objects stays in its inventory, so that it does not prune it, and survives its
// end; the rest it prunes.
func (w *fluxWriter) retired(part RetiredPart) {
	spec := w.base(part.Name)
	var list []string
	if len(part.Objects) > 0 {
		spec["deletionPolicy"] = "Orphan"
		list = []string{stubsFile}
		w.files[fluxDir+"/"+part.Name+"/"+stubsFile] = stubs(part.Objects)
	}
	w.files[fluxDir+"/"+part.Name+"/"+kustomizationFile] = Kustomization(list)
	w.object(part.Name, spec)
}

// stubs are objects of which only the identity counts: Flux is told not to apply them.
func stubs(objects []string) []byte {
	var out []byte
	for _, text := range objects {
		s, _ := parseStub(text)
		metadata := texts("name", s.name, "namespace", s.namespace)
		metadata["annotations"] = map[string]any{annotationFluxSSA: "Ignore"}
		data, err := Encode(map[string]any{"apiVersion": s.apiVersion, "kind": s.kind, "metadata": metadata})
		if err == nil { // texts always encode
			out = append(append(out, "---\n"...), data...)
		}
	}
	return out
}

func (w *fluxWriter) id(name string) ObjectID {
	return ObjectID{Group: fluxGroup, Kind: fluxKind, Namespace: w.rs.Namespace, Name: name}
}

// object writes the object of a Kustomization.
func (w *fluxWriter) object(name string, spec map[string]any) {
	metadata := map[string]any{
		"name": name, "namespace": w.rs.Namespace,
		"labels": map[string]any{api.LabelOwnerName: w.rs.Name, api.LabelOwnerNamespace: w.rs.Namespace},
	}
	content := map[string]any{"apiVersion": fluxAPIVersion, "kind": fluxKind, "metadata": metadata, "spec": spec}
	data, err := Encode(content)
	if err == nil && substituted(data) {
		metadata["annotations"] = map[string]any{annotationFluxSubstitute: "disabled"}
		data, err = Encode(content)
	}
	if err != nil {
		w.err = err
	}
	w.files[fluxDir+"/"+FileName(w.id(name))] = data
}

// substituted says that Flux's post-build substitution would change a manifest.
func substituted(data []byte) bool {
	return bytes.Contains(data, []byte("${")) || bytes.Contains(data, []byte("$$"))
}

// fluxAnnotations are the operator's annotations that Flux knows by another name: those
// of the object, and force of the ResourceSet, which is for all of its objects.
func fluxAnnotations(content map[string]any, ofSet map[string]string) map[string]any {
	metadata, _ := content["metadata"].(map[string]any)
	var missing []string
	for own, flux := range map[string]string{annotationPrune: annotationFluxPrune, annotationForce: annotationFluxForce} {
		want := map[string]string{annotationPrune: "disabled", annotationForce: "enabled"}[own]
		wanted := marked(metadata, own, want) || own == annotationForce && strings.EqualFold(ofSet[own], want)
		if !wanted || marked(metadata, flux, "") {
			continue
		}
		missing = append(missing, flux, want)
	}
	if len(missing) == 0 {
		return content
	}
	return annotated(content, texts(missing...))
}

// marked says that a label or annotation has a value, or is there at all if none is named.
func marked(metadata map[string]any, key, value string) bool {
	for _, field := range []string{"annotations", "labels"} {
		values, _ := metadata[field].(map[string]any)
		if have, ok := values[key].(string); ok && (value == "" || strings.EqualFold(have, value)) {
			return true
		}
	}
	return false
}

// annotated is a copy of an object with more annotations.
func annotated(content, more map[string]any) map[string]any {
	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]any{}
	}
	maps.Copy(annotations, more)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["annotations"] = annotations
	content = maps.Clone(content)
	content["metadata"] = metadata
	return content
}
