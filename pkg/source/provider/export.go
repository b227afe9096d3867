// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"maps"

	"resourceset.example/renderer/pkg/api"
)

// An Item is one thing that a listing found and that passed the filters.
type Item struct {
	// Key names the item for life and no other one in the listing: a pull
	// request's number, a branch's name. Empty if it has none.
	Key string
	// Labels are what skip labels are about; nil for kinds that have none, and that
	// nothing freezes therefore.
	Labels []string
	Input  api.Input
}

// Fields that inputs of every kind have a meaning for.
const (
	fieldID       = "id"
	fieldProvider = "provider" // set when input sets are combined, never exported
	fieldSHA      = "sha"
)

// Export makes the result of a complete listing whose items have passed the
// filters. Order is kept. KeyField is the input field that holds the item's key.
//
// First come the skip labels: an item that they freeze keeps the values in
// previous, and one that is not there is left out. Then filter.limit: items found
// in previous go first, the others follow in the order of the listing, so a
// newcomer never takes the place of one that is there. At last the default values
// fill in the fields that an item lacks.
//
// Two items with one key are an error, for then the listing repeats itself.
func Export(object *api.ResourceSetInputProvider, keyField string, items []Item, previous []api.Input) (Result, error) {
	if err := checkKeys(keyField, items); err != nil {
		return Result{}, err
	}
	before := indexExported(keyField, previous)
	items, result := freeze(object.Spec.Skip, items, before)
	result.Matched = len(items)
	items = cut(items, before, limitOf(object.Spec.Filter))
	if len(items) < result.Matched {
		result.Warnings = append(result.Warnings, fmt.Sprintf("%d matched, %d exported: filter.limit is %d",
			result.Matched, len(items), len(items)))
	}
	result.Inputs = make([]api.Input, len(items))
	for i, item := range items {
		input := make(api.Input, len(item.Input)+len(object.Spec.DefaultValues))
		maps.Copy(input, object.Spec.DefaultValues)
		maps.Copy(input, item.Input)
		result.Inputs[i] = input
	}
	return result, nil
}

func limitOf(filter api.Filter) int {
	if filter.Limit <= 0 {
		return api.DefaultFilterLimit
	}
	return min(filter.Limit, api.MaxFilterLimit)
}

func checkKeys(keyField string, items []Item) error {
	seen := make(map[string]int, len(items))
	for i, item := range items {
		if item.Key == "" {
			continue
		}
		if first, ok := seen[item.Key]; ok {
			return &Error{
				Reason: Implausible,
				Msg:    fmt.Sprintf("items %d and %d have the same %s %q", first+1, i+1, keyField, item.Key),
			}
		}
		seen[item.Key] = i
	}
	return nil
}

// An exported index finds what was exported before for an item.
type exported struct {
	byKey map[string]api.Input
	byID  map[string]api.Input // only of inputs that lack the key field
}

func indexExported(keyField string, previous []api.Input) exported {
	index := exported{byKey: map[string]api.Input{}, byID: map[string]api.Input{}}
	for _, input := range previous {
		if key, ok := Text(input[keyField]); ok {
			index.byKey[key] = input
		} else if id, ok := Text(input[fieldID]); ok {
			// What is read back from Git has only the fields that templates use.
			index.byID[id] = input
		}
	}
	return index
}

func (e exported) find(item Item) (api.Input, bool) {
	if item.Key == "" {
		return nil, false
	}
	if input, ok := e.byKey[item.Key]; ok {
		return input, true
	}
	id, ok := Text(item.Input[fieldID])
	if !ok {
		return nil, false
	}
	input, ok := e.byID[id]
	return input, ok
}

func freeze(skip api.Skip, items []Item, before exported) ([]Item, Result) {
	var result Result
	if len(skip.Labels) == 0 {
		return items, result
	}
	kept := make([]Item, 0, len(items))
	for _, item := range items {
		if item.Labels != nil && skips(skip, item.Labels) {
			old, ok := before.find(item)
			if !ok {
				result.Held++
				continue
			}
			result.Frozen++
			item.Input = frozen(old, item.Input)
		}
		kept = append(kept, item)
	}
	return kept, result
}

// frozen returns the old input set. A field that it lacks, because no template
// used it when it was recorded, is taken from the current one; but never the
// revision, for that is what freezing is about.
func frozen(old, current api.Input) api.Input {
	input := make(api.Input, len(old)+len(current))
	maps.Copy(input, current)
	delete(input, fieldSHA)
	maps.Copy(input, old)
	delete(input, fieldProvider)
	return input
}

func cut(items []Item, before exported, limit int) []Item {
	if len(items) <= limit {
		return items
	}
	keep := make([]bool, len(items))
	left := limit
	for _, newcomers := range []bool{false, true} {
		for i, item := range items {
			if _, known := before.find(item); left > 0 && !keep[i] && known != newcomers {
				keep[i] = true
				left--
			}
		}
	}
	kept := make([]Item, 0, limit)
	for i, item := range items {
		if keep[i] {
			kept = append(kept, item)
		}
	}
	return kept
}
