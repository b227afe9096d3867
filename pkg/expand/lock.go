// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"crypto/sha1" // Git names blobs by it; nothing here rests on its strength
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// LockVersion is the newest format of inputs.lock that this program knows. It writes
// the oldest one that can say what there is to say: 1 knows nothing of Flux.
const LockVersion = 2

// maxLockBytes is the largest inputs.lock that is read.
const maxLockBytes = 256 << 20

// A Lock is the content of inputs.lock: what a ResourceSet's folder was rendered
// from, and what was written. The committed manifests and the lock beside them
// always belong to the same rendering, so the lock says three things without any
// other state: what providers exported last time (see [Lock.Export]), which files
// are ours, and whether somebody else changed them since.
type Lock struct {
	// ResourceSet is the owner, "namespace/name".
	ResourceSet string
	// Kustomization is the Git blob of kustomization.yaml.
	Kustomization string
	// Keys maps, with Permute, the keys in the sets' inputs to provider names.
	// The key of the inline sets is not among them.
	Keys map[string]string
	// Shared are the files of the folder "shared", by file name.
	Shared map[string]SharedFile
	// Sets are in rendering order; sets kept although they are gone come last.
	Sets []LockedSet
	// Flux is what is there for Flux; nil without target.flux.
	Flux *LockedFlux
}

// A SharedFile is a manifest in the folder "shared".
type SharedFile struct {
	Blob string
	// Sets are the names of the sets that produced it, the one whose content it has
	// first. Nil with All, and for a ResourceSet without inputs.
	Sets []string
	// All says that every set of the lock produced it, in the lock's order.
	All bool
	// Part is the number of the part that applies it, and Step the step that it
	// belongs to, where Flux has several. 0 stands for 1.
	Part int
	Step string
}

// A LockedSet is an input set as inputs.lock records it.
type LockedSet struct {
	Name     string // the set's folder
	ID       string // inputs.id as text; empty where the set has none
	Provider string // empty for an inline set and a permutation
	Inline   bool
	// Kept says that the files are those of an earlier rendering than the rest: the
	// set failed since, or was held back. Inputs are those that made the files.
	Kept bool
	// Inputs are the values as exported, as far as templates read them.
	Inputs api.Input
	// Sensitive are the fields of Inputs that hold a digest in place of their value,
	// with Permute as "key/field".
	Sensitive []string
	// Files are the set's manifests: file name to Git blob.
	Files map[string]string
	// Part is the number of the part that applies the set, which it keeps for life,
	// and Steps are the steps that its files belong to, where Flux has several. 0
	// stands for 1.
	Part  int
	Steps map[string]string
}

// A NewerLockError is an inputs.lock that a newer version wrote. What is beside it
// must not be rewritten.
type NewerLockError struct{ Version int64 }

func (e *NewerLockError) Error() string {
	return fmt.Sprintf("%s has format %d; this version knows formats up to %d", LockFile, e.Version, LockVersion)
}

// Suggestion is the hint line that is printed below the error.
func (e *NewerLockError) Suggestion() string {
	return "run the version of renderer that wrote it, or a newer one"
}

// A DamagedLockError is an inputs.lock that cannot be read. Without it nobody knows
// which files are ours, so what is beside it must be left as it is.
type DamagedLockError struct {
	Line int // 0 when no line is to blame
	Msg  string
}

func (e *DamagedLockError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", LockFile, e.Line, e.Msg)
	}
	return LockFile + ": " + e.Msg
}

// Suggestion is the hint line that is printed below the error.
func (e *DamagedLockError) Suggestion() string {
	return "take the file from the last commit that renderer made; " +
		"or delete it alone and have it written anew"
}

// An IncompleteError is why recorded input sets cannot be rendered again.
type IncompleteError struct {
	Provider string
	Set      string
	Fields   []string
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("%s records %s of set %s only as a digest", LockFile, strings.Join(e.Fields, ", "), e.Set)
}

// Suggestion is the hint line that is printed below the error.
func (e *IncompleteError) Suggestion() string {
	return fmt.Sprintf("fields that provider %s lists in %s cannot be restored; wait for its next good answer",
		e.Provider, api.AnnotationSensitive)
}

// BlobHash is the name that Git gives to content, in hexadecimal digits.
func BlobHash(content []byte) string {
	h := sha1.New()
	h.Write(strconv.AppendInt([]byte("blob "), int64(len(content)), 10))
	h.Write([]byte{0})
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// Set returns the set of that name, or nil.
func (l *Lock) Set(name string) *LockedSet {
	for i := range l.Sets {
		if l.Sets[i].Name == name {
			return &l.Sets[i]
		}
	}
	return nil
}

// Files returns every file that the lock lists, kustomization.yaml included and
// inputs.lock not: path below the ResourceSet's folder to Git blob.
func (l *Lock) Files() map[string]string {
	if l == nil {
		return map[string]string{}
	}
	files := make(map[string]string, 1+len(l.Shared)+3*len(l.Sets))
	if l.Kustomization != "" {
		files[kustomizationFile] = l.Kustomization
	}
	for name, file := range l.Shared {
		files[sharedDir+"/"+name] = file.Blob
	}
	for _, set := range l.Sets {
		for name, blob := range set.Files {
			files[set.Name+"/"+name] = blob
		}
	}
	if l.Flux != nil {
		maps.Copy(files, l.Flux.Files)
	}
	return files
}

// Export returns the input sets that a provider exported when the files were
// rendered, in their order, for use in place of an answer that there is not yet.
// Each has only the fields that were recorded: id, what the folder's name was made
// from, and what templates read. For a provider that the lock does not mention
// there are none.
func (l *Lock) Export(provider string) ([]api.Input, error) {
	key, permuted := "", false
	for k, name := range l.Keys {
		if name == provider {
			key, permuted = k, true
		}
	}
	var exported []api.Input
	seen := map[string]bool{}
	for i := range l.Sets {
		set := &l.Sets[i]
		part, hidden := set.Inputs, set.Sensitive
		if permuted {
			part, hidden = set.part(key)
			text := string(appendMap(nil, part, 0)) // Permute repeats each set of a provider
			if part == nil || seen[text] {
				continue
			}
			seen[text] = true
		} else if set.Inline || set.Provider != provider {
			continue
		}
		if len(hidden) > 0 {
			return nil, &IncompleteError{Provider: provider, Set: set.Name, Fields: hidden}
		}
		if part == nil {
			part = api.Input{}
		}
		exported = append(exported, part)
	}
	return exported, nil
}

// part is what one provider contributed to a permutation, and which of its fields
// hold digests.
func (s *LockedSet) part(key string) (part api.Input, sensitive []string) {
	part, _ = s.Inputs[key].(map[string]any)
	for _, field := range s.Sensitive {
		if name, ok := strings.CutPrefix(field, key+"/"); ok {
			sensitive = append(sensitive, name)
		}
	}
	return part, sensitive
}

// Complete says that the recorded inputs suffice to render every set again.
func (l *Lock) Complete() bool {
	for i := range l.Sets {
		if len(l.Sets[i].Sensitive) > 0 {
			return false
		}
	}
	return true
}

// InputsDigest is "sha256:" and a digest of the recorded input sets, their order included.
func (l *Lock) InputsDigest() string {
	h := sha256.New()
	var line []byte
	for i := range l.Sets {
		line = appendQuoted(line[:0], l.Sets[i].Name)
		line = append(line, ':')
		line = appendYAML(line, l.Sets[i].Inputs, 2)
		h.Write(line)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
