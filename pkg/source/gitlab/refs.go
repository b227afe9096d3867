// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// A Branches provider lists the branches of one project.
type Branches struct {
	object *api.ResourceSetInputProvider
	filter *provider.Filter
	list   *listing.List[provider.Ref]
}

// NewBranches returns the provider of a definition of type GitLabBranch.
func NewBranches(cfg provider.Config) (*Branches, error) {
	filter, refs, err := newRefs(cfg, "branches")
	if err != nil {
		return nil, err
	}
	return &Branches{object: cfg.Object, filter: filter, list: refs}, nil
}

// Fetch lists the branches, by name.
func (b *Branches) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	all, err := b.list.All(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	if err := checkCommits(all, "branch", b.filter.Branch); err != nil {
		return provider.Result{}, err
	}
	return provider.ExportBranches(b.object, b.filter, all, previous)
}

// A Tags provider lists the tags of one project.
type Tags struct {
	object *api.ResourceSetInputProvider
	filter *provider.Filter
	list   *listing.List[provider.Ref]
}

// NewTags returns the provider of a definition of type GitLabTag.
func NewTags(cfg provider.Config) (*Tags, error) {
	filter, refs, err := newRefs(cfg, "tags")
	if err != nil {
		return nil, err
	}
	return &Tags{object: cfg.Object, filter: filter, list: refs}, nil
}

// Fetch lists the tags, in the order that provider.ExportTags has.
func (t *Tags) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	all, err := t.list.All(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	if err := checkCommits(all, "tag", t.filter.Tag); err != nil {
		return provider.Result{}, err
	}
	return provider.ExportTagRefs(t.object, all, previous)
}

func newRefs(cfg provider.Config, what string) (*provider.Filter, *listing.List[provider.Ref], error) {
	filter, err := provider.NewFilter(cfg.Object.Spec.Filter)
	if err != nil {
		return nil, nil, err
	}
	p, err := parseProject(cfg.Object)
	if err != nil {
		return nil, nil, err
	}
	refs, err := newList(cfg, p, refs(what))
	return filter, refs, err
}

// refs lists by name, and goes on from the last name of a page where the server can
// do that: offsets have a limit. One that cannot counts pages.
func refs(what string) list[provider.Ref] {
	query := url.Values{"pagination": {"keyset"}, "per_page": {perPage}}
	if what == "tags" { // branches are in this order anyway, and know other names of orders
		query["order_by"], query["sort"] = []string{"name"}, []string{"asc"}
	}
	return list[provider.Ref]{what: what, resource: "repository/" + what, decode: decodeRef, query: query}
}

// decodeRef reads a branch or tag. It does not use the types of the library, for they
// take no commit that has a trailer ("Signed-off-by"): GitLab lists the values of each.
func decodeRef(data json.RawMessage) (provider.Ref, string, error) {
	var ref struct {
		Name   string
		Commit struct{ ID string }
	}
	if err := json.Unmarshal(data, &ref); err != nil {
		return provider.Ref{}, "", errors.New("not a branch or tag in JSON")
	}
	if ref.Name == "" {
		return provider.Ref{}, "", errors.New("has no name")
	}
	return provider.Ref{Name: ref.Name, SHA: ref.Commit.ID}, ref.Name, nil
}

// checkCommits fails for what passes the filter and has no commit, as a tag of
// something else has none: it is not left out silently.
func checkCommits(all []provider.Ref, what string, passes func(string) bool) error {
	for _, ref := range all {
		if ref.SHA == "" && passes(ref.Name) {
			return &provider.Error{
				Reason: provider.Implausible,
				Msg:    fmt.Sprintf("%s %q has no commit", what, ref.Name),
				Hint:   "if it is the tag of something other than a commit, leave it out with spec.filter.excludeTag; else the last good list stands",
			}
		}
	}
	return nil
}
