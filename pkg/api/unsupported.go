// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"slices"
)

// Unsupported warns of fields that are accepted, being fields of the CRDs, and
// that this version does not act on. The types are those of the providers that
// the caller can fetch.
func Unsupported(defs *Definitions, types []string) []*Fault {
	var warnings []*Fault
	for _, rs := range defs.ResourceSets {
		warn := func(path, hint, format string, args ...any) {
			warnings = append(warnings, &Fault{
				Pos: rs.At(path), Object: rs.String(), Msg: fmt.Sprintf(format, args...), Hint: hint,
			})
		}
		const later = "this version hands nothing of it to Flux: set it in the Flux Kustomization that applies the output"
		if len(rs.Spec.DependsOn) > 0 {
			warn("spec.dependsOn", later, "spec.dependsOn is not acted on yet")
		}
		if rs.Spec.ServiceAccountName != "" {
			warn("spec.serviceAccountName", later, "spec.serviceAccountName is not acted on yet")
		}
		if rs.Spec.Wait {
			warn("spec.wait", later, "spec.wait is not acted on yet")
		}
		if len(rs.Spec.Steps) > 1 {
			warn("spec.steps", "", "spec.steps are applied together: their order is not acted on yet")
		}
		for i, step := range rs.Spec.Steps {
			if step.Timeout > 0 {
				path := fmt.Sprintf("spec.steps[%d].timeout", i)
				warn(path, later, "%s is not acted on yet", path)
			}
		}
	}
	for _, p := range defs.Providers {
		if p.Spec.ServiceAccountName != "" && p.Spec.Type != TypeExternalArtifact {
			warnings = append(warnings, &Fault{
				Pos: p.At("spec.serviceAccountName"), Object: p.String(), Msg: "spec.serviceAccountName is not acted on",
				Hint: "the cloud sees the identity of the environment that renderer runs in",
			})
		}
		if !slices.Contains(types, p.Spec.Type) {
			warnings = append(warnings, &Fault{
				Pos: p.At("spec.type"), Object: p.String(), Msg: "providers of type " + p.Spec.Type + " cannot be fetched yet",
				Hint: "what depends on it is left as it is committed",
			})
		}
	}
	return warnings
}
