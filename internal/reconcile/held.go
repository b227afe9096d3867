// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
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
	Used  []string   `json:"used,omitempty"` // approvals that have been used, newest last
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
func (f HeldFile) Approve(digest, by string) error {
	if !digestPattern.MatchString(digest) {
		return fmt.Errorf("%q is not the digest of a plan", digest)
	}
	dir := filepath.Join(f.directory, approvedName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// The time makes this approval another one than an earlier one of the same plan.
	text := fmt.Sprintf("%s\n%s\n", strings.Join(strings.Fields(by), " "), time.Now().UTC().Format(time.RFC3339Nano))
	return os.WriteFile(filepath.Join(dir, digest), []byte(text), 0o600)
}

// approvedBy is who released the plan, or empty, and what names this very approval.
func (f HeldFile) approvedBy(digest string) (by, id string) {
	data, err := os.ReadFile(filepath.Join(f.directory, approvedName, digest))
	if err != nil {
		return "", ""
	}
	by, _, _ = strings.Cut(strings.TrimSpace(string(data)), "\n")
	sum := sha256.Sum256(data)
	return cmp.Or(by, "an operator"), digest + "/" + hex.EncodeToString(sum[:6])
}

// use takes an approval back: it has been used.
func (f HeldFile) use(digest string) error {
	err := os.Remove(filepath.Join(f.directory, approvedName, digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ApprovalFile is where an approval is committed in the definitions repository,
// below source.path. Its name has no ending that Flux would read.
func ApprovalFile(digest string) string { return ".renderer/approved/" + digest }

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
