// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// A claim is what a commit of renderer says about itself in its trailers.
type claim struct {
	revision string // "main@sha1:…"
	trigger  string
	undoes   string     // the commit of a hand edit that is undone
	sets     []setClaim // one for each ResourceSet, in the message's order
}

// A setClaim is what it says about one ResourceSet.
type setClaim struct {
	resourceSet             string // namespace/name
	digest                  string // of the inputs, "sha256:…"; empty when the ResourceSet went
	added, updated, removed inputList
	sharedHeld              bool // the objects of no single set are as somebody left them
}

// An inputList is the values of one key. A long one is cut.
type inputList struct {
	names []string
	cut   bool
}

// source is the commit that the revision names; zero when it names none.
func (c *claim) source() plumbing.Hash {
	_, hash, ok := strings.Cut(c.revision, "@sha1:")
	if !ok || !plumbing.IsHash(hash) {
		return plumbing.ZeroHash
	}
	return plumbing.NewHash(hash)
}

// holdsShared reports whether a commit says that it leaves the objects of no single set
// of a ResourceSet as somebody left them.
func (c *claim) holdsShared(resourceSet string) bool {
	return c != nil && slices.ContainsFunc(c.sets, func(s setClaim) bool { return s.resourceSet == resourceSet && s.sharedHeld })
}

// claimOf reads the trailers of a message; nil when it is not one of ours.
func claimOf(message string) *claim {
	c := &claim{}
	for _, t := range trailers(message) {
		key, value := t[0], t[1]
		switch key {
		case "ResourceSet":
			c.sets = append(c.sets, setClaim{resourceSet: value})
			continue
		case "Source-Revision":
			c.revision = value
			continue
		case "Trigger":
			c.trigger = value
			continue
		case "Undoes":
			c.undoes = value
			continue
		}
		if len(c.sets) == 0 {
			continue
		}
		set := &c.sets[len(c.sets)-1]
		switch key {
		case "Inputs-Digest":
			set.digest = value
		case "Held":
			set.sharedHeld = set.sharedHeld || value == sharedFolder
		case "Input-Added":
			set.added.add(value)
		case "Input-Updated":
			set.updated.add(value)
		case "Input-Removed":
			set.removed.add(value)
		}
	}
	if len(c.sets) == 0 || c.revision == "" {
		return nil
	}
	return c
}

// add takes one value: a set's folder, or "+7 more".
func (l *inputList) add(value string) {
	if strings.HasPrefix(value, "+") {
		l.cut = true
		return
	}
	l.names = append(l.names, value)
}

// trailers are the lines of a message's last paragraph, if all of them are
// trailers, as keys and values.
func trailers(message string) [][2]string {
	message = strings.TrimRight(strings.ReplaceAll(message, "\r\n", "\n"), "\n ")
	at := strings.LastIndex(message, "\n\n")
	if at < 0 {
		return nil
	}
	var found [][2]string
	for line := range strings.SplitSeq(message[at+2:], "\n") {
		key, value, ok := strings.Cut(line, ": ")
		if !ok || key == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
			return nil
		}
		found = append(found, [2]string{key, strings.TrimSpace(value)})
	}
	return found
}

// A release is what renderer release records in a commit without files: an end to
// holding input sets as somebody left them.
type release struct {
	resourceSet, by string
	sets            []string
}

// releaseOf is nil for a message that is not of a release.
func releaseOf(message string) *release {
	if !strings.Contains(message, "\nReleased: ") {
		return nil
	}
	r := &release{}
	for _, t := range trailers(message) {
		switch t[0] {
		case "ResourceSet":
			r.resourceSet = t[1]
		case "Released":
			r.sets = append(r.sets, t[1])
		case "Released-By":
			r.by = t[1]
		}
	}
	if r.resourceSet == "" || len(r.sets) == 0 {
		return nil
	}
	return r
}

// reverts is the commit that a message says it reverts, as git revert writes it.
func reverts(message string) string {
	_, rest, ok := strings.Cut(message, "This reverts commit ")
	if !ok || len(rest) < 40 || !plumbing.IsHash(rest[:40]) {
		return ""
	}
	return rest[:40]
}
