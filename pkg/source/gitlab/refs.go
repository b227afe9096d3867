// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"encoding/json"
	"errors"
	"net/url"

	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
)

// NewBranches returns the provider of a definition of type GitLabBranch.
func NewBranches(cfg provider.Config) (*listing.Refs, error) {
	list, err := newRefs(cfg, "branches")
	if err != nil {
		return nil, err
	}
	return listing.NewBranches(cfg, list)
}

// NewTags returns the provider of a definition of type GitLabTag.
func NewTags(cfg provider.Config) (*listing.Refs, error) {
	list, err := newRefs(cfg, "tags")
	if err != nil {
		return nil, err
	}
	return listing.NewTags(cfg, list)
}

func newRefs(cfg provider.Config, what string) (*listing.List[provider.Ref], error) {
	p, err := parseProject(cfg.Object)
	if err != nil {
		return nil, err
	}
	return newList(cfg, p, refs(what))
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
// The tag of something that is no commit has none, which matters only if it is exported.
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
