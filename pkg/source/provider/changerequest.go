// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"slices"
	"time"

	"resourceset.example/renderer/pkg/api"
)

// A ChangeRequest is what every forge calls by another name: a branch that somebody
// asks to have merged into another one.
type ChangeRequest struct {
	ID     string // what people call it by in its repository; unique there for life
	Number int64  // what the export is ordered by
	// SHA is the commit at the head of Branch.
	SHA, Branch  string
	TargetBranch string
	Title        string
	Author       string // login name
	Labels       []string
	URL          string // the page for people; exported only if it is http or https
	Draft        bool
	Fork         bool // Branch is in another repository than TargetBranch
	// CreatedAt and UpdatedAt are zero where a forge does not tell at all.
	CreatedAt, UpdatedAt time.Time
}

// Input is the input set that is exported for a change request: for one kind of
// forge always with the same fields.
func (c ChangeRequest) Input() api.Input {
	sorted := slices.Sorted(slices.Values(c.Labels))
	labels := make([]any, len(sorted))
	for i, label := range sorted {
		labels[i] = label
	}
	input := api.Input{
		fieldID:        c.ID,
		fieldSHA:       c.SHA,
		"branch":       c.Branch,
		"targetBranch": c.TargetBranch,
		"title":        c.Title,
		"author":       c.Author,
		"labels":       labels,
		"url":          WebURL(c.URL),
		"draft":        c.Draft,
		"fork":         c.Fork,
	}
	for name, at := range map[string]time.Time{"createdAt": c.CreatedAt, "updatedAt": c.UpdatedAt} {
		if !at.IsZero() {
			input[name] = at.UTC().Format(time.RFC3339)
		}
	}
	return input
}

// ExportChangeRequests is Export for the open change requests of a repository. It
// applies the filters itself, orders by number, and leaves out and counts those
// from forks (rule 11) unless the provider allows them with its annotation. The
// slice is sorted in place.
func ExportChangeRequests(object *api.ResourceSetInputProvider, filter *Filter, open []ChangeRequest, previous []api.Input) (Result, error) {
	slices.SortStableFunc(open, func(a, b ChangeRequest) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID))
	})
	allowForks := object.Annotations[api.AnnotationAllowForks] == "true"
	items, forks := make([]Item, 0, len(open)), 0
	for _, request := range open {
		if !filter.ChangeRequest(request) {
			continue
		}
		if request.Fork && !allowForks {
			forks++
			continue
		}
		if err := checkCommit("change request "+request.ID, request.SHA); err != nil {
			return Result{}, err
		}
		labels := request.Labels
		if labels == nil {
			labels = []string{} // it has none, which is not the same as to know of none
		}
		items = append(items, Item{Key: request.ID, Labels: labels, Input: request.Input()})
	}
	result, err := Export(object, fieldID, items, previous)
	result.Forks = forks
	return result, err
}
