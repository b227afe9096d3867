// SPDX-License-Identifier: Apache-2.0

// Package reconcile is the loop: it decides what to fetch and when, what to
// render from it, and what to hold back.
//
// One pass has four stages, and data flows one way through them. The definitions
// are read from their repository at one commit. The providers that are due are
// fetched, each completely or not at all; what is not due, or fails, counts with
// its last good export, and on a cold start with what inputs.lock recorded in
// Git. Every ResourceSet is rendered from its exports. Last, the writer is asked
// to make the target tree equal to the outcome; it calls back with the head that
// it builds on (and again with a newer one after a lost race), so that the plan
// is always computed from what is in Git now.
//
// Git is the only state. What this package remembers between passes (exports,
// parsed templates, plans that changed nothing) saves work and may be lost at
// any time.
//
// The cost of a pass in which nothing changed is one lookup in the committed
// tree per ResourceSet; one changed ResourceSet costs rendering its input sets
// and writing the files that differ. Nothing depends on the size of the
// repository.
package reconcile
