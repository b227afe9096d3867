// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// ErrShallow is history that the mirror does not have; Deepen fetches some.
var ErrShallow = errors.New("the mirror holds no earlier commits")

// Parent is the first parent of the snapshot's commit: what the branch was before
// it, also where the commit merges another one in. It is nil for a commit without
// parents, and ErrShallow where the mirror's history ends.
func (s *Snapshot) Parent() (*Snapshot, error) {
	if s.commit == nil || len(s.commit.ParentHashes) == 0 {
		return nil, nil
	}
	parent := s.commit.ParentHashes[0]
	if !s.store.has(parent) {
		return nil, ErrShallow
	}
	return openSnapshot(s.store, parent)
}

// At is the branch at an earlier commit, on whichever line of its history; ErrShallow
// where the mirror does not have it.
func (s *Snapshot) At(commit plumbing.Hash) (*Snapshot, error) {
	if s.commit == nil || !s.store.has(commit) {
		return nil, ErrShallow
	}
	return openSnapshot(s.store, commit)
}

// Deepen fetches earlier commits of the branch, until the mirror has the given number
// of them below its head, and returns the head. Its cost grows with that number, not
// with the size of the repository: unchanged folders are not sent again. Use it for
// a question about the past, never on the hot path.
func (m *Mirror) Deepen(ctx context.Context, commits int) (*Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.fetch(ctx); err != nil {
		return nil, err
	}
	if m.snapshot == nil || m.store == nil {
		return &Snapshot{}, nil
	}
	err := m.converse(ctx, serviceUploadPack, func(c *conversation) error { return m.deepen(c, commits) })
	if err != nil {
		return nil, fmt.Errorf("fetch earlier commits: %w", err)
	}
	return m.snapshot, nil
}

func (m *Mirror) deepen(c *conversation, commits int) error {
	shallow, err := m.store.git.Shallow()
	if err != nil {
		return err
	}
	if len(shallow) == 0 {
		return nil // it has everything
	}
	if !c.refs.Capabilities.Supports(capability.Shallow) {
		return errors.New("the server does not know shallow clones")
	}
	head := m.snapshot.Hash()
	if c.head(m.cfg.Branch) != head {
		return nil // moved meanwhile: the caller looks again and finds what there is
	}
	req := c.uploadRequest(head)
	req.Depth = packp.DepthCommits(commits + 1)
	req.Shallows = shallow
	req.Haves = []plumbing.Hash{head}
	return m.receiveEarlier(c, req, shallow)
}

// receiveEarlier is receive for an answer that moves the shallow boundary.
func (m *Mirror) receiveEarlier(c *conversation, req *packp.UploadPackRequest, shallow []plumbing.Hash) error {
	if err := m.receive(c, req, m.store, maxIncremental); err != nil {
		// The boundary as it was fits what is there.
		return errors.Join(err, m.store.git.SetShallow(shallow))
	}
	return m.fixBoundary(shallow)
}

// fixBoundary makes the list of shallow commits fit what the mirror has: a commit is
// one as long as its parents are missing. The list in the answer names only the new
// ones, so that those at the end of other lines of history would be lost.
func (m *Mirror) fixBoundary(before []plumbing.Hash) error {
	listed, err := m.store.git.Shallow()
	if err != nil {
		return err
	}
	var boundary []plumbing.Hash
	for _, hash := range append(slices.Clone(before), listed...) {
		if slices.Contains(boundary, hash) || !m.store.has(hash) {
			continue
		}
		commit, err := object.GetCommit(m.store, hash)
		if err != nil {
			continue
		}
		for _, parent := range commit.ParentHashes {
			if !m.store.has(parent) {
				boundary = append(boundary, hash)
				break
			}
		}
	}
	return m.store.git.SetShallow(boundary)
}
