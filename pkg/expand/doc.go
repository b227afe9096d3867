// SPDX-License-Identifier: Apache-2.0

// Package expand turns a ResourceSet and its input sets into files. It is the
// pure core of the program: no clock, no network, no disk, no randomness. Equal
// arguments give equal bytes.
//
// An input set is one map of values that a provider exported: one pull request,
// one tenant. The way from input sets to files has four steps:
//
//   - [Compile] parses the templates of a ResourceSet, once. Faults name the
//     template, its line and the function that does not exist.
//   - [Program.Sets] joins the sets of all providers: end to end (Flatten) or
//     each with each (Permute), and gives every set a name.
//   - [Program.Render] executes the templates once per set, reads the text as
//     YAML and keeps one object of each identity. A set that fails takes no
//     other set with it.
//   - [Layout] gives every object a path made from its inventory ID.
//
// The templates are Go's text/template between << and >>, with the functions of
// the sprig library that depend on nothing but their arguments.
package expand
