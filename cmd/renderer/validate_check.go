// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"resourceset.example/renderer/internal/reconcile"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/expand"
)

// checkDefinitions adds what can be said about definitions beyond their own
// fields: templates, references, and fields that this version does not act on.
// A reference that leads nowhere is a fault if complete, else a warning.
func checkDefinitions(ctx context.Context, defs *api.Definitions, complete bool) {
	known := defs.ConfigMapsByName()
	for _, rs := range defs.ResourceSets {
		defs.Faults = append(defs.Faults, templateFaults(rs)...)
		checkProviders(defs, rs, complete)
		checkReferences(ctx, defs, rs, known, complete)
	}
	for _, r := range defs.Receivers {
		checkReceiver(defs, r)
	}
	defs.Warnings = append(defs.Warnings, api.Unsupported(defs, reconcile.FetchedTypes(), false)...)
	defs.Sort()
}

func templateFaults(rs *api.ResourceSet) []*api.Fault {
	_, err := expand.Compile(rs)
	if err == nil {
		return nil
	}
	var faults []*api.Fault
	for _, e := range flatten(err) {
		faults = append(faults, asFault(e, rs))
	}
	return faults
}

// asFault takes an error of a template apart into position, object and text.
func asFault(err error, rs *api.ResourceSet) *api.Fault {
	var fault *api.Fault
	if errors.As(err, &fault) {
		return fault
	}
	f := &api.Fault{Pos: rs.Pos, Object: rs.String(), Msg: err.Error()}
	var template *expand.TemplateError
	if errors.As(err, &template) {
		f.Pos, f.Hint = template.Pos, template.Hint
		f.Msg = strings.TrimPrefix(f.Msg, template.Pos.String()+": ")
		f.Msg = strings.TrimPrefix(f.Msg, template.Object+": ")
	}
	return f
}

// checkProviders looks for the providers that a ResourceSet refers to. One that
// is there but faulty has been reported already.
func checkProviders(defs *api.Definitions, rs *api.ResourceSet, complete bool) {
	_, err := expand.SelectProviders(rs, defs.Providers)
	if err == nil {
		return
	}
	for _, e := range flatten(err) {
		var missing *expand.NoProviderError
		switch {
		case !errors.As(e, &missing):
			defs.Faults = append(defs.Faults, asFault(e, rs))
		case faultyProvider(defs, rs.Namespace, missing.Name):
		case complete && missing.Name != "":
			defs.Faults = append(defs.Faults, missing.Fault)
		default:
			defs.Warnings = append(defs.Warnings, missing.Fault)
		}
	}
}

// faultyProvider says whether faults concern a provider of that name, or with an
// empty name any of the namespace.
func faultyProvider(defs *api.Definitions, namespace, name string) bool {
	object := api.KindInputProvider + " " + namespace + "/" + name
	return slices.ContainsFunc(defs.Faults, func(f *api.Fault) bool {
		return f.Object == object || name == "" && strings.HasPrefix(f.Object, object)
	})
}

// checkReferences looks for what a ResourceSet takes from ConfigMaps. Where its inputs are
// written in it, it is rendered for that; else only names without placeholders can be
// checked, and one that an input may complete elsewhere in the template is doubtful.
func checkReferences(ctx context.Context, defs *api.Definitions, rs *api.ResourceSet, known map[string]*api.ConfigMap, complete bool) {
	program, err := expand.Compile(rs)
	if err != nil {
		return // said elsewhere
	}
	if len(rs.Spec.InputsFrom) == 0 {
		for _, fault := range unresolved(ctx, program, known) {
			if complete {
				defs.Faults = append(defs.Faults, fault)
			} else {
				defs.Warnings = append(defs.Warnings, fault)
			}
		}
		return
	}
	for _, l := range program.Literals() {
		fault := &api.Fault{Pos: l.Pos, Object: rs.String(), Msg: fmt.Sprintf("the annotation %s: there is no %s %s among the definitions", l.Annotation, api.KindConfigMap, l.Name),
			Hint: "unless this ResourceSet renders it, what refers to it stays as it is committed"}
		if c := known[l.Name]; c != nil && c.Unusable != nil {
			fault.Msg = fmt.Sprintf("the annotation %s: %v", l.Annotation, c.Unusable)
		} else if c != nil {
			continue
		}
		defs.Warnings = append(defs.Warnings, fault)
	}
}

// unresolved are the references of a ResourceSet with inline inputs that lead nowhere.
func unresolved(ctx context.Context, program *expand.Program, known map[string]*api.ConfigMap) []*api.Fault {
	sets, err := program.Sets(nil)
	if err != nil {
		return nil // not a matter of references
	}
	var faults []*api.Fault
	for _, o := range program.Render(ctx, sets, expand.Options{ConfigMaps: known}).Objects {
		if o.Unresolved != nil {
			faults = append(faults, o.Unresolved)
		}
	}
	return faults
}

// checkReceiver looks for the objects that a Receiver refreshes.
func checkReceiver(defs *api.Definitions, r *api.Receiver) {
	for i, ref := range r.Spec.Resources {
		var known []api.Meta
		switch ref.Kind {
		case api.KindInputProvider:
			for _, p := range defs.Providers {
				known = append(known, p.Meta)
			}
		case api.KindResourceSet:
			for _, rs := range defs.ResourceSets {
				known = append(known, rs.Meta)
			}
		default:
			continue // an object of Flux
		}
		found := slices.ContainsFunc(known, func(m api.Meta) bool { return refreshes(ref, m) })
		if !found && !faultyProvider(defs, ref.Namespace, strings.TrimPrefix(ref.Name, "*")) {
			path := fmt.Sprintf("spec.resources[%d]", i)
			defs.Warnings = append(defs.Warnings, &api.Fault{
				Pos: r.At(path), Object: r.String(),
				Msg:  fmt.Sprintf("%s: there is no %s %s/%s", path, ref.Kind, ref.Namespace, ref.Name),
				Hint: "a call refreshes nothing",
			})
		}
	}
}

func refreshes(ref api.ReceiverResource, m api.Meta) bool {
	if ref.Namespace != m.Namespace {
		return false
	}
	if ref.Name != "*" {
		return ref.Name == m.Name
	}
	for key, want := range ref.MatchLabels {
		if value, ok := m.Labels[key]; !ok || value != want {
			return false
		}
	}
	return true
}
