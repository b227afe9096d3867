// SPDX-License-Identifier: Apache-2.0

package codecommit

import (
	"context"

	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
)

// NewBranches returns the provider of a definition of type AWSCodeCommitBranch.
func NewBranches(cfg provider.Config) (*listing.Refs, error) {
	list, err := newRefs(cfg)
	if err != nil {
		return nil, err
	}
	return listing.NewBranches(cfg, refs{list, false})
}

// NewTags returns the provider of a definition of type AWSCodeCommitTag.
func NewTags(cfg provider.Config) (*listing.Refs, error) {
	list, err := newRefs(cfg)
	if err != nil {
		return nil, err
	}
	return listing.NewTags(cfg, refs{list, true})
}

// refs are the tags of a list, or its branches.
type refs struct {
	list *listing.List[gitRef]
	tags bool
}

func (r refs) All(ctx context.Context) ([]provider.Ref, error) {
	all, err := r.list.All(ctx)
	if err != nil {
		return nil, err
	}
	var found []provider.Ref
	for _, ref := range all {
		if ref.tag == r.tags {
			found = append(found, ref.Ref)
		}
	}
	return found, nil
}
