// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"context"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// A Lister lists branches or tags, all of them, as a [List] does.
type Lister interface {
	All(ctx context.Context) ([]provider.Ref, error)
}

// Refs is a provider of the branches of one repository, or of its tags. All forges
// have it in common: they differ only in how they list.
type Refs struct {
	list   Lister
	export func(all []provider.Ref, previous []api.Input) (provider.Result, error)
}

// NewBranches returns a provider that exports the branches of a list.
func NewBranches(cfg provider.Config, list Lister) (*Refs, error) {
	filter, err := provider.NewFilter(cfg.Object.Spec.Filter)
	if err != nil {
		return nil, err
	}
	return &Refs{list, func(all []provider.Ref, previous []api.Input) (provider.Result, error) {
		return provider.ExportBranches(cfg.Object, filter, all, previous)
	}}, nil
}

// NewTags returns a provider that exports the tags of a list.
func NewTags(cfg provider.Config, list Lister) (*Refs, error) {
	filter, err := provider.NewFilter(cfg.Object.Spec.Filter)
	if err != nil {
		return nil, err
	}
	return &Refs{list, func(all []provider.Ref, previous []api.Input) (provider.Result, error) {
		return provider.ExportTagRefs(cfg.Object, filter, all, previous)
	}}, nil
}

// Fetch lists branches by name, and tags in the order that provider.ExportTags has.
func (r *Refs) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	all, err := r.list.All(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	return r.export(all, previous)
}
