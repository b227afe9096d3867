// SPDX-License-Identifier: Apache-2.0

// Package integration tests renderer as its users have it: the built program, as a
// process with a configuration file, a state folder and real Git servers around it.
// Nothing of the program is imported; what counts is what lands on the branch.
//
// Most tests end with the same audit of the whole branch: every commit builds with
// kustomize and agrees with its own record, every push shows one state that the
// orchestrator really had, and nobody's commit is missing.
//
// The tests are a Go module of their own, which `make integration` runs.
// Random ones print their seed; RENDERER_SEED repeats one, RENDERER_KILLS says how
// often the crash test kills.
package integration
