// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/expand"
)

// fieldChanges compares the recorded inputs of a set; either may be nil.
func fieldChanges(old, new *expand.LockedSet) []FieldChange {
	var before, after map[string]any
	sensitive := map[string]bool{}
	if old != nil {
		before = old.Inputs
		mark(sensitive, old.Sensitive)
	}
	if new != nil {
		after = new.Inputs
		mark(sensitive, new.Sensitive)
	}
	changes := compareValues("", before, after)
	for i := range changes {
		for field := range sensitive {
			if changes[i].Name == field || strings.HasPrefix(changes[i].Name, field+".") {
				changes[i].Sensitive = true
			}
		}
	}
	return changes
}

// mark notes sensitive fields under the names that changes have: the lock parts a
// permutation's key from the field by a slash.
func mark(sensitive map[string]bool, fields []string) {
	for _, field := range fields {
		sensitive[strings.Replace(field, "/", ".", 1)] = true
		sensitive[field] = true
	}
}

// compareValues goes into maps that both sides have, and compares other values whole.
func compareValues(prefix string, before, after map[string]any) []FieldChange {
	keys := slices.Sorted(maps.Keys(before))
	for key := range after {
		if _, both := before[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var changes []FieldChange
	for _, key := range keys {
		old, new := before[key], after[key]
		oldMap, oldIs := old.(map[string]any)
		newMap, newIs := new.(map[string]any)
		switch {
		case oldIs && newIs, oldIs && new == nil && before != nil && after == nil, newIs && before == nil:
			changes = append(changes, compareValues(prefix+key+".", oldMap, newMap)...)
		case !reflect.DeepEqual(old, new):
			changes = append(changes, FieldChange{Name: prefix + key, Old: old, New: new})
		}
	}
	return changes
}
