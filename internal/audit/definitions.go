// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source"
)

// definitions are the objects of one source revision, or why they cannot be read.
type definitions struct {
	*api.Definitions
	configMaps map[string]*api.ConfigMap // by "namespace/name"
	err        error
}

// find is a ResourceSet by "namespace/name", or nil.
func (d *definitions) find(name string) *api.ResourceSet {
	if d.Definitions == nil {
		return nil
	}
	for _, rs := range d.ResourceSets {
		if rs.NamespacedName() == name {
			return rs
		}
	}
	return nil
}

// definitionsAt reads the definitions at a commit. That commit must be in the
// history of the source branch: otherwise anybody could prove what they like by
// definitions of their own.
func (v *verifier) definitionsAt(ctx context.Context, revision plumbing.Hash) (*definitions, error) {
	if known := v.definitions[revision]; known != nil {
		return known, nil
	}
	defs := &definitions{}
	v.definitions[revision] = defs
	if revision.IsZero() {
		defs.err = errors.New("the trailer Source-Revision names no commit")
		return defs, nil
	}
	c, err := v.Source.commit(revision)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		defs.err = fmt.Errorf("the source revision %s is not in %s", revision, v.Source.name)
		return defs, nil
	}
	if err != nil {
		return nil, err
	}
	known, err := v.Source.contains(revision)
	if err != nil {
		return nil, err
	}
	if !known {
		defs.err = fmt.Errorf("the source revision %s is not in the history of the source branch", revision)
		return defs, nil
	}
	root, err := v.Source.rootOf(c)
	if err != nil {
		return nil, err
	}
	defs.Definitions, err = v.reader.Read(ctx, root, source.Options{Path: v.SourcePath, Exclude: v.Exclude})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if defs.Definitions != nil {
		defs.configMaps = defs.ConfigMapsByName()
	}
	if err != nil {
		defs.err = fmt.Errorf("the definitions at %s cannot be read: %w", revision, err)
	}
	return defs, nil
}

// onOwnLine reports whether a source revision can have been the head of the branch
// that the commit was made for: it is on the line of first parents of the branch, or of
// the commit. The latter keeps its word when somebody merges the branch into another
// one, which then becomes the branch. Where the definitions have a history of their
// own, nothing tells such a merge from a side branch, and any revision counts.
func (e *examination) onOwnLine(revision plumbing.Hash) (bool, error) {
	if e.Source != e.Repository {
		return true, nil
	}
	graph, err := e.lines()
	if err != nil {
		return false, err
	}
	head, err := e.Repository.commit(e.head)
	if err != nil {
		return false, err
	}
	for _, c := range []*commit{e.commit, head} {
		for graph.Generation(c.hash) > graph.Generation(revision) && len(c.parents) > 0 {
			if c, err = e.Repository.commit(c.parents[0]); err != nil {
				return false, err
			}
		}
		if c.hash == revision {
			return true, nil
		}
	}
	return false, nil
}
