// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bytes"
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// A Commit is what should change, and who says so. It is made only if it changes
// something.
type Commit struct {
	Message   string // as given; a line feed is added at the end if there is none
	Author    Signature
	Committer Signature         // the author if empty
	Write     map[string][]byte // content by slash path
	Delete    []string          // slash paths of files; removed before Write is applied
	Empty     bool              // made even if it changes nothing: the message is what matters
}

// A Signature names a person or program in a commit.
type Signature struct {
	Name, Email string
	When        time.Time // Config.Now if zero
}

// A Signer signs commits.
type Signer interface {
	// Sign returns an armoured signature (OpenPGP or SSH) of a commit object.
	Sign(ctx context.Context, commit []byte) ([]byte, error)
}

// A proposal is a chain of commits that exists only in memory.
type proposal struct {
	base    *Snapshot
	head    plumbing.Hash
	commits []plumbing.Hash // oldest first
	objects newObjects
}

// propose builds the commits on base. Those that change nothing are left out.
func (m *Mirror) propose(ctx context.Context, base *Snapshot, specs []Commit) (*proposal, error) {
	p := &proposal{base: base, head: base.Hash()}
	tree := plumbing.ZeroHash
	if base.commit != nil {
		tree = base.commit.TreeHash
	}
	for i := range specs {
		changed, err := p.changedTree(tree, &specs[i])
		if err != nil {
			return nil, err
		}
		if changed == tree && !specs[i].Empty {
			continue
		}
		data, err := m.encodeCommit(ctx, &specs[i], changed, p.head)
		if err != nil {
			return nil, err
		}
		tree = changed
		p.head = plumbing.ComputeHash(plumbing.CommitObject, data)
		p.objects.add(plumbing.CommitObject, p.head, data)
		p.commits = append(p.commits, p.head)
	}
	return p, nil
}

// changedTree applies one commit's changes to a tree and returns the new root.
func (p *proposal) changedTree(root plumbing.Hash, spec *Commit) (plumbing.Hash, error) {
	editor, err := newTreeEditor(root, func(hash plumbing.Hash) ([]byte, error) {
		if data, ok := p.objects.get(hash); ok {
			return data, nil
		}
		return p.base.store.read(plumbing.TreeObject, hash)
	})
	if err != nil {
		return plumbing.ZeroHash, err
	}
	for _, path := range spec.Delete {
		if err := editor.remove(path); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	blobs, err := p.hashBlobs(editor, spec.Write)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if !editor.root.isChanged() {
		return root, nil
	}
	var trees newObjects
	changed := editor.write(&trees)
	if changed == root {
		return root, nil
	}
	for _, list := range [][]newObject{trees.list, blobs.list} {
		for _, obj := range list {
			p.addMissing(obj)
		}
	}
	return changed, nil
}

// hashBlobs puts the files into the tree and returns their contents as objects.
func (p *proposal) hashBlobs(editor *treeEditor, files map[string][]byte) (newObjects, error) {
	paths := make([]string, 0, len(files))
	for path := range files {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	var blobs newObjects
	for _, path := range paths {
		hash := plumbing.ComputeHash(plumbing.BlobObject, files[path])
		if err := editor.put(path, hash); err != nil {
			return blobs, err
		}
		blobs.add(plumbing.BlobObject, hash, files[path])
	}
	return blobs, nil
}

// addMissing adds an object unless the mirror has it: all that the mirror has belongs to
// the history of the branch, so the server has it as well.
func (p *proposal) addMissing(obj newObject) {
	if p.base.commit == nil || !p.base.store.has(obj.hash) {
		p.objects.add(obj.typ, obj.hash, obj.data)
	}
}

// isChanged looks through what is loaded, before anything is encoded.
func (f *folder) isChanged() bool {
	if f.changed {
		return true
	}
	for _, sub := range f.loaded {
		if sub.isChanged() {
			return true
		}
	}
	return false
}

func (m *Mirror) encodeCommit(ctx context.Context, spec *Commit, tree, parent plumbing.Hash) ([]byte, error) {
	now := m.cfg.Now()
	author, committer := spec.Author, spec.Committer
	if committer.Name == "" && committer.Email == "" {
		committer = author
	}
	var head bytes.Buffer
	fmt.Fprintf(&head, "tree %s\n", tree)
	if !parent.IsZero() {
		fmt.Fprintf(&head, "parent %s\n", parent)
	}
	fmt.Fprintf(&head, "author %s\ncommitter %s\n", author.line(now), committer.line(now))
	message := strings.ReplaceAll(spec.Message, "\x00", "")
	if !strings.HasSuffix(message, "\n") {
		message += "\n"
	}
	if m.cfg.Signer == nil {
		return []byte(head.String() + "\n" + message), nil
	}
	signature, err := m.cfg.Signer.Sign(ctx, []byte(head.String()+"\n"+message))
	if err != nil {
		return nil, fmt.Errorf("sign commit: %w", err)
	}
	armour := strings.ReplaceAll(strings.TrimRight(string(signature), "\n"), "\n", "\n ")
	return []byte(head.String() + "gpgsig " + armour + "\n\n" + message), nil
}

// line is the form that commits use. What would end a field early is left out of names.
func (s Signature) line(now time.Time) string {
	if s.When.IsZero() {
		s.When = now
	}
	clean := func(text string) string {
		return strings.TrimSpace(strings.Map(func(r rune) rune {
			if r < ' ' || r == '<' || r == '>' || r == 0x7f {
				return -1
			}
			return r
		}, text))
	}
	return fmt.Sprintf("%s <%s> %d %s", clean(s.Name), clean(s.Email), s.When.Unix(), s.When.Format("-0700"))
}
