// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// A Ref is a branch or tag of a repository and the commit that it points to.
type Ref struct {
	Name, SHA string
}

// ExportBranches is Export for the branches of a repository. It applies the filters
// itself, and orders by name.
func ExportBranches(object *api.ResourceSetInputProvider, filter *Filter, branches []Ref, previous []api.Input) (Result, error) {
	const field = "branch"
	items := refItems(field, branches)
	items = slices.DeleteFunc(items, func(item Item) bool { return !filter.Branch(item.Key) })
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Key, b.Key) })
	return Export(object, field, items, previous)
}

// ExportTagRefs is ExportTags for the tags of a repository.
func ExportTagRefs(object *api.ResourceSetInputProvider, tags []Ref, previous []api.Input) (Result, error) {
	return ExportTags(object, refItems(fieldTag, tags), previous)
}

func refItems(field string, refs []Ref) []Item {
	items := make([]Item, len(refs))
	for i, ref := range refs {
		items[i] = Item{Key: ref.Name, Input: api.Input{fieldID: Checksum(ref.Name), field: ref.Name, fieldSHA: ref.SHA}}
	}
	return items
}
