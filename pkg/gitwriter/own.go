// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// Own is a family of branches that belong to this program alone: all whose names
// begin with one prefix and a slash. Other than the mirrored branch, which Update
// only ever moves forward, they may be rewritten and deleted.
//
// That the mirrored branch is not one of them is a matter of names, not of care: Own
// puts its prefix before every name that it is given, and there is no Own whose
// prefix the mirrored branch has. Each change names the commit that it replaces, so
// what somebody else pushed meanwhile is not lost here either.
type Own struct {
	m      *Mirror
	prefix string // with a slash at its end
}

// An OwnError is a name for branches of our own that would be, or contain, the
// mirrored branch, or that Git does not take.
type OwnError struct{ Name, Branch, Reason string }

func (e *OwnError) Error() string { return fmt.Sprintf("branches %s: %s", e.Name, e.Reason) }

// A MovedError is a branch of our own that somebody else moved at the same time.
type MovedError struct{ URL, Branch string }

func (e *MovedError) Error() string {
	return fmt.Sprintf("%s: %s was moved by somebody else at the same time", e.URL, e.Branch)
}

// Own returns the branches below a prefix of the mirrored branch's repository.
func (m *Mirror) Own(prefix string) (*Own, error) {
	o := &Own{m: m, prefix: prefix + "/"}
	branch := m.cfg.Branch
	// Names are compared as file systems do that know no case: on such a server
	// "Renderer/x" and "renderer/x" are one file.
	if strings.EqualFold(branch, prefix) || len(branch) >= len(o.prefix) && strings.EqualFold(branch[:len(o.prefix)], o.prefix) {
		return nil, &OwnError{Name: o.prefix + "*", Branch: branch, Reason: fmt.Sprintf("the branch %s is one of them", branch)}
	}
	if _, err := o.ref("x"); err != nil {
		return nil, err
	}
	return o, nil
}

// ref is the full name of a branch, always below the prefix.
func (o *Own) ref(name string) (plumbing.ReferenceName, error) {
	full := o.prefix + name
	ref := plumbing.NewBranchReferenceName(full)
	valid := name != "" && !strings.HasPrefix(o.prefix, "/") && !strings.HasPrefix(o.prefix, "-") && !strings.HasPrefix(full, "refs/")
	for part := range strings.SplitSeq(full, "/") {
		valid = valid && part != "" && part != "." && part != ".." && !strings.HasSuffix(part, ".lock")
	}
	if !valid || ref.Validate() != nil {
		return "", &OwnError{Name: full, Branch: o.m.cfg.Branch, Reason: "is not a name that Git accepts"}
	}
	return ref, nil
}

// Branch is the full name of a branch, as forges show it.
func (o *Own) Branch(name string) string { return o.prefix + name }

// List asks the server for all of these branches: their commits by name, without
// the prefix.
func (o *Own) List(ctx context.Context) (map[string]plumbing.Hash, error) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	if o.m.closed {
		return nil, ErrClosed
	}
	found := map[string]plumbing.Hash{}
	err := o.m.converse(ctx, serviceUploadPack, func(c *conversation) error {
		clear(found)
		prefix := plumbing.NewBranchReferenceName(o.prefix).String()
		for ref, hash := range c.refs.References {
			if name, ok := strings.CutPrefix(ref, prefix); ok {
				found[name] = hash
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Push makes a branch of the commits, on top of base, and returns its new head. The
// branch is at old before, which is zero when there is none; what it held is given
// up. Without anything to change against base nothing is pushed, and the head is
// base's.
func (o *Own) Push(ctx context.Context, name string, old plumbing.Hash, base *Snapshot, commits []Commit) (plumbing.Hash, error) {
	ref, err := o.ref(name)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	if o.m.closed {
		return plumbing.ZeroHash, ErrClosed
	}
	p, err := o.m.propose(ctx, base, commits)
	if err != nil {
		return plumbing.ZeroHash, o.repair(ctx, err)
	}
	if len(p.commits) == 0 {
		return base.Hash(), nil
	}
	pack, err := p.objects.pack()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return p.head, o.move(ctx, &packp.Command{Name: ref, Old: old, New: p.head}, pack)
}

// repair makes the mirror anew when an object that it should have is missing; the
// next attempt finds it whole.
func (o *Own) repair(ctx context.Context, err error) error {
	if !isMissingObject(err) {
		return err
	}
	if _, again := o.m.refetch(ctx); again != nil {
		return fmt.Errorf("%w; fetching anew: %w", err, again)
	}
	return err
}

// Delete deletes a branch that is at old.
func (o *Own) Delete(ctx context.Context, name string, old plumbing.Hash) error {
	ref, err := o.ref(name)
	if err != nil {
		return err
	}
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	if o.m.closed {
		return ErrClosed
	}
	return o.move(ctx, &packp.Command{Name: ref, Old: old, New: plumbing.ZeroHash}, nil)
}

// move asks for the reference to move, and reads back whether it did.
func (o *Own) move(ctx context.Context, cmd *packp.Command, pack []byte) error {
	var v verdict
	pushErr := o.m.converse(ctx, serviceReceivePack, func(c *conversation) error {
		switch {
		case c.listed && c.refs.References[cmd.Name.String()] != cmd.Old:
			v = verdict{moved: true}
			return nil
		case cmd.Action() == packp.Delete && !c.refs.Capabilities.Supports(capability.DeleteRefs):
			v = verdict{text: "the server does not let branches be deleted"}
			return nil
		}
		var err error
		v, err = c.send(cmd, pack)
		return err
	})
	var head plumbing.Hash
	readErr := o.m.converse(ctx, serviceUploadPack, func(c *conversation) error {
		head = c.refs.References[cmd.Name.String()]
		return nil
	})
	switch {
	case readErr != nil && pushErr != nil:
		return fmt.Errorf("%w; what became of the push is not known: %w", pushErr, readErr)
	case readErr != nil:
		return fmt.Errorf("reading %s back: %w", cmd.Name.Short(), readErr)
	case head == cmd.New:
		return nil
	case head != cmd.Old:
		return &MovedError{URL: o.m.remote.display, Branch: cmd.Name.Short()}
	case pushErr != nil:
		return pushErr
	case v.accepted:
		v.text = "the server reported success, but the branch has not moved"
	}
	return &RefusedError{URL: o.m.remote.display, Branch: cmd.Name.Short(), Text: v.text}
}
