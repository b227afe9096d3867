// SPDX-License-Identifier: Apache-2.0

package azuredevops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

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

// NewBranches returns the provider of a definition of type AzureDevOpsBranch.
func NewBranches(cfg provider.Config) (*Branches, error) {
	filter, err := provider.NewFilter(cfg.Object.Spec.Filter)
	if err != nil {
		return nil, err
	}
	list, err := newRefs(cfg, "branches", "heads/")
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

// NewTags returns the provider of a definition of type AzureDevOpsTag.
func NewTags(cfg provider.Config) (*Tags, error) {
	list, err := newRefs(cfg, "tags", "tags/")
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

// newRefs returns the list of refs whose names begin so, below refs/.
func newRefs(cfg provider.Config, what, prefix string) (*listing.List[provider.Ref], error) {
	repo, err := parseURL(cfg.Object.Spec.URL)
	if err != nil {
		return nil, err
	}
	query := url.Values{"filter": {prefix}, "peelTags": {"true"}, "$top": {"1000"}}
	_, list, err := newList(cfg, repo, what, "refs", query, continued, func(data json.RawMessage) (provider.Ref, string, error) {
		return decodeRef(data, "refs/"+prefix)
	})
	return list, err
}

// continued leads to the page that a header names, in the service's own words.
func continued(address *url.URL, _ int, header http.Header) string {
	token := header.Get("X-Ms-Continuationtoken")
	if token == "" {
		return ""
	}
	query := address.Query()
	query.Set("continuationToken", token)
	next := *address
	next.RawQuery = query.Encode()
	return next.String()
}

// decodeRef reads one ref. An annotated tag has the commit that it is of as its
// peeled object.
func decodeRef(data json.RawMessage, prefix string) (provider.Ref, string, error) {
	var ref struct {
		Name     string `json:"name"`
		ObjectID string `json:"objectId"`
		Peeled   string `json:"peeledObjectId"`
	}
	if json.Unmarshal(data, &ref) != nil {
		return provider.Ref{}, "", errors.New("not a ref in JSON")
	}
	name, ok := strings.CutPrefix(ref.Name, prefix)
	if !ok || name == "" {
		return provider.Ref{}, "", fmt.Errorf("%q does not begin with %s", ref.Name, prefix)
	}
	sha := ref.Peeled
	if sha == "" {
		sha = ref.ObjectID
	}
	if sha == "" {
		return provider.Ref{}, "", fmt.Errorf("%q has no commit", name)
	}
	return provider.Ref{Name: name, SHA: sha}, name, nil
}
