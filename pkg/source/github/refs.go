// SPDX-License-Identifier: Apache-2.0

package github

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/go-github/v66/github"

	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
)

// NewBranches returns the provider of a definition of type GitHubBranch.
func NewBranches(cfg provider.Config) (*listing.Refs, error) {
	list, err := newList(cfg, "branches", fmt.Sprintf("branches?per_page=%d", perPage), decodeBranch)
	if err != nil {
		return nil, err
	}
	return listing.NewBranches(cfg, list)
}

// NewTags returns the provider of a definition of type GitHubTag.
func NewTags(cfg provider.Config) (*listing.Refs, error) {
	list, err := newList(cfg, "tags", fmt.Sprintf("tags?per_page=%d", perPage), decodeTag)
	if err != nil {
		return nil, err
	}
	return listing.NewTags(cfg, list)
}

func decodeBranch(data json.RawMessage) (provider.Ref, string, error) {
	var branch github.Branch
	if err := json.Unmarshal(data, &branch); err != nil {
		return provider.Ref{}, "", errors.New("not a branch in JSON")
	}
	return provider.NewRef(branch.GetName(), branch.GetCommit().GetSHA())
}

func decodeTag(data json.RawMessage) (provider.Ref, string, error) {
	var tag github.RepositoryTag
	if err := json.Unmarshal(data, &tag); err != nil {
		return provider.Ref{}, "", errors.New("not a tag in JSON")
	}
	return provider.NewRef(tag.GetName(), tag.GetCommit().GetSHA())
}
