// SPDX-License-Identifier: Apache-2.0

// Package externalartifact is the input provider for Flux's ExternalArtifact objects
// (source.toolkit.fluxcd.io/v1), which controllers make in a cluster.
//
// An ExternalArtifact provider exports one input set for each object that one of
// spec.selectors picks, by name or by labels, by namespace and name:
//
//	id         the Adler-32 checksum of the namespace, "+" and the name
//	name       of the object
//	namespace  of the object
//	revision   of its artifact; missing while its controller has made none
//	…          each of its labels, under its key, where that is none of the above
//
// It is the one type that reads from a cluster: the one that the program runs in, or
// that KUBECONFIG names. It lists these objects and does nothing else, and needs a
// Role that allows "list" on them in the namespaces of its selectors. Outside of a
// cluster it refuses, and says what to use instead. See docs/decisions.
package externalartifact
