// SPDX-License-Identifier: Apache-2.0

// Package gitwriter turns a set of files into a pushed commit, and knows nothing
// of what the files mean.
//
// A [Mirror] is a bare, shallow copy of one branch of one remote repository, kept
// in a folder that may be lost at any time. [Mirror.Fetch] brings it up to the
// remote's head and returns a [Snapshot], from which files are read by path: there
// is no work tree, so nothing costs time in proportion to the repository.
//
// [Mirror.Update] is the way to write. It fetches, asks a callback for the commits
// that should stand on the head it found, builds their blobs and trees in memory
// (only the folders that change are loaded), sends exactly the objects that are new,
// and asks the server to move the branch from the head it built on, or not at all.
// It never forces. Whether that worked is then read back from the server:
//
//   - the branch is at our commit, or past it: landed;
//   - the branch is somewhere else: another writer was faster. What it wrote is
//     fetched, the callback is asked again on top of it, and so on within limits;
//   - the branch has not moved: the server refused, and [RefusedError] says why.
//
// A file that is the same needs no writing, and commits that change nothing are
// left out, so an Update without changes touches nothing: whether there is a change
// is a comparison of tree hashes, never of times or states.
//
// Everything that a repository holds is treated as a stranger's data. Symbolic links
// and submodules are shown as what they are, and never followed.
package gitwriter
