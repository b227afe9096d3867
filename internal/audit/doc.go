// SPDX-License-Identifier: Apache-2.0

// Package audit reads the trail back that renderer leaves in Git, and proves it.
//
// Every commit of renderer says in its trailers what it did and from which
// revision of the definitions, and every generated folder holds an inputs.lock
// with the input sets that it was rendered from. So Git alone answers two
// questions, without any provider, server or database:
//
//   - [Repository.History]: when did an input set come, change and go, by what
//     trigger, and who else touched the folder? The answer comes from the locks
//     of a commit and its parent, which are complete; a message's trailers are cut.
//   - [Repository.Verify]: does the commit hold what follows from the definitions
//     and the recorded inputs? Rendering is pure, so each commit is rendered again
//     and must give the same bytes. What does not is altered, and what cannot be
//     rendered again is named with the reason: neither counts as proved.
//
// Both look only at commits in which the tree of the target path differs from
// the parents', and only at the folders in it that differ: the cost follows the
// commits, not the size of the repository.
package audit
