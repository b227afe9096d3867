// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

const (
	// maxIncremental is the number of objects of an incremental fetch from which a new
	// mirror is cheaper, and the way out where a rewritten branch would bring its whole
	// history along.
	maxIncremental = 50_000
	// maxAncestry is how many commits are looked at to tell whether a head descends from another.
	maxAncestry = 20_000
)

var (
	errTooMuch   = errors.New("too much for an incremental fetch")
	errRewritten = errors.New("the branch's history was rewritten")
)

// Fetch brings the mirror up to the remote's head and returns it. When the head has not
// moved, only the list of branches is transferred. A repository or branch that does not
// exist yet, as long as the server can be asked for it, gives a snapshot without a commit.
func (m *Mirror) Fetch(ctx context.Context) (*Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fetch(ctx)
}

func (m *Mirror) fetch(ctx context.Context) (*Snapshot, error) {
	if m.closed {
		return nil, ErrClosed
	}
	head, err := m.sync(ctx, nil)
	if err != nil {
		return nil, err
	}
	if head.IsZero() {
		m.confirmed = time.Time{}
		return &Snapshot{}, nil
	}
	m.confirmed = time.Now()
	m.tidy(ctx)
	return m.snapshot, nil
}

// tidy keeps the mirror small. It works as it is: it would only take more room than it should.
func (m *Mirror) tidy(ctx context.Context) {
	if err := m.maintain(ctx); err != nil {
		m.cfg.Logger.WarnContext(ctx, "mirror could not be made smaller", "directory", m.cfg.Directory, "error", err)
	}
}

// sync asks for the branch's head, which is zero if there is no such branch, and brings
// the mirror to it, unless known says that this head needs no fetching.
func (m *Mirror) sync(ctx context.Context, known func(head plumbing.Hash) bool) (plumbing.Hash, error) {
	var head plumbing.Hash
	var doubt error
	err := m.converse(ctx, serviceUploadPack, func(c *conversation) error {
		head = c.head(m.cfg.Branch)
		switch {
		case known != nil && known(head), head.IsZero():
			return nil
		case m.snapshot == nil:
			return m.fetchAnew(c, head)
		case m.isDamaged():
			m.cfg.Logger.WarnContext(ctx, "mirror cannot be read, making a new one", "directory", m.cfg.Directory)
			m.distrusted = head
			return m.fetchAnew(c, head)
		case m.snapshot.Hash() == head:
			return nil
		}
		err := m.fetchOnto(c, head)
		if err != nil && context.Cause(c.ctx) == nil {
			doubt = err
			return nil
		}
		return err
	})
	if err != nil || doubt == nil {
		return head, err
	}
	m.cfg.Logger.WarnContext(ctx, "incremental fetch did not work out, making a new mirror",
		"url", m.remote.display, "branch", m.cfg.Branch, "reason", doubt)
	return m.refetch(ctx)
}

// Damaged reports that something could not be read from the mirror that belongs to the
// snapshot in use. The next Fetch makes a new mirror. Where that does not help either,
// the fault is not the mirror's, and Damaged is false until the branch moves.
func (m *Mirror) Damaged() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.isDamaged()
}

func (m *Mirror) isDamaged() bool {
	return m.snapshot != nil && m.store != nil && m.store.isDamaged() && m.distrusted != m.snapshot.Hash()
}

// refetch makes a new mirror, in a conversation of its own.
func (m *Mirror) refetch(ctx context.Context) (head plumbing.Hash, err error) {
	err = m.converse(ctx, serviceUploadPack, func(c *conversation) error {
		if head = c.head(m.cfg.Branch); head.IsZero() {
			return nil
		}
		return m.fetchAnew(c, head)
	})
	return head, err
}

// fetchOnto gets what the head has beyond what the mirror has.
func (m *Mirror) fetchOnto(c *conversation, head plumbing.Hash) error {
	old := m.snapshot
	shallow, err := m.store.git.Shallow()
	if err != nil {
		return err
	}
	req := c.uploadRequest(head)
	if len(shallow) > 0 && !c.refs.Capabilities.Supports(capability.Shallow) {
		return errors.New("the server does not know shallow clones")
	}
	req.Shallows = shallow
	req.Haves = []plumbing.Hash{old.Hash()}
	if err := m.receive(c, req, m.store, maxIncremental); err != nil {
		return err
	}
	snapshot, err := openSnapshot(m.store, head)
	if err != nil {
		return err
	}
	descends, err := isAncestor(m.store, old.Hash(), head)
	if err != nil {
		return err
	}
	if !descends {
		return errRewritten
	}
	if err := verifyChanged(m.store, old.commit.TreeHash, snapshot.commit.TreeHash); err != nil {
		return err
	}
	if err := m.store.setHead(head); err != nil {
		return err
	}
	m.snapshot = snapshot
	return nil
}

// fetchAnew gets the head alone into a new generation of the mirror and switches to it.
// Until then the generation in use stays as it is.
func (m *Mirror) fetchAnew(c *conversation, head plumbing.Hash) (err error) {
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
	req := c.uploadRequest(head)
	if c.refs.Capabilities.Supports(capability.Shallow) {
		req.Depth = packp.DepthCommits(1)
	}
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

func (m *Mirror) switchTo(next marker, s *store, snapshot *Snapshot) error {
	before := m.marker
	m.marker = next
	if err := m.writeMarker(); err != nil {
		m.marker = before
		return err
	}
	if m.previous != nil {
		m.previous.close()
	}
	m.previous, m.store, m.snapshot = m.store, s, snapshot
	return m.removeOldGenerations()
}

// receive sends the request and stores the packfile of the answer. A limit above zero is
// the number of objects from which the answer is not wanted.
func (m *Mirror) receive(c *conversation, req *packp.UploadPackRequest, s *store, limit uint32) error {
	answer, err := c.exchange(func(w io.Writer) error { return encodeUploadRequest(w, req) })
	if err != nil {
		return err
	}
	defer answer.Close()
	response := packp.NewUploadPackResponse(req)
	if err := response.Decode(answer); err != nil {
		return c.unexpected(err)
	}
	defer response.Close()
	if len(response.Shallows) > 0 {
		if err := s.git.SetShallow(response.Shallows); err != nil {
			return err
		}
	}
	pack := bufio.NewReaderSize(m.capped(packReader(req, response)), 64<<10)
	header, err := pack.Peek(12)
	if err != nil {
		return c.unexpected(err)
	}
	n := binary.BigEndian.Uint32(header[8:])
	switch {
	case limit > 0 && n > limit:
		return fmt.Errorf("%w: %d objects", errTooMuch, n)
	case n >= s.large:
		err = s.addLargePack(c.ctx, pack)
	default:
		err = s.addPack(pack)
	}
	if err != nil {
		return c.unexpected(err)
	}
	return nil
}

func packReader(req *packp.UploadPackRequest, response *packp.UploadPackResponse) io.Reader {
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, response)
	case req.Capabilities.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, response)
	}
	return response
}

// encodeUploadRequest writes wants, haves and "done" in one go: there is one thing that
// the mirror has, so there is nothing to negotiate.
func encodeUploadRequest(w io.Writer, req *packp.UploadPackRequest) error {
	if err := req.UploadRequest.Encode(w); err != nil {
		return err
	}
	if err := req.UploadHaves.Encode(w, false); err != nil {
		return err
	}
	_, err := io.WriteString(w, "0009done\n")
	return err
}

// isAncestor tells whether old is reachable from head through commits that the mirror has.
func isAncestor(s *store, old, head plumbing.Hash) (bool, error) {
	queue := []plumbing.Hash{head}
	seen := map[plumbing.Hash]bool{head: true}
	for len(queue) > 0 && len(seen) < maxAncestry {
		hash := queue[0]
		queue = queue[1:]
		if hash == old {
			return true, nil
		}
		if !s.has(hash) {
			continue // beyond the shallow boundary
		}
		commit, err := object.GetCommit(s, hash)
		if err != nil {
			return false, err
		}
		for _, parent := range commit.ParentHashes {
			if !seen[parent] {
				seen[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	return false, nil
}

// verifyChanged checks that the mirror has everything of tree now that differs from
// tree before, which it is known to have.
func verifyChanged(s *store, before, now plumbing.Hash) error {
	if before == now {
		return nil
	}
	old, err := readEntries(s, before)
	if err != nil {
		return err
	}
	entries, err := readEntries(s, now)
	if err != nil {
		return err
	}
	for _, e := range entries {
		was := plumbing.ZeroHash
		if i := indexEntry(old, e.name); i >= 0 {
			was = old[i].hash
			if was == e.hash {
				continue
			}
			if !old[i].isDir() {
				was = plumbing.ZeroHash
			}
		}
		switch e.kind() {
		case KindDirectory:
			err = verifyChanged(s, was, e.hash)
		case KindFile, KindSymlink:
			err = s.HasEncodedObject(e.hash)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return nil
}

func readEntries(s *store, tree plumbing.Hash) ([]treeEntry, error) {
	if tree.IsZero() {
		return nil, nil
	}
	data, err := s.read(plumbing.TreeObject, tree)
	if err != nil {
		return nil, err
	}
	return decodeTree(data)
}
