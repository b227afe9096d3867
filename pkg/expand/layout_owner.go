// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// A Claim is what one ResourceSet wants in its folder.
type Claim struct {
	ResourceSet string // "namespace/name"
	// Files are the paths below its folder: the keys of [Output.Files], or of
	// [Lock.Files] when it was not laid out in this pass.
	Files []string
	// Previous is its committed inputs.lock, or nil.
	Previous *Lock
}

// A Conflict is an object that two ResourceSets want. It is the error of the loser.
type Conflict struct {
	File                string // the manifest's file name: see LayoutParams.Refused
	Owner, Loser        string // "namespace/name"
	OwnerSet, LoserSet  string // folders: a set's name, or "shared"
	alreadyHasCommitted bool
}

func (c *Conflict) Error() string {
	text := "ResourceSet " + c.Loser + ": " + describeFile(c.File) + " (" + c.LoserSet + ") belongs to ResourceSet " +
		c.Owner + " (" + c.OwnerSet + ")"
	if c.alreadyHasCommitted {
		return text + ", which has it in Git already"
	}
	return text + ", which comes first by name"
}

// Suggestion is the hint line that is printed below the error.
func (c *Conflict) Suggestion() string {
	return "one object has one owner: give it another name or namespace in one of the two, or remove it there"
}

// FindConflicts finds the objects that several ResourceSets want, whatever their
// versions: such a pair fails every kustomize build above both. The one that has
// the object in Git keeps it; failing that, the first by name. The conflicts are
// sorted by loser and file.
func FindConflicts(claims []Claim) []Conflict {
	type claimant struct{ claim, file int }
	total := 0
	for i := range claims {
		total += len(claims[i].Files)
	}
	first := make(map[string]claimant, total)
	contested := map[string][]claimant{}
	for i := range claims {
		for j, file := range claims[i].Files {
			if !IsManifest(file) {
				continue
			}
			name := path.Base(file)
			other, taken := first[name]
			if !taken {
				first[name] = claimant{i, j}
				continue
			}
			if contested[name] == nil {
				contested[name] = []claimant{other}
			}
			contested[name] = append(contested[name], claimant{i, j})
		}
	}
	var conflicts []Conflict
	for name, wanted := range contested {
		has := func(c claimant) bool { return claims[c.claim].Previous.lists(name) }
		slices.SortFunc(wanted, func(a, b claimant) int {
			return cmp.Or(-compareBool(has(a), has(b)), strings.Compare(claims[a.claim].ResourceSet, claims[b.claim].ResourceSet))
		})
		owner := wanted[0]
		for _, loser := range wanted[1:] {
			conflicts = append(conflicts, Conflict{
				File:  name,
				Owner: claims[owner.claim].ResourceSet, OwnerSet: path.Dir(claims[owner.claim].Files[owner.file]),
				Loser: claims[loser.claim].ResourceSet, LoserSet: path.Dir(claims[loser.claim].Files[loser.file]),
				alreadyHasCommitted: has(owner),
			})
		}
	}
	slices.SortFunc(conflicts, func(a, b Conflict) int {
		return cmp.Or(strings.Compare(a.Loser, b.Loser), strings.Compare(a.File, b.File))
	})
	return conflicts
}

// compareBool puts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// lists says that the lock lists a manifest of that file name in any folder.
func (l *Lock) lists(name string) bool {
	if l == nil {
		return false
	}
	if _, ok := l.Shared[name]; ok {
		return true
	}
	for i := range l.Sets {
		if _, ok := l.Sets[i].Files[name]; ok {
			return true
		}
	}
	if l.Flux != nil {
		_, ok := l.Flux.Files[fluxDir+"/"+name]
		return ok
	}
	return false
}

// describeFile is the object that a file name stands for, as messages name it.
func describeFile(name string) string {
	parts := strings.Split(strings.TrimSuffix(name, manifestEnding), "_")
	n := len(parts)
	if n < 4 || strings.Contains(parts[n-1], "-") {
		return name // cut, with a digest
	}
	colons := strings.ReplaceAll(strings.Join(parts[1:n-2], "_"), "__", ":")
	return ObjectID{Group: parts[n-2], Kind: parts[n-1], Namespace: parts[0], Name: colons}.String()
}
