// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/go-github/v66/github"

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

// NewBranches returns the provider of a definition of type GitHubBranch.
func NewBranches(cfg provider.Config) (*Branches, error) {
	filter, err := provider.NewFilter(cfg.Object.Spec.Filter)
	if err != nil {
		return nil, err
	}
	list, err := newList(cfg, "branches", fmt.Sprintf("branches?per_page=%d", perPage), decodeBranch)
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

// NewTags returns the provider of a definition of type GitHubTag.
func NewTags(cfg provider.Config) (*Tags, error) {
	list, err := newList(cfg, "tags", fmt.Sprintf("tags?per_page=%d", perPage), decodeTag)
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

func decodeBranch(data json.RawMessage) (provider.Ref, string, error) {
	var branch github.Branch
	if err := json.Unmarshal(data, &branch); err != nil {
		return provider.Ref{}, "", errors.New("not a branch in JSON")
	}
	return checkRef(branch.GetName(), branch.GetCommit().GetSHA())
}

func decodeTag(data json.RawMessage) (provider.Ref, string, error) {
	var tag github.RepositoryTag
	if err := json.Unmarshal(data, &tag); err != nil {
		return provider.Ref{}, "", errors.New("not a tag in JSON")
	}
	return checkRef(tag.GetName(), tag.GetCommit().GetSHA())
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
