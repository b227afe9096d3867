// SPDX-License-Identifier: Apache-2.0

package gitea

import (
	"context"
	"errors"
	"fmt"

	"code.gitea.io/sdk/gitea"

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

// NewBranches returns the provider of a definition of type GiteaBranch.
func NewBranches(cfg provider.Config) (*Branches, error) {
	filter, err := provider.NewFilter(cfg.Object.Spec.Filter)
	if err != nil {
		return nil, err
	}
	list, err := newList(cfg, branches())
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

// NewTags returns the provider of a definition of type GiteaTag.
func NewTags(cfg provider.Config) (*Tags, error) {
	list, err := newList(cfg, tags())
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
	return checkRef(branch.Name, branch.Commit.ID)
}

func convertTag(tag *gitea.Tag) (provider.Ref, string, error) {
	if tag == nil || tag.Commit == nil {
		return provider.Ref{}, "", errors.New("has no commit")
	}
	return checkRef(tag.Name, tag.Commit.SHA)
}

func checkRef(name, sha string) (provider.Ref, string, error) {
	switch {
	case name == "":
		return provider.Ref{}, "", errors.New("has no name")
	case sha == "":
		return provider.Ref{}, "", fmt.Errorf("%q has no commit", name)
	}
	return provider.Ref{Name: name, SHA: sha}, name, nil
}
