// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// maxReadObjects is how many objects one commit may have that is read once.
const maxReadObjects = 500_000

// A Remote is a repository that is looked at, and of which nothing is kept: what
// branches and tags it has, and what is in one commit.
type Remote struct{ m *Mirror }

// NewRemote checks the configuration. It does not talk to the server. Branch and
// Directory of the configuration do not matter.
func NewRemote(cfg Config) (*Remote, error) {
	cfg.Branch, cfg.Directory = "", "unused"
	m, err := newMirror(cfg)
	if err != nil {
		return nil, err
	}
	return &Remote{m}, nil
}

// Refs are the branches and tags of a repository, by their short names.
type Refs struct {
	// Head is the commit of the default branch, or zero in an empty repository.
	Head     plumbing.Hash
	Branches map[string]plumbing.Hash
	// Tags point to commits: an annotated tag to the one that it is about.
	Tags map[string]plumbing.Hash
}

// Refs asks the server for its branches and tags.
func (r *Remote) Refs(ctx context.Context) (*Refs, error) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	var refs *Refs
	err := r.m.converse(ctx, serviceUploadPack, func(c *conversation) error {
		refs = refsOf(c.refs)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return refs, nil
}

// shortestHash is how many digits of a hash name a commit at least, as in Git.
const shortestHash = 7

// Resolve finds the commit that a revision names: a branch, a tag, a whole reference
// such as refs/pull/12/head, or a commit. The beginning of a commit's hash is enough
// where a reference points to it; a whole hash is taken as it is, and whether the server
// hands that commit out is for Read to see. The answer is zero when there is none.
func (r *Remote) Resolve(ctx context.Context, revision string) (plumbing.Hash, error) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	var commit plumbing.Hash
	err := r.m.converse(ctx, serviceUploadPack, func(c *conversation) (err error) {
		commit, err = resolve(c.refs, revision)
		return err
	})
	return commit, err
}

func resolve(listed *packp.AdvRefs, revision string) (plumbing.Hash, error) {
	for _, name := range []string{"refs/heads/" + revision, "refs/tags/" + revision, revision, "refs/" + revision} {
		if peeled, ok := listed.Peeled[name]; ok {
			return peeled, nil
		}
		if hash, ok := listed.References[name]; ok {
			return hash, nil
		}
	}
	if revision == "HEAD" && listed.Head != nil {
		return *listed.Head, nil
	}
	revision = strings.ToLower(revision)
	if strings.Trim(revision, "0123456789abcdef") != "" || len(revision) < shortestHash {
		return plumbing.ZeroHash, nil
	}
	if plumbing.IsHash(revision) {
		return plumbing.NewHash(revision), nil
	}
	var found plumbing.Hash
	for name, hash := range listed.References {
		if peeled, ok := listed.Peeled[name]; ok {
			hash = peeled
		}
		if !strings.HasPrefix(hash.String(), revision) || hash == found {
			continue
		}
		if !found.IsZero() {
			return plumbing.ZeroHash, &AmbiguousError{Revision: revision}
		}
		found = hash
	}
	return found, nil
}

// An AmbiguousError is the beginning of more than one commit's hash.
type AmbiguousError struct{ Revision string }

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("revision %s: more than one commit begins like that", e.Revision)
}

// Suggestion says what to do about it.
func (e *AmbiguousError) Suggestion() string { return "give more digits" }

func refsOf(listed *packp.AdvRefs) *Refs {
	refs := &Refs{Branches: map[string]plumbing.Hash{}, Tags: map[string]plumbing.Hash{}}
	if listed.Head != nil {
		refs.Head = *listed.Head
	}
	for name, hash := range listed.References {
		if branch, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			refs.Branches[branch] = hash
		}
		if tag, ok := strings.CutPrefix(name, "refs/tags/"); ok {
			if peeled, ok := listed.Peeled[name]; ok {
				hash = peeled
			}
			refs.Tags[tag] = hash
		}
	}
	return refs
}

// errPackTooLarge is a commit that is more than Read was told to take.
var errPackTooLarge = errors.New("more than the limit")

// A TooLargeError is a commit with more in it than what is read.
type TooLargeError struct {
	URL   string
	Limit int64 // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: the commit has more than %d MiB, or %d objects", e.URL, e.Limit>>20, maxReadObjects)
}

// Read gets one commit, without its history, into an empty folder, and returns what
// is in it. The folder must outlive the snapshot, and done be called before it is removed.
func (r *Remote) Read(ctx context.Context, commit plumbing.Hash, dir string, limit int64) (s *Snapshot, done func() error, err error) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	objects, err := createStore(dir)
	if err != nil {
		return nil, nil, err
	}
	r.m.maxPack = limit
	err = r.m.converse(ctx, serviceUploadPack, func(c *conversation) error {
		req := c.uploadRequest(commit)
		if c.refs.Capabilities.Supports(capability.Shallow) {
			req.Depth = packp.DepthCommits(1)
		}
		return r.m.receive(c, req, objects, maxReadObjects)
	})
	if errors.Is(err, errPackTooLarge) || errors.Is(err, errTooMuch) {
		err = &TooLargeError{URL: r.m.remote.display, Limit: limit}
	}
	if err == nil {
		s, err = openSnapshot(objects, commit)
	}
	if err != nil {
		return nil, nil, errors.Join(err, objects.close())
	}
	return s, objects.close, nil
}

// capped reads a packfile up to the limit, beyond which it is an error.
func (m *Mirror) capped(pack io.Reader) io.Reader {
	if m.maxPack <= 0 {
		return pack
	}
	return &cappedReader{pack, m.maxPack}
}

type cappedReader struct {
	io.Reader
	left int64
}

func (c *cappedReader) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errPackTooLarge
	}
	n, err := c.Reader.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}
