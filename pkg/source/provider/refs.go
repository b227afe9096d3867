// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// A Ref is a branch or tag of a repository and the commit that it points to. The
// commit is empty where a forge names none, as for the tag of something else.
type Ref struct {
	Name, SHA string
}

// fieldBranch is the input field with a branch's name.
const fieldBranch = "branch"

// NewRef is a ref of a list whose every item has a name and a commit, with what tells
// it from the others.
func NewRef(name, sha string) (ref Ref, key string, err error) {
	switch {
	case name == "":
		return Ref{}, "", errors.New("has no name")
	case sha == "":
		return Ref{}, "", fmt.Errorf("%q has no commit", name)
	}
	return Ref{Name: name, SHA: sha}, name, nil
}

// ExportBranches is Export for the branches of a repository. It applies the filters
// itself, and orders by name.
func ExportBranches(object *api.ResourceSetInputProvider, filter *Filter, branches []Ref, previous []api.Input) (Result, error) {
	items, err := refItems(fieldBranch, branches, filter.Branch)
	if err != nil {
		return Result{}, err
	}
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Key, b.Key) })
	return Export(object, fieldBranch, items, previous)
}

// ExportTagRefs is ExportTags for the tags of a repository.
func ExportTagRefs(object *api.ResourceSetInputProvider, filter *Filter, tags []Ref, previous []api.Input) (Result, error) {
	items, err := refItems(fieldTag, tags, filter.Tag)
	if err != nil {
		return Result{}, err
	}
	return ExportTags(object, items, previous)
}

// refItems returns the refs that pass. One of them without a commit is an error: it is
// not left out silently.
func refItems(field string, refs []Ref, passes func(name string) bool) ([]Item, error) {
	items := make([]Item, 0, len(refs))
	for _, ref := range refs {
		if !passes(ref.Name) {
			continue
		}
		if err := checkCommit(fmt.Sprintf("%s %q", field, ref.Name), ref.SHA); err != nil {
			if field == fieldTag {
				err.Hint = "if it is the tag of something other than a commit, leave it out with spec.filter.excludeTag; else the last good list stands"
			}
			return nil, err
		}
		items = append(items, Item{Key: ref.Name, Input: api.Input{fieldID: Checksum(ref.Name), field: ref.Name, fieldSHA: ref.SHA}})
	}
	return items, nil
}

// commitPattern is what Git calls commits, whole: by SHA-1, or by SHA-256.
var commitPattern = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// IsCommit tells whether a text is the whole name of a commit.
func IsCommit(sha string) bool { return commitPattern.MatchString(sha) }

const notACommit = "has a commit whose name is neither 40 nor 64 hexadecimal digits"

// checkCommit fails where a forge calls a commit what cannot be one (rule 1): templates
// put it where Git, an image or a command line takes it.
func checkCommit(of, sha string) *Error {
	if IsCommit(sha) {
		return nil
	}
	what := "has no commit"
	if sha != "" {
		what = notACommit // which is not repeated: a stranger may have put anything there
	}
	return &Error{Reason: Implausible, Msg: of + " " + what, Hint: "the last good list stands"}
}
