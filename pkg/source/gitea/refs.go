// SPDX-License-Identifier: Apache-2.0

package gitea

import (
	"errors"

	"code.gitea.io/sdk/gitea"

	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
)

// NewBranches returns the provider of a definition of type GiteaBranch.
func NewBranches(cfg provider.Config) (*listing.Refs, error) {
	list, err := newList(cfg, branches())
	if err != nil {
		return nil, err
	}
	return listing.NewBranches(cfg, list)
}

// NewTags returns the provider of a definition of type GiteaTag.
func NewTags(cfg provider.Config) (*listing.Refs, error) {
	list, err := newList(cfg, tags())
	if err != nil {
		return nil, err
	}
	return listing.NewTags(cfg, list)
}

func branches() kind[gitea.Branch, provider.Ref] {
	return kind[gitea.Branch, provider.Ref]{
		what: "branches",
		call: func(api *gitea.Client, owner, name string, page gitea.ListOptions) ([]*gitea.Branch, *gitea.Response, error) {
			return api.ListRepoBranches(owner, name, gitea.ListRepoBranchesOptions{ListOptions: page})
		},
		convert: convertBranch,
	}
}

func tags() kind[gitea.Tag, provider.Ref] {
	return kind[gitea.Tag, provider.Ref]{
		what: "tags",
		call: func(api *gitea.Client, owner, name string, page gitea.ListOptions) ([]*gitea.Tag, *gitea.Response, error) {
			return api.ListRepoTags(owner, name, gitea.ListRepoTagsOptions{ListOptions: page})
		},
		convert: convertTag,
	}
}

func convertBranch(branch *gitea.Branch) (provider.Ref, string, error) {
	if branch == nil || branch.Commit == nil {
		return provider.Ref{}, "", errors.New("has no commit")
	}
	return provider.NewRef(branch.Name, branch.Commit.ID)
}

func convertTag(tag *gitea.Tag) (provider.Ref, string, error) {
	if tag == nil || tag.Commit == nil {
		return provider.Ref{}, "", errors.New("has no commit")
	}
	return provider.NewRef(tag.Name, tag.Commit.SHA)
}
