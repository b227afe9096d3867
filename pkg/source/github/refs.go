// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-github/v66/github"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// A ref is a branch or tag and the commit that it points to.
type ref struct {
	name, sha string
}

// A Branches provider lists the branches of one repository.
type Branches struct {
	object *api.ResourceSetInputProvider
	filter *provider.Filter
	list   *listing.List[ref]
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
	items := refItems("branch", all)
	items = slices.DeleteFunc(items, func(item provider.Item) bool { return !b.filter.Branch(item.Key) })
	slices.SortFunc(items, func(x, y provider.Item) int { return strings.Compare(x.Key, y.Key) })
	return provider.Export(b.object, "branch", items, previous)
}

// A Tags provider lists the tags of one repository.
type Tags struct {
	object *api.ResourceSetInputProvider
	list   *listing.List[ref]
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
	return provider.ExportTags(t.object, refItems("tag", all), previous)
}

func refItems(field string, refs []ref) []provider.Item {
	items := make([]provider.Item, len(refs))
	for i, r := range refs {
		items[i] = provider.Item{Key: r.name, Input: api.Input{"id": provider.Checksum(r.name), field: r.name, "sha": r.sha}}
	}
	return items
}

func decodeBranch(data json.RawMessage) (ref, string, error) {
	var branch github.Branch
	if err := json.Unmarshal(data, &branch); err != nil {
		return ref{}, "", errors.New("not a branch in JSON")
	}
	return checkRef(branch.GetName(), branch.GetCommit().GetSHA())
}

func decodeTag(data json.RawMessage) (ref, string, error) {
	var tag github.RepositoryTag
	if err := json.Unmarshal(data, &tag); err != nil {
		return ref{}, "", errors.New("not a tag in JSON")
	}
	return checkRef(tag.GetName(), tag.GetCommit().GetSHA())
}

func checkRef(name, sha string) (ref, string, error) {
	switch {
	case name == "":
		return ref{}, "", errors.New("has no name")
	case sha == "":
		return ref{}, "", fmt.Errorf("%q has no commit", name)
	}
	return ref{name, sha}, name, nil
}
