// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/expand"
)

// claimed compares the message's lists of input sets with what the records say, and
// with the hand edits that the commit undoes. A commit that was taken out of the
// history shows here: the next one changes more than it claims.
func (e *examination) claimed(set *setClaim, old, lock *expand.Lock) error {
	if old == nil {
		old = &expand.Lock{}
	}
	var added, updated, removed []string
	for i := range lock.Sets {
		now := &lock.Sets[i]
		switch was := old.Set(now.Name); {
		case was == nil:
			added = append(added, now.Name)
		case now.Kept:
		case !maps.Equal(was.Files, now.Files):
			updated = append(updated, now.Name)
		default:
			undone, err := e.undoesEdit(path.Join(e.Target, set.resourceSet), now)
			if err != nil {
				return err
			}
			if undone {
				updated = append(updated, now.Name)
			}
		}
	}
	for i := range old.Sets {
		if name := old.Sets[i].Name; lock.Set(name) == nil {
			removed = append(removed, name)
		}
	}
	for _, list := range []struct {
		key  string
		said inputList
		is   []string
	}{{"Input-Added", set.added, added}, {"Input-Updated", set.updated, updated}, {"Input-Removed", set.removed, removed}} {
		is := list.is
		if list.said.cut {
			is = is[:min(len(is), len(list.said.names))]
		}
		if !slices.Equal(list.said.names, is) {
			e.altered("", fmt.Sprintf("the message says %s: %s, but it is %s", list.key, enumerate(list.said.names), enumerate(is)))
		}
	}
	return nil
}

// undoesEdit reports whether the commit puts a file of a set right that its parent does
// not have as it is recorded: then the set changed, although its record did not.
func (e *examination) undoesEdit(folder string, set *expand.LockedSet) (bool, error) {
	for file, blob := range set.Files {
		name := path.Join(folder, set.Name, file)
		was, err := e.at(e.parentTree, name)
		if err != nil {
			return false, err
		}
		if was.hash.String() == blob && was.mode == modeFile {
			continue
		}
		is, err := e.at(e.tree, name)
		if err != nil {
			return false, err
		}
		if is.hash.String() == blob && is.mode == modeFile {
			return true, nil
		}
	}
	return false, nil
}

func enumerate(names []string) string {
	const shown = 5
	if len(names) == 0 {
		return "none"
	}
	text := strings.Join(names[:min(len(names), shown)], ", ")
	if more := len(names) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
