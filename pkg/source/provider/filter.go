// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// A Filter is an api.Filter with its regular expressions compiled.
type Filter struct {
	labels                       []string
	includeBranch, excludeBranch *regexp.Regexp
	includeTag, excludeTag       *regexp.Regexp
}

// NewFilter compiles a filter.
func NewFilter(spec api.Filter) (*Filter, error) {
	f := &Filter{labels: spec.Labels}
	for _, expr := range []struct {
		field, text string
		compiled    **regexp.Regexp
	}{
		{"includeBranch", spec.IncludeBranch, &f.includeBranch},
		{"excludeBranch", spec.ExcludeBranch, &f.excludeBranch},
		{"includeTag", spec.IncludeTag, &f.includeTag},
		{"excludeTag", spec.ExcludeTag, &f.excludeTag},
	} {
		if expr.text == "" {
			continue
		}
		re, err := regexp.Compile(expr.text)
		if err != nil {
			return nil, &Error{Reason: Misconfigured, Msg: fmt.Sprintf("filter.%s", expr.field), Err: err}
		}
		*expr.compiled = re
	}
	return f, nil
}

// Branch tells whether a branch passes. As in the operator, the expressions match
// anywhere in the name unless they are anchored.
func (f *Filter) Branch(name string) bool { return match(f.includeBranch, f.excludeBranch, name) }

// Tag tells whether a tag passes.
func (f *Filter) Tag(name string) bool { return match(f.includeTag, f.excludeTag, name) }

// Labels tells whether an item with these labels passes: it needs all labels of
// the filter, as in the operator, spelled exactly so.
func (f *Filter) Labels(has []string) bool {
	return !slices.ContainsFunc(f.labels, func(label string) bool { return !slices.Contains(has, label) })
}

func match(include, exclude *regexp.Regexp, name string) bool {
	return (include == nil || include.MatchString(name)) && (exclude == nil || !exclude.MatchString(name))
}

// skips tells whether an item with these labels is frozen: it has one of the
// labels, or lacks one that is written with a "!".
func skips(skip api.Skip, has []string) bool {
	return slices.ContainsFunc(skip.Labels, func(label string) bool {
		if absent, negated := strings.CutPrefix(label, "!"); negated {
			return !slices.Contains(has, absent)
		}
		return slices.Contains(has, label)
	})
}
