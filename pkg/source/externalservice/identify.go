// SPDX-License-Identifier: Apache-2.0

package externalservice

import (
	"maps"
	"slices"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
)

// identify says which field tells the input sets apart from one listing to the
// next, and gives each set its key. That is "id" where every set has one. Else it
// is the field whose values are unique, now and before, and of which the most
// values are the same as before: a tenant's name stays when its version moves on.
// Without any such field the sets have no key.
func identify(inputs, previous []api.Input) (field string, items []provider.Item) {
	field = "id"
	if !slices.ContainsFunc(inputs, func(input api.Input) bool { return input["id"] == nil }) {
		return field, keyed(inputs, field)
	}
	most := 0
	for _, candidate := range fieldsOf(inputs) {
		now, before := uniqueValues(inputs, candidate), uniqueValues(previous, candidate)
		same := 0
		for value := range before {
			if now[value] {
				same++
			}
		}
		if same > most {
			field, most = candidate, same
		}
	}
	if most == 0 {
		return field, keyed(inputs, "")
	}
	return field, keyed(inputs, field)
}

func keyed(inputs []api.Input, field string) []provider.Item {
	items := make([]provider.Item, len(inputs))
	for i, input := range inputs {
		key, _ := provider.Text(input[field])
		items[i] = provider.Item{Key: key, Input: input}
	}
	return items
}

// fieldsOf returns the field names of the first input set, sorted: a field that
// tells all sets apart is in each of them.
func fieldsOf(inputs []api.Input) []string {
	return slices.Sorted(maps.Keys(inputs[0]))
}

// uniqueValues returns the values of a field, or nil where one is missing, is no
// scalar, or is there twice.
func uniqueValues(inputs []api.Input, field string) map[string]bool {
	values := make(map[string]bool, len(inputs))
	for _, input := range inputs {
		value, ok := provider.Text(input[field])
		if !ok || value == "" || values[value] {
			return nil
		}
		values[value] = true
	}
	return values
}
