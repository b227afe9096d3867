// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"resourceset.example/renderer/pkg/api"
)

// A Filter is an api.Filter with its regular expressions compiled.
type Filter struct {
	labels                                 []string
	includeBranch, excludeBranch           *regexp.Regexp
	includeTag, excludeTag                 *regexp.Regexp
	includeEnvironment, excludeEnvironment *regexp.Regexp
	targetBranch, title, author            *regexp.Regexp
	draft, fork                            *bool
	updatedWithin                          time.Duration
	now                                    func() time.Time
}

// NewFilter compiles a filter.
func NewFilter(spec api.Filter) (*Filter, error) {
	f := &Filter{
		labels: spec.Labels, draft: spec.Draft, fork: spec.Fork,
		updatedWithin: spec.UpdatedWithin, now: time.Now,
	}
	for _, expr := range []struct {
		field, text string
		compiled    **regexp.Regexp
	}{
		{"includeBranch", spec.IncludeBranch, &f.includeBranch},
		{"excludeBranch", spec.ExcludeBranch, &f.excludeBranch},
		{"includeTag", spec.IncludeTag, &f.includeTag},
		{"excludeTag", spec.ExcludeTag, &f.excludeTag},
		{"includeEnvironment", spec.IncludeEnvironment, &f.includeEnvironment},
		{"excludeEnvironment", spec.ExcludeEnvironment, &f.excludeEnvironment},
		{"targetBranch", spec.TargetBranch, &f.targetBranch},
		{"title", spec.Title, &f.title},
		{"author", spec.Author, &f.author},
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

// Environment tells whether an environment passes.
func (f *Filter) Environment(name string) bool {
	return match(f.includeEnvironment, f.excludeEnvironment, name)
}

// ChangeRequest tells whether a change request passes all filters that are about
// change requests. Where a forge does not tell when it was updated, the time when
// it was opened counts.
func (f *Filter) ChangeRequest(c ChangeRequest) bool {
	updated := c.UpdatedAt
	if updated.IsZero() {
		updated = c.CreatedAt
	}
	return f.Branch(c.Branch) && f.Labels(c.Labels) &&
		match(f.targetBranch, nil, c.TargetBranch) && match(f.title, nil, c.Title) && match(f.author, nil, c.Author) &&
		(f.draft == nil || *f.draft == c.Draft) && (f.fork == nil || *f.fork == c.Fork) &&
		(f.updatedWithin == 0 || f.now().Sub(updated) <= f.updatedWithin)
}

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
