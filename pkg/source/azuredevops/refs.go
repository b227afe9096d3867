// SPDX-License-Identifier: Apache-2.0

package azuredevops

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
)

// NewBranches returns the provider of a definition of type AzureDevOpsBranch.
func NewBranches(cfg provider.Config) (*listing.Refs, error) {
	list, err := newRefs(cfg, "branches", "heads/")
	if err != nil {
		return nil, err
	}
	return listing.NewBranches(cfg, list)
}

// NewTags returns the provider of a definition of type AzureDevOpsTag.
func NewTags(cfg provider.Config) (*listing.Refs, error) {
	list, err := newRefs(cfg, "tags", "tags/")
	if err != nil {
		return nil, err
	}
	return listing.NewTags(cfg, list)
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
	return provider.NewRef(name, cmp.Or(ref.Peeled, ref.ObjectID))
}
