// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a Kubernetes cluster that has no nodes: an API server with its
// store, and the controllers of Flux that turn a Git repository into objects. All of
// them are the real programs, as processes on loopback ports; nothing is in a
// container. That is all of a cluster that the product's promise needs: whether an
// object is there, with what content, and since when (its UID tells).
//
// What is not there: nobody runs Pods. Where only storing matters, a definition of the
// type stands in (see the folder crds).
//
// The programs are built by `make components` from the module beside this one.
package cluster
