// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/pkg/expand"
)

// lockPair reads the locks of a folder before and after a commit, without the sets
// that are the same in both; nil where there is no lock. A commit changes few sets
// of many, and most of the time would go into reading the others (measured).
func (r *Repository) lockPair(before, after plumbing.Hash) (old, new *expand.Lock, err error) {
	oldText, hadLock, err := r.lockText(before)
	if err != nil {
		return nil, nil, err
	}
	newText, hasLock, err := r.lockText(after)
	if err != nil {
		return nil, nil, err
	}
	oldText, newText = withoutCommon(oldText, newText)
	if hadLock {
		if old, err = expand.ReadLock([]byte(oldText)); err != nil {
			return nil, nil, err
		}
	}
	if hasLock {
		if new, err = expand.ReadLock([]byte(newText)); err != nil {
			return nil, nil, err
		}
	}
	return old, new, nil
}

func (r *Repository) lockText(folder plumbing.Hash) (text string, found bool, err error) {
	if folder.IsZero() {
		return "", false, nil
	}
	e, err := r.at(folder, lockName)
	if err != nil || e.none() || e.isDir() {
		return "", false, err
	}
	data, err := r.read(plumbing.BlobObject, e.hash)
	return string(data), err == nil, err
}

// withoutCommon leaves the sets out of two locks that are in both, letter by
// letter. It knows no more of the format than where a set begins; what looks
// different is left as it is, for the parser to judge.
func withoutCommon(old, new string) (string, string) {
	oldHead, oldSets, oldTail, ok := cutSets(old)
	newHead, newSets, newTail, ok2 := cutSets(new)
	if !ok || !ok2 {
		return old, new
	}
	had := make(map[string]bool, len(oldSets))
	for _, set := range oldSets {
		had[set] = true
	}
	common := make(map[string]bool, len(newSets))
	for _, set := range newSets {
		if had[set] {
			common[set] = true
		}
	}
	return joinSets(oldHead, oldSets, oldTail, common), joinSets(newHead, newSets, newTail, common)
}

const (
	setsLine  = "\nsets:\n"
	setBegins = "  - "
)

// cutSets takes the text of a lock apart: what is before its sets, each set, and
// what is after them.
func cutSets(text string) (head string, sets []string, tail string, ok bool) {
	head, rest, ok := strings.Cut(text, setsLine)
	if !ok || !strings.HasPrefix(rest, setBegins) {
		return "", nil, "", false
	}
	begin := 0
	for at := 0; at < len(rest); {
		end := strings.IndexByte(rest[at:], '\n')
		if end < 0 {
			return "", nil, "", false
		}
		line := rest[at:]
		if at > begin && (strings.HasPrefix(line, setBegins) || line[0] != ' ') {
			sets = append(sets, rest[begin:at])
			begin = at
		}
		if line[0] != ' ' {
			return head, sets, rest[at:], true
		}
		at += end + 1
	}
	return head, append(sets, rest[begin:]), "", true
}

func joinSets(head string, sets []string, tail string, without map[string]bool) string {
	var b strings.Builder
	b.WriteString(head)
	b.WriteString(setsLine)
	n := b.Len()
	for _, set := range sets {
		if !without[set] {
			b.WriteString(set)
		}
	}
	if b.Len() == n {
		return head + "\nsets: []\n" + tail
	}
	b.WriteString(tail)
	return b.String()
}
