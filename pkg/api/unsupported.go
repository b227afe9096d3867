// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"slices"
)

// Unsupported warns of fields that are accepted, being fields of the CRDs, and that
// are not acted on. The types are those of the providers that the caller can fetch;
// flux says that ResourceSets are handed to Flux (target.flux).
func Unsupported(defs *Definitions, types []string, flux bool) []*Fault {
	var warnings []*Fault
	for _, rs := range defs.ResourceSets {
		if flux {
			break
		}
		warn := func(path, what string) {
			warnings = append(warnings, &Fault{
				Pos: rs.At(path), Object: rs.String(), Msg: what + " without target.flux",
				Hint: "set target.flux in the configuration, or set it in the Flux Kustomization that applies the output",
			})
		}
		if len(rs.Spec.DependsOn) > 0 {
			warn("spec.dependsOn", "spec.dependsOn is not acted on")
		}
		if rs.Spec.ServiceAccountName != "" {
			warn("spec.serviceAccountName", "spec.serviceAccountName is not acted on")
		}
		if rs.Spec.Wait {
			warn("spec.wait", "spec.wait is not acted on")
		}
		if len(rs.Spec.Steps) > 1 {
			warn("spec.steps", "spec.steps are applied together: their order is not acted on")
		}
		for i, step := range rs.Spec.Steps {
			if step.Timeout > 0 {
				path := fmt.Sprintf("spec.steps[%d].timeout", i)
				warn(path, path+" is not acted on")
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
