// SPDX-License-Identifier: Apache-2.0

package bitbucket

import (
	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
)

// NewBranches returns the provider of a definition of type BitbucketBranch.
func NewBranches(cfg provider.Config) (*listing.Refs, error) {
	repo, err := parseURL(cfg.Object.Spec.URL)
	if err != nil {
		return nil, err
	}
	return newBranches(cfg, repo)
}

func newBranches(cfg provider.Config, repo *repository) (*listing.Refs, error) {
	list, err := newRefs(cfg, repo, "branches")
	if err != nil {
		return nil, err
	}
	return listing.NewBranches(cfg, list)
}

// NewTags returns the provider of a definition of type BitbucketTag.
func NewTags(cfg provider.Config) (*listing.Refs, error) {
	repo, err := parseURL(cfg.Object.Spec.URL)
	if err != nil {
		return nil, err
	}
	return newTags(cfg, repo)
}

func newTags(cfg provider.Config, repo *repository) (*listing.Refs, error) {
	list, err := newRefs(cfg, repo, "tags")
	if err != nil {
		return nil, err
	}
	return listing.NewTags(cfg, list)
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
