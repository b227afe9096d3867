// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// With target.flux, a ResourceSet's manifests are not applied by the Kustomization
// that applies the target path, but by Kustomizations of the ResourceSet's own. Each
// of them applies one part: a list of manifests below the folder "_flux". The
// manifests themselves lie where they always lie, whichever part they belong to, so
// parts come and go without moving a file. The ResourceSet's own kustomization.yaml
// then lists the Kustomization objects in place of the manifests.
//
// Kustomizations fight over nothing as long as each object is in one of them. To take
// an object out of one and put it into another is dangerous: whichever acts first
// decides whether the object lives. So a Kustomization that is to lose an object to
// another one is retired as a whole. Its list then names what it had and what still
// exists elsewhere, as stubs that Flux skips when it applies and that stay in the
// Kustomization's inventory: nothing of them is pruned. Its successor has another
// name. See docs/decisions/0016-flux-kustomizations.md for why this is safe whatever
// the order in which a cluster learns of it.

// fluxDir is the folder, below a ResourceSet's, of all that is there for Flux. No
// input set's folder can have its name, because those hold no underscore.
const fluxDir = "_flux"

// MaxPartObjects is how many objects a Kustomization is given at most. Building one
// costs kustomize-controller time that grows with the square of that number.
const MaxPartObjects = 500

// API versions of what is written for Flux, and annotations that mean something to it.
const (
	fluxAPIVersion = "kustomize.toolkit.fluxcd.io/v1"
	fluxGroup      = "kustomize.toolkit.fluxcd.io"
	fluxKind       = "Kustomization"

	annotationPrune     = api.Group + "/prune"
	annotationForce     = api.Group + "/force"
	annotationFluxPrune = fluxGroup + "/prune"
	annotationFluxForce = fluxGroup + "/force"
	annotationFluxSSA   = fluxGroup + "/ssa"
)

// FluxParams says how a ResourceSet is handed to Flux.
type FluxParams struct {
	// Source is what delivers the target repository to Flux; nil when target.flux is
	// off: then what is there for Flux is retired, and the Kustomization that applies
	// the target path applies the manifests again.
	Source *FluxSource
	// Interval is how often Flux reconciles, unless the ResourceSet says so.
	Interval string
	// TargetPath is the target path in the repository.
	TargetPath string
	// After are the Kustomizations of the ResourceSets that this one depends on, in
	// the order of spec.dependsOn.
	After []FluxDependency
	// Now is the time, for the record. The package has no clock.
	Now string
	// Over reports whether a handover that began at a recorded time is over: Flux has
	// had the time to apply what was committed then. FadedOver is the same for what is
	// retired with stubs, which costs nothing to keep, and may take longer.
	Over, FadedOver func(since string) bool
	// Elsewhere reports whether another ResourceSet makes the manifest of that name.
	// Nil stands for none.
	Elsewhere func(file string) bool
	// Committed reads a committed file of the ResourceSet's folder.
	Committed func(path string) ([]byte, error)
}

// A FluxSource is a Flux source object.
type FluxSource struct{ Kind, Name, Namespace string }

// A FluxDependency is a Kustomization that has to be ready first. ReadyExpr, in CEL,
// replaces Flux's own idea of ready.
type FluxDependency struct{ Namespace, Name, ReadyExpr string }

// LockedFlux is what inputs.lock records of the Kustomizations of a ResourceSet. All
// files below "_flux" follow from it and from the ResourceSet.
type LockedFlux struct {
	// Source, Interval and After are as in FluxParams.
	Source   FluxSource
	Interval string
	After    []FluxDependency
	// ServiceAccount is the one that Flux acts as; empty for its own.
	ServiceAccount string
	// Generation is the highest one of any part so far; 0 at first.
	Generation int
	// Parts are the Kustomizations that apply manifests, steps in their order.
	Parts []FluxPart
	// Retired are Kustomizations that apply nothing any more.
	Retired []RetiredPart
	// Protected is since when the manifests are protected from being pruned by the
	// Kustomization that applied them so far; empty when they are not.
	Protected string
	// Files are all files below "_flux": path below the ResourceSet's folder to blob.
	Files map[string]string
}

// A FluxPart is one Kustomization. Which manifests are its own follows from the step
// that they belong to and from the number that their input set was given.
type FluxPart struct {
	Name   string // of the Kustomization
	Step   string
	Number int // from 1
}

// A RetiredPart is a Kustomization that is about to go.
type RetiredPart struct {
	Name string
	// Objects are those that it had and that others have now, each as
	// "apiVersion kind namespace/name". They must survive it.
	Objects []string
	Since   string
}

// partKey tells the parts of a ResourceSet apart.
type partKey struct {
	step   string
	number int
}

func (p FluxPart) key() partKey { return partKey{p.Step, p.Number} }

// fluxName is the name of a part's Kustomization. The plain part of a ResourceSet is
// called after it alone. Every other name ends in a digest, so that the parts of one
// ResourceSet never have the names of another's. A name is also the value of a label,
// so it has at most 63 characters.
func fluxName(rs *api.ResourceSet, key partKey, generation int) string {
	var tags []string
	if key.step != "" {
		tags = append(tags, key.step)
	}
	if key.number > 1 {
		tags = append(tags, strconv.Itoa(key.number))
	}
	if generation > 0 {
		tags = append(tags, "g"+strconv.Itoa(generation))
	}
	return hashedName(rs, tags)
}

// gateName is the name of the Kustomization that waits for a dependency.
func gateName(rs *api.ResourceSet, dep api.Dependency) string {
	return hashedName(rs, []string{"after", dep.APIVersion, dep.Kind, dep.Namespace, dep.Name})
}

const (
	fluxPrefix   = "resourceset-"
	fluxDigest   = 8
	maxRSShown   = 24
	maxTagsShown = maxLabel - len(fluxPrefix) - maxRSShown - fluxDigest - 2
)

func hashedName(rs *api.ResourceSet, tags []string) string {
	name := slug(rs.Name)
	if plain := fluxPrefix + name; len(tags) == 0 && name == rs.Name && len(plain) <= maxLabel {
		return plain
	}
	sum := sha256.Sum256([]byte(key(append([]string{rs.Namespace, rs.Name}, tags...)...)))
	shown := strings.ReplaceAll(slug(strings.Join(tags, "-")), ".", "-")
	parts := []string{fluxPrefix + strings.Trim(cut(name, maxRSShown), "-.")}
	if shown = strings.Trim(cut(shown, maxTagsShown), "-"); shown != "" {
		parts = append(parts, shown)
	}
	return strings.Join(append(parts, hex.EncodeToString(sum[:])[:fluxDigest]), "-")
}

// Managed reports whether Kustomizations of the ResourceSet's own apply its manifests.
func (f *LockedFlux) Managed() bool { return f != nil && f.Protected == "" && len(f.Parts) > 0 }

// Last are the Kustomizations that come last: those that are ready when all is. For
// whoever depends on the ResourceSet.
func (f *LockedFlux) Last() []string {
	if !f.Managed() {
		return nil
	}
	step := f.Parts[len(f.Parts)-1].Step
	var names []string
	for _, part := range f.Parts {
		if part.Step == step {
			names = append(names, part.Name)
		}
	}
	return names
}

// Parts are the names of the Kustomizations that apply the manifests, by the path of
// the manifest; none while it is not Kustomizations of the ResourceSet's own.
func (l *Lock) Parts() map[string]string {
	if !l.Managed() {
		return nil
	}
	names := make(map[partKey]string, len(l.Flux.Parts))
	for _, part := range l.Flux.Parts {
		names[part.key()] = part.Name
	}
	parts := map[string]string{}
	for file, key := range assignment(l) {
		parts[file] = names[key]
	}
	return parts
}

// Managed reports whether Kustomizations of the ResourceSet's own apply its manifests.
func (l *Lock) Managed() bool { return l != nil && l.Flux.Managed() }
