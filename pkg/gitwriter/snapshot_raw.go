// SPDX-License-Identifier: Apache-2.0

package gitwriter

import "github.com/go-git/go-git/v5/plumbing"

// CommitObject is the commit as Git stores it, byte for byte: what a signature is
// checked against. Nil when the branch does not exist.
func (s *Snapshot) CommitObject() ([]byte, error) {
	if s.commit == nil {
		return nil, nil
	}
	return s.store.read(plumbing.CommitObject, s.commit.Hash)
}
