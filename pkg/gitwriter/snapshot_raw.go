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

// Snapshot is the branch as the mirror has it, without asking the server: after an
// Update that landed, what it pushed, or something newer. Nil while there is none.
func (m *Mirror) Snapshot() *Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snapshot
}
