// SPDX-License-Identifier: Apache-2.0

// Package source reads the definitions that renderer works by: the objects of
// package api that lie below one path of a repository, at one commit.
//
// The rules are those of Flux's kustomize-controller. A folder that has a
// kustomization.yaml is built with kustomize, and nothing else of it is read;
// in every other folder each *.yaml and *.yml file is read, and each sub-folder
// by the same rules. What is not ours is passed over, and so is what Flux's
// source-controller would leave out: by default, or by a .sourceignore file.
//
// A read has two kinds of bad news, which never mix. What is wrong with single
// files is among the [api.Definitions], as faults with file and line, beside all
// that could be read. A path that is gone or that holds no definition at all is
// an error: an empty answer would mean that everything was removed on purpose.
//
// [Reader] reads trees of Git, straight from the object store and without a
// work tree, and remembers what did not change. [ReadFolder] reads a folder on
// disk by the same rules. Both see the repository through [Files], so neither
// kustomize nor a symbolic link gets to see anything outside of it.
package source
