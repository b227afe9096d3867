// SPDX-License-Identifier: Apache-2.0

package bitbucket

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
	list   *listing.List[provider.Ref]
}

// NewBranches returns the provider of a definition of type BitbucketBranch.
func NewBranches(cfg provider.Config) (*Branches, error) {
	repo, err := parseURL(cfg.Object.Spec.URL)
	if err != nil {
		return nil, err
	}
	return newBranches(cfg, repo)
}

func newBranches(cfg provider.Config, repo *repository) (*Branches, error) {
	filter, err := provider.NewFilter(cfg.Object.Spec.Filter)
	if err != nil {
		return nil, err
	}
	list, err := newRefs(cfg, repo, "branches")
	if err != nil {
		return nil, err
	}
	return &Branches{object: cfg.Object, filter: filter, list: list}, nil
}

// Fetch lists the branches, by name.
func (b *Branches) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	all, err := b.list.All(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	return provider.ExportBranches(b.object, b.filter, all, previous)
}

// A Tags provider lists the tags of one repository.
type Tags struct {
	object *api.ResourceSetInputProvider
	list   *listing.List[provider.Ref]
}

// NewTags returns the provider of a definition of type BitbucketTag.
func NewTags(cfg provider.Config) (*Tags, error) {
	repo, err := parseURL(cfg.Object.Spec.URL)
	if err != nil {
		return nil, err
	}
	return newTags(cfg, repo)
}

func newTags(cfg provider.Config, repo *repository) (*Tags, error) {
	list, err := newRefs(cfg, repo, "tags")
	if err != nil {
		return nil, err
	}
	return &Tags{object: cfg.Object, list: list}, nil
}

// Fetch lists the tags, in the order that provider.ExportTags has.
func (t *Tags) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	all, err := t.list.All(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	return provider.ExportTagRefs(t.object, all, previous)
}

// newRefs returns the list of branches or tags, in an order that moves no entry
// when one is added or pushed to at the other end.
func newRefs(cfg provider.Config, repo *repository, kind string) (*listing.List[provider.Ref], error) {
	path, decode := kind+"?orderBy=ALPHABETICAL&limit=1000", decodeServerRef
	if repo.cloud {
		path, decode = "refs/"+kind+"?sort=name&pagelen=100", decodeCloudRef
	}
	_, list, err := newList(cfg, repo, kind, path, decode)
	return list, err
}
