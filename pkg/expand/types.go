// SPDX-License-Identifier: Apache-2.0

package expand

import "resourceset.example/renderer/pkg/api"

// An Export is what one provider contributes to a ResourceSet: its identity and
// its input sets in the provider's order. The fields "id" and "provider" of the
// inputs are built-in: Sets overwrites "provider", and keeps or makes "id".
type Export struct {
	Kind      string // api.KindInputProvider
	Namespace string
	Name      string
	Type      string // the provider's spec.type
	Inputs    []api.Input
}

// A Set is one input set, ready to be rendered.
type Set struct {
	// Name is the set's folder below its ResourceSet. It is safe on every file
	// system and never shared by two sets.
	Name string
	// ID is inputs.id as text, or empty where a set has none.
	ID string
	// Provider is the name of the provider the set came from; for an inline set it
	// is the ResourceSet's own name, for a permutation it is empty.
	Provider string
	// Origin is how messages name the set: `inputs[2]` when inline, else
	// `input set podinfo-pull-requests-12`.
	Origin string
	// Inputs is what the template function `inputs` returns. Rendering never changes it.
	Inputs api.Input
	// Parts are what the set was made of, in the order of the providers: one part
	// with Flatten, one for each provider with Permute. inputs.lock records them.
	Parts []Part
}

// A Part is one exported input set as it is in a Set.
type Part struct {
	Kind     string // api.KindInputProvider, or api.KindResourceSet when inline
	Provider string // the provider's name, or the ResourceSet's when inline
	Type     string // the provider's spec.type, or empty when inline
	// Key is the key of Set.Inputs that holds the part with Permute; empty with Flatten.
	Key string
	// Inputs are the values as exported, without the "id" and "provider" that Sets adds.
	Inputs api.Input
}

// An ObjectID is the identity of an object in a cluster. The version is no part of it.
type ObjectID struct {
	Group, Kind, Namespace, Name string
}

// An Object is one rendered object.
type Object struct {
	ID         ObjectID
	APIVersion string
	// Content is the object as JSON values, common metadata and owner labels included.
	Content map[string]any
	// Step is the name of the step that it belongs to, or empty.
	Step string
	// Sets are the indexes of the sets that produced it, ascending. The content is
	// that of the first one. Empty when the ResourceSet has no inputs at all.
	Sets []int
	// Static says that no input is part of the object's identity, as written in the template.
	Static bool
	// Unresolved is what it wants of other objects and cannot have, or nil. Layout refuses it.
	Unresolved *api.Fault

	// sumless says that no checksumFrom is in it but perhaps among its own annotations, so
	// that nobody has to look.
	sumless bool
}

// A SetError is why one input set could not be rendered.
type SetError struct {
	Set int // index into the sets given to Render; -1 when it concerns the whole ResourceSet
	Err error
}

// A Rendering is the outcome of rendering all sets of a ResourceSet.
type Rendering struct {
	// Objects in the operator's order, deduplicated: the first one of an identity wins.
	// Objects of failed sets are not among them.
	Objects []Object
	// Failed holds the sets that could not be rendered, ascending.
	Failed []SetError
	// Warnings are doubts about the output that do not stop it, each with position,
	// object and hint: a text that YAML re-types, a repeated object that was dropped.
	Warnings []*api.Fault
	// Looked are the ConfigMaps of the definitions that the objects refer to, by
	// "namespace/name", nil for one that is not there. The rendering follows from these, too.
	Looked map[string]*api.ConfigMap
}
