// SPDX-License-Identifier: Apache-2.0

package codecommit

import (
	"context"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// A Branches provider lists the branches of one repository.
type Branches struct {
	object *api.ResourceSetInputProvider
	filter *provider.Filter
	list   *listing.List[gitRef]
}

// NewBranches returns the provider of a definition of type AWSCodeCommitBranch.
func NewBranches(cfg provider.Config) (*Branches, error) {
	filter, err := provider.NewFilter(cfg.Object.Spec.Filter)
	if err != nil {
		return nil, err
	}
	list, err := newRefs(cfg)
	if err != nil {
		return nil, err
	}
	return &Branches{object: cfg.Object, filter: filter, list: list}, nil
}

// Fetch lists the branches, by name.
func (b *Branches) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	all, err := refsOf(ctx, b.list, false)
	if err != nil {
		return provider.Result{}, err
	}
	return provider.ExportBranches(b.object, b.filter, all, previous)
}

// A Tags provider lists the tags of one repository.
type Tags struct {
	object *api.ResourceSetInputProvider
	list   *listing.List[gitRef]
}

// NewTags returns the provider of a definition of type AWSCodeCommitTag.
func NewTags(cfg provider.Config) (*Tags, error) {
	list, err := newRefs(cfg)
	if err != nil {
		return nil, err
	}
	return &Tags{object: cfg.Object, list: list}, nil
}

// Fetch lists the tags, in the order that provider.ExportTags has.
func (t *Tags) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	all, err := refsOf(ctx, t.list, true)
	if err != nil {
		return provider.Result{}, err
	}
	return provider.ExportTagRefs(t.object, all, previous)
}

// refsOf returns the tags of a list, or the branches.
func refsOf(ctx context.Context, list *listing.List[gitRef], tags bool) ([]provider.Ref, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	all, err := list.All(ctx)
	if err != nil {
		return nil, err
	}
	var refs []provider.Ref
	for _, ref := range all {
		if ref.tag == tags {
			refs = append(refs, ref.Ref)
		}
	}
	return refs, nil
}
