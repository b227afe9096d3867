// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 the library is the one that the design names; its successor is a change of this package

package gitlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/xanzy/go-gitlab"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// ghost is the user that GitLab gives what belonged to accounts that are gone.
const ghost = "ghost"

// A MergeRequests provider lists the open merge requests of one project.
type MergeRequests struct {
	object         *api.ResourceSetInputProvider
	filter         *provider.Filter
	opened, locked *listing.List[mergeRequest]
}

// A mergeRequest is one in the list, which may have closed while it was read.
type mergeRequest struct {
	provider.ChangeRequest
	open bool
}

// NewMergeRequests returns the provider of a definition of type GitLabMergeRequest.
func NewMergeRequests(cfg provider.Config) (*MergeRequests, error) {
	filter, err := provider.NewFilter(cfg.Object.Spec.Filter)
	if err != nil {
		return nil, err
	}
	p, err := parseProject(cfg.Object)
	if err != nil {
		return nil, err
	}
	m := &MergeRequests{object: cfg.Object, filter: filter}
	if m.opened, err = newList(cfg, p, mergeRequests("opened")); err != nil {
		return nil, err
	}
	if m.locked, err = newList(cfg, p, mergeRequests("locked")); err != nil {
		return nil, err
	}
	return m, nil
}

// mergeRequests lists those of a state in an order that new ones do not disturb.
func mergeRequests(state string) list[mergeRequest] {
	return list[mergeRequest]{
		what: "merge requests", resource: "merge_requests", decode: decodeMergeRequest,
		query: url.Values{"state": {state}, "order_by": {"created_at"}, "sort": {"asc"}, "per_page": {perPage}, "page": {"1"}},
	}
}

// Fetch lists the open merge requests.
func (m *MergeRequests) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	all, err := m.opened.All(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	if lacks(all, previous) {
		// What is gone from the open ones may be about to be merged, which can fail.
		locked, err := m.locked.All(ctx)
		if err != nil {
			return provider.Result{}, err
		}
		for _, mr := range locked {
			if !slices.ContainsFunc(all, func(other mergeRequest) bool { return other.ID == mr.ID }) {
				all = append(all, mr)
			}
		}
	}
	open := make([]provider.ChangeRequest, 0, len(all))
	for _, mr := range all {
		if mr.open {
			open = append(open, mr.ChangeRequest)
		}
	}
	return provider.ExportChangeRequests(m.object, m.filter, open, previous)
}

// lacks tells whether a list is without something that was exported.
func lacks(all []mergeRequest, previous []api.Input) bool {
	listed := make(map[string]bool, len(all))
	for _, mr := range all {
		listed[mr.ID] = true
	}
	return slices.ContainsFunc(previous, func(input api.Input) bool {
		id, _ := provider.Text(input["id"])
		return !listed[id]
	})
}

// decodeMergeRequest reads one merge request and checks that all is there that must be.
func decodeMergeRequest(data json.RawMessage) (mergeRequest, string, error) {
	// The library panics on lists of labels of more than one type.
	var labeled struct{ Labels []string }
	if err := json.Unmarshal(data, &labeled); err != nil || slices.Contains(labeled.Labels, "") {
		return mergeRequest{}, "", errors.New("not a merge request in JSON, or one with labels that are no texts")
	}
	var mr gitlab.MergeRequest
	if err := json.Unmarshal(data, &mr); err != nil {
		return mergeRequest{}, "", errors.New("not a merge request in JSON")
	}
	if mr.IID <= 0 {
		return mergeRequest{}, "", errors.New("has no number")
	}
	for _, must := range []struct{ name, value string }{
		{"state", mr.State}, {"sha", mr.SHA}, {"source_branch", mr.SourceBranch}, {"target_branch", mr.TargetBranch},
	} {
		if must.value == "" {
			return mergeRequest{}, "", fmt.Errorf("merge request %d has no %s", mr.IID, must.name)
		}
	}
	if mr.TargetProjectID <= 0 {
		return mergeRequest{}, "", fmt.Errorf("merge request %d has no target_project_id", mr.IID)
	}
	if mr.CreatedAt == nil || mr.UpdatedAt == nil || mr.CreatedAt.IsZero() || mr.UpdatedAt.IsZero() {
		return mergeRequest{}, "", fmt.Errorf("merge request %d has no created_at or updated_at", mr.IID)
	}
	author := ghost
	if mr.Author != nil && mr.Author.Username != "" {
		author = mr.Author.Username
	}
	id := strconv.Itoa(mr.IID)
	return mergeRequest{
		open: mr.State == "opened" || mr.State == "locked",
		ChangeRequest: provider.ChangeRequest{
			ID:           id,
			Number:       int64(mr.IID),
			SHA:          mr.SHA,
			Branch:       mr.SourceBranch,
			TargetBranch: mr.TargetBranch,
			Title:        mr.Title,
			Author:       author,
			Labels:       mr.Labels,
			URL:          mr.WebURL,
			Draft:        mr.Draft || mr.WorkInProgress,
			Fork:         mr.SourceProjectID != mr.TargetProjectID, // none at all where it is gone
			CreatedAt:    *mr.CreatedAt,
			UpdatedAt:    *mr.UpdatedAt,
		},
	}, id, nil
}
