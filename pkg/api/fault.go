// SPDX-License-Identifier: Apache-2.0

package api

import "strings"

// A Fault is one thing that is wrong (or, as a warning, doubtful) in a
// definition: where it is, which object it concerns, what is wrong and what to
// do about it.
type Fault struct {
	Pos    Position
	Object string // "ResourceSet apps/podinfo", or empty when no object could be read
	Msg    string
	Hint   string // empty when there is nothing to suggest
}

// Error is "file:line: object: message", without the hint.
func (f *Fault) Error() string {
	parts := make([]string, 0, 3)
	if pos := f.Pos.String(); pos != "" {
		parts = append(parts, pos)
	}
	if f.Object != "" {
		parts = append(parts, f.Object)
	}
	return strings.Join(append(parts, f.Msg), ": ")
}

// Suggestion is the hint line that is printed below the error.
func (f *Fault) Suggestion() string { return f.Hint }

// Definitions are the objects of ours that were found in one or more files, in
// the order found, with the faults that kept other objects from being among them.
type Definitions struct {
	ResourceSets []*ResourceSet
	Providers    []*ResourceSetInputProvider
	Receivers    []*Receiver
	ConfigMaps   []*ConfigMap // that templates may take data from; not definitions by themselves
	Faults       []*Fault
	Warnings     []*Fault
}

// Merge appends what other holds.
func (d *Definitions) Merge(other *Definitions) {
	d.ResourceSets = append(d.ResourceSets, other.ResourceSets...)
	d.Providers = append(d.Providers, other.Providers...)
	d.Receivers = append(d.Receivers, other.Receivers...)
	d.ConfigMaps = append(d.ConfigMaps, other.ConfigMaps...)
	d.Faults = append(d.Faults, other.Faults...)
	d.Warnings = append(d.Warnings, other.Warnings...)
}
