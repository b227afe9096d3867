// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"context"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
)

// HistoryBranch is the branch in the repositories that FetchHistory makes.
const HistoryBranch = "mirror"

// FetchHistory brings a folder up to the whole history of the branch, and returns
// the bare repository in it, for reading; it is empty when there is no such branch.
// What an earlier call brought is not transferred again. The folder must not be one
// that is written through: those are shallow.
func FetchHistory(ctx context.Context, cfg Config) (repository string, err error) {
	m, err := Open(cfg)
	if err != nil {
		return "", err
	}
	defer func() {
		if closing := m.Close(); err == nil {
			err = closing
		}
	}()
	m.mu.Lock()
	defer m.mu.Unlock()
	err = m.converse(ctx, serviceUploadPack, func(c *conversation) error {
		head := c.head(m.cfg.Branch)
		switch {
		case head.IsZero():
			return nil
		case m.snapshot != nil && m.snapshot.Hash() == head:
			repository = m.store.dir
			return nil
		}
		err := m.fetchWhole(c, head)
		if err == nil {
			repository = m.store.dir
		}
		return err
	})
	return repository, err
}

// fetchWhole gets all that the head has beyond what is there. Where nothing is, that
// is done in a new generation, so that an interrupted transfer leaves nothing behind.
func (m *Mirror) fetchWhole(c *conversation, head plumbing.Hash) (err error) {
	req := c.uploadRequest(head)
	if m.snapshot != nil {
		req.Haves = []plumbing.Hash{m.snapshot.Hash()}
		if err := m.receive(c, req, m.store, 0); err != nil {
			return err
		}
		return m.store.setHead(head)
	}
	next := m.marker
	next.Generation++
	dir := m.generationDir(next.Generation)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	s, err := createStore(dir)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.close()
			os.RemoveAll(dir)
		}
	}()
	if err := m.receive(c, req, s, 0); err != nil {
		return err
	}
	snapshot, err := openSnapshot(s, head)
	if err != nil {
		return err
	}
	if err := s.setHead(head); err != nil {
		return err
	}
	return m.switchTo(next, s, snapshot)
}
