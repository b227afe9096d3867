// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A HeldPlan is a removal that the prune guard holds back, as it is kept in the
// state folder: what would go, since when, and how many fetches have agreed.
type HeldPlan struct {
	// Digest names exactly this plan: the ResourceSet, the sets that would go and
	// what they were rendered from.
	Digest      string    `json:"digest"`
	ResourceSet string    `json:"resourceSet"`
	Whole       bool      `json:"whole,omitempty"` // the ResourceSet itself would go
	Sets        []string  `json:"sets,omitempty"`
	Reason      string    `json:"reason"`
	Since       time.Time `json:"since"`
	Fetches     int       `json:"fetches"`
	LastFetch   time.Time `json:"lastFetch"`

	ended bool // there is an approval of it whose time has passed
}

// A HeldFile is the memory of the prune guard below the state folder. Losing it
// starts the counts again and forgets approvals that were not used yet.
type HeldFile struct{ directory string }

// OpenHeld names the memory below a state folder; nothing is read yet.
func OpenHeld(stateDirectory string) HeldFile {
	return HeldFile{directory: filepath.Join(stateDirectory, "held")}
}

const (
	heldName     = "plans.json"
	approvedName = "approved"
	maxUsed      = 1000 // approvals that are remembered as used
)

var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

type heldDocument struct {
	Plans []HeldPlan `json:"plans"`
	Used  []string   `json:"used,omitempty"` // approvals that count no more, newest last
	// Lapsed is when a plan, by its digest, was seen not to be wanted any more.
	Lapsed map[string]time.Time `json:"lapsed,omitempty"`
}

// Plans are the plans that are held now, by ResourceSet.
func (f HeldFile) Plans() ([]HeldPlan, error) {
	doc, err := f.read()
	return doc.Plans, err
}

func (f HeldFile) read() (heldDocument, error) {
	var doc heldDocument
	data, err := os.ReadFile(filepath.Join(f.directory, heldName))
	if errors.Is(err, fs.ErrNotExist) {
		return doc, nil
	}
	if err != nil {
		return doc, err
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return heldDocument{}, fmt.Errorf("%s: %w", heldName, err)
	}
	return doc, nil
}

// write replaces the file in one step, so that a reader never sees half of it.
func (f HeldFile) write(doc heldDocument) error {
	if err := os.MkdirAll(f.directory, 0o700); err != nil {
		return err
	}
	slices.SortFunc(doc.Plans, func(a, b HeldPlan) int { return strings.Compare(a.ResourceSet, b.ResourceSet) })
	if n := len(doc.Used); n > maxUsed {
		doc.Used = doc.Used[n-maxUsed:]
	}
	data, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	temp := filepath.Join(f.directory, heldName+".new")
	if err := os.WriteFile(temp, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(f.directory, heldName))
}

// Approve releases the plan of that digest, once.
func (f HeldFile) Approve(digest, by string, now time.Time) error {
	if !digestPattern.MatchString(digest) {
		return fmt.Errorf("%q is not the digest of a plan", digest)
	}
	dir := filepath.Join(f.directory, approvedName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, digest), ApprovalText(by, now), 0o600)
}

// approval is the one of a plan in the state folder, or none.
func (f HeldFile) approval(digest string) approval {
	data, err := os.ReadFile(filepath.Join(f.directory, approvedName, digest))
	if err != nil {
		return approval{}
	}
	return parseApproval(digest, data)
}

// use takes an approval back: it has been used, or what it was for has passed.
func (f HeldFile) use(digest string) error {
	err := os.Remove(filepath.Join(f.directory, approvedName, digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// planDigest names a removal. What else changes in the ResourceSet meanwhile does
// not matter; the sets that go, and what they were rendered from, do.
func planDigest(pl *plan, sets []string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q whole=%t\n", pl.name, pl.removed)
	for _, name := range sets {
		fmt.Fprintf(h, "%q", name)
		if pl.previous != nil && pl.previous.lock != nil {
			if set := pl.previous.lock.Set(name); set != nil {
				data, err := json.Marshal(set.Inputs)
				if err == nil { // JSON values always marshal
					h.Write(data)
				}
			}
		}
		h.Write([]byte("\n"))
	}
	return hex.EncodeToString(h.Sum(nil))
}
