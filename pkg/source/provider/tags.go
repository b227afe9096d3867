// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"resourceset.example/renderer/pkg/api"
)

// fieldTag is the input field with a tag's name.
const fieldTag = "tag"

// ExportTags is Export for kinds that list tags, where the key of an item is the
// tag. It applies the tag filters itself.
//
// With filter.semver, the tags are the versions in that range, newest first, and
// filter.limit takes the newest ones: to ask for a range and one tag is to ask
// for the latest version. Where the newest version is an older one than before,
// because a tag has vanished, a warning says so; with the annotation
// renderer/hold-downgrades: "true" the vanished one stays.
//
// Without filter.semver, the order is that of the names, backwards, and
// filter.limit cuts as everywhere.
func ExportTags(object *api.ResourceSetInputProvider, items []Item, previous []api.Input) (Result, error) {
	filter, err := NewFilter(object.Spec.Filter)
	if err != nil {
		return Result{}, err
	}
	if err := checkKeys(fieldTag, items); err != nil {
		return Result{}, err
	}
	items = slices.DeleteFunc(slices.Clone(items), func(item Item) bool { return !filter.Tag(item.Key) })
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(b.Key, a.Key) })
	if object.Spec.Filter.Semver == "" {
		return Export(object, fieldTag, items, previous)
	}
	versions, err := newRange(object.Spec.Filter.Semver, filter)
	if err != nil {
		return Result{}, err
	}
	items = versions.newestFirst(items)
	matched, warnings := len(items), []string(nil)
	if vanished, ok := versions.downgrade(items, previous); ok {
		newest := "nothing"
		if len(items) > 0 {
			newest = items[0].Key
		}
		if object.Annotations[api.AnnotationHoldDowngrades] == "true" {
			warnings = append(warnings, fmt.Sprintf("tag %s is gone and held, for the newest one is %s", vanished.Key, newest))
			items = slices.Insert(items, 0, vanished)
		} else {
			warnings = append(warnings, fmt.Sprintf("downgrade: tag %s is gone, the newest one is %s", vanished.Key, newest))
		}
	}
	items = items[:min(len(items), limitOf(object.Spec.Filter))]
	result, err := Export(object, fieldTag, items, previous)
	result.Matched, result.Warnings = matched, append(result.Warnings, warnings...)
	return result, err
}

// A versionRange is a filter.semver together with the tag filters.
type versionRange struct {
	constraint *semver.Constraints
	filter     *Filter
}

func newRange(text string, filter *Filter) (*versionRange, error) {
	constraint, err := semver.NewConstraint(text)
	if err != nil {
		return nil, &Error{Reason: Misconfigured, Msg: "filter.semver", Hint: `write it like ">=1.0.0" or "1.x"`, Err: err}
	}
	return &versionRange{constraint: constraint, filter: filter}, nil
}

// version returns the version that a tag is, or nil if it is none in the range. A
// version has three numbers, perhaps after a "v", as for Flux and the operator:
// otherwise a date, a moving "v1" or a commit in digits would be the newest version.
func (r *versionRange) version(tag string) *semver.Version {
	version, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
	if err != nil || !r.filter.Tag(tag) || !r.constraint.Check(version) {
		return nil
	}
	return version
}

func (r *versionRange) newestFirst(items []Item) []Item {
	type versioned struct {
		item    Item
		version *semver.Version
	}
	var found []versioned
	for _, item := range items {
		if version := r.version(item.Key); version != nil {
			found = append(found, versioned{item, version})
		}
	}
	slices.SortFunc(found, func(a, b versioned) int {
		// v1.0.0 and 1.0.0 are one version under two names.
		return cmp.Or(b.version.Compare(a.version), strings.Compare(b.item.Key, a.item.Key))
	})
	sorted := make([]Item, len(found))
	for i, f := range found {
		sorted[i] = f.item
	}
	return sorted
}

// downgrade returns the newest tag that was exported before, if it is newer than
// all there are now.
func (r *versionRange) downgrade(items []Item, previous []api.Input) (Item, bool) {
	var vanished Item
	var newest *semver.Version
	if len(items) > 0 {
		newest = r.version(items[0].Key)
	}
	for _, input := range previous {
		tag, ok := Text(input[fieldTag])
		if !ok {
			continue
		}
		version := r.version(tag)
		if version == nil || (newest != nil && !version.GreaterThan(newest)) {
			continue
		}
		newest = version
		vanished = Item{Key: tag, Input: frozen(input, nil)}
	}
	return vanished, vanished.Key != ""
}
