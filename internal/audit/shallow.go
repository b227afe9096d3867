// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"time"
)

// A ShallowError says where the history of a clone begins although there was more.
type ShallowError struct {
	Repository string
	Commits    []string // the boundary
}

func (e *ShallowError) Error() string {
	return fmt.Sprintf("%s is a shallow clone: its history begins at commit %.12s, and what that commit and earlier ones did is not known",
		e.Repository, e.Commits[0])
}

// Suggestion is what to do about it.
func (e *ShallowError) Suggestion() string {
	return "git fetch --unshallow, or leave --repository out to have the whole branch fetched"
}

// Begins is nil when the history of the branch is there from its first commit, or at
// least from since on.
func (r *Repository) Begins(since time.Time) (*ShallowError, error) {
	all, err := r.walk()
	if err != nil {
		return nil, err
	}
	e := &ShallowError{Repository: r.name}
	for _, c := range all {
		if c.cut && !c.when.Before(since) {
			e.Commits = append(e.Commits, c.hash.String())
		}
	}
	if len(e.Commits) == 0 {
		return nil, nil
	}
	return e, nil
}
