// SPDX-License-Identifier: Apache-2.0

// Package api holds the resource types that renderer reads, and how they are
// read: [Parse] turns the bytes of one YAML file into typed objects and reports
// every fault at once, each with its file and line.
//
// The types are those of the public CRDs of the group fluxcd.controlplane.io
// (ResourceSet and ResourceSetInputProvider, version v1) and the Receiver of
// notification.toolkit.fluxcd.io/v1, so that YAML written for the operator or
// for Flux works here unchanged. A field of those CRDs that this program does
// not act on is accepted and reported as a warning; a field that no CRD has is
// a fault.
//
// A [ConfigMap] beside them is read as well, because templates may take its data over. It
// is no definition: what is wrong with it matters only to whoever wants something of it.
//
// Values that the CRDs leave open (inputs, default values, resources) are kept
// as plain JSON values: nil, bool, int64, float64, string, []any and
// map[string]any. Whole numbers are int64, as in the operator.
package api
