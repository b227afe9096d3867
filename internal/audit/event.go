// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"time"
)

// An EventKind is what happened.
type EventKind string

// What happened to an input set, or to a folder that somebody else touched.
const (
	Added   EventKind = "added"
	Updated EventKind = "updated"
	Removed EventKind = "removed"
	// Held is a set whose files stay those of an earlier rendering: it failed, or its
	// change was held back.
	Held EventKind = "held"
	// Edited is a change that renderer did not make, and Reverted one that undoes a commit.
	Edited   EventKind = "edited"
	Reverted EventKind = "reverted"
	// Restored is a hand edit that renderer undid, and Released an end to holding sets
	// as somebody left them.
	Restored EventKind = "restored"
	Released EventKind = "released"
	// Flux is a change to how Flux applies a ResourceSet, and Listed one that only brings
	// a list up to what there is. Nobody edited anything.
	Flux   EventKind = "flux"
	Listed EventKind = "listed"
)

// An Event is one line of the timeline. Its JSON form is documented in
// docs/history.md and stays as it is.
type Event struct {
	Time   time.Time `json:"time"` // of committing
	Commit string    `json:"commit"`
	Kind   EventKind `json:"event"`
	// ResourceSet is "namespace/name"; empty for a file that is in no ResourceSet's folder.
	ResourceSet string `json:"resourceSet,omitempty"`
	// Input is the input set's folder: "shared" for the objects of no single set, empty
	// for the ResourceSet as a whole.
	Input    string `json:"input,omitempty"`
	ID       string `json:"id,omitempty"`
	Provider string `json:"provider,omitempty"`
	// Inputs are the folders of the sets that an edit, a revert or a release is about.
	Inputs []string      `json:"inputs,omitempty"`
	Fields []FieldChange `json:"fields,omitempty"`
	Files  []FileChange  `json:"files,omitempty"`
	// Trigger and Revision are empty for what renderer did not do.
	Trigger    string    `json:"trigger,omitempty"`
	Revision   string    `json:"revision,omitempty"`
	Reverts    string    `json:"reverts,omitempty"` // the commit that is undone
	ReleasedBy string    `json:"releasedBy,omitempty"`
	Subject    string    `json:"subject"`
	Renderer   bool      `json:"renderer"` // the commit has renderer's trailers
	Author     Person    `json:"author"`
	Committer  Person    `json:"committer"`
	Signature  Signature `json:"signature"`
}

// A FieldChange is a recorded input value that came, changed or went.
type FieldChange struct {
	Name string `json:"name"` // with dots for nested ones
	Old  any    `json:"old"`  // null where there was none
	New  any    `json:"new"`
	// Sensitive says that digests stand for the values.
	Sensitive bool `json:"sensitive,omitempty"`
}

// A FileChange is a file that came, changed or went.
type FileChange struct {
	Path   string `json:"path"`   // from the root of the repository
	Change string `json:"change"` // "A", "M" or "D", as git status shows it
}

// newEvent fills in what is the same for all events of a commit.
func newEvent(c *commit, said *claim) Event {
	e := Event{
		Time: c.when.UTC(), Commit: c.hash.String(), Subject: c.subject(),
		Author: c.author, Committer: c.committer, Signature: signatureOf(c.signature),
	}
	if said != nil {
		e.Renderer, e.Trigger, e.Revision, e.Reverts = true, said.trigger, said.revision, said.undoes
	}
	return e
}
