// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// A commit is what the trail needs to know of one.
type commit struct {
	hash, tree        plumbing.Hash
	parents           []plumbing.Hash // none at the boundary of a shallow clone
	cut               bool            // at that boundary: what it changed is unknown
	author, committer Person
	when              time.Time // of committing
	message           string
	signature         string // armoured, as in the commit
}

// A Person is an author or committer.
type Person struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

func (p Person) String() string { return p.Name + " <" + p.Email + ">" }

// by says who made a commit; the committer only where it is somebody else.
func (c *commit) by() string {
	if c.committer == c.author || c.committer == (Person{}) {
		return c.author.String()
	}
	return c.author.String() + ", committed by " + c.committer.String()
}

func (c *commit) subject() string {
	line, _, _ := strings.Cut(strings.TrimLeft(c.message, "\n"), "\n")
	return line
}

// commit reads one commit. It is plumbing.ErrObjectNotFound when there is none.
func (r *Repository) commit(hash plumbing.Hash) (*commit, error) {
	if c := r.commits[hash]; c != nil {
		return c, nil
	}
	data, err := r.read(plumbing.CommitObject, hash)
	if err != nil {
		return nil, err
	}
	obj := &plumbing.MemoryObject{}
	obj.SetType(plumbing.CommitObject)
	if _, err := obj.Write(data); err != nil {
		return nil, err
	}
	decoded := &object.Commit{}
	if err := decoded.Decode(obj); err != nil {
		return nil, fmt.Errorf("%s: commit %s: %w", r.name, hash, err)
	}
	c := &commit{
		hash: hash, tree: decoded.TreeHash, parents: decoded.ParentHashes,
		author:    Person{decoded.Author.Name, decoded.Author.Email},
		committer: Person{decoded.Committer.Name, decoded.Committer.Email},
		when:      decoded.Committer.When, message: decoded.Message, signature: decoded.PGPSignature,
	}
	if r.shallow[hash] {
		c.parents, c.cut = nil, true
	}
	r.commits[hash] = c
	return c, nil
}

// A queue gives commits in the order of their time, newest first.
type queue []*commit

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return cmp.Or(q[j].when.Compare(q[i].when), strings.Compare(q[i].hash.String(), q[j].hash.String())) < 0
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(c any)   { *q = append(*q, c.(*commit)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}

// walk is every commit of the branch, newest first. A commit whose parent is not
// in the repository is where the known history begins.
func (r *Repository) walk() ([]*commit, error) {
	if r.all != nil {
		return r.all, nil
	}
	head, err := r.commit(r.head)
	if err != nil {
		return nil, err
	}
	seen := map[plumbing.Hash]bool{head.hash: true}
	pending := &queue{head}
	for pending.Len() > 0 {
		c := heap.Pop(pending).(*commit)
		r.all = append(r.all, c)
		for _, hash := range c.parents {
			if seen[hash] {
				continue
			}
			seen[hash] = true
			parent, err := r.commit(hash)
			if errors.Is(err, plumbing.ErrObjectNotFound) {
				c.parents, c.cut = nil, true
				break
			}
			if err != nil {
				return nil, err
			}
			heap.Push(pending, parent)
		}
	}
	return r.all, nil
}

// contains reports whether a commit is in the branch's history.
func (r *Repository) contains(hash plumbing.Hash) (bool, error) {
	all, err := r.walk()
	if err != nil {
		return false, err
	}
	if r.inBranch == nil {
		r.inBranch = make(map[plumbing.Hash]bool, len(all))
		for _, c := range all {
			r.inBranch[c.hash] = true
		}
	}
	return r.inBranch[hash], nil
}

// parent is the commit that a commit of ours stands on: nil for a first one.
func (r *Repository) parent(c *commit) (*commit, error) {
	if len(c.parents) == 0 {
		return nil, nil
	}
	return r.commit(c.parents[0])
}
