// SPDX-License-Identifier: Apache-2.0

package gitrepository

import (
	"path"
	"strings"

	"resourceset.example/renderer/pkg/source/provider"
)

// anyFolders is the part of a pattern that stands for any number of folders.
const anyFolders = "**"

// A glob is a pattern of paths, part by part.
type glob []string

func newGlobs(patterns []string) ([]glob, error) {
	globs := make([]glob, len(patterns))
	for i, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return nil, &provider.Error{
				Reason: provider.Misconfigured, Msg: "a pattern of spec.filter is not one of paths",
				Hint: `write a path from the root of the repository, like "apps/*" or "tenants/**/config.yaml"`,
			}
		}
		globs[i] = strings.Split(strings.Trim(path.Clean(pattern), "/"), "/")
	}
	return globs, nil
}

// matches tells whether the pattern is for this path.
func (g glob) matches(parts []string) bool {
	at := g.after(parts)
	for i, ok := range at {
		if !ok {
			continue
		}
		rest := g[i:]
		for len(rest) > 0 && rest[0] == anyFolders {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return true
		}
	}
	return false
}

// mayHold tells whether the pattern can be for a path below this folder.
func (g glob) mayHold(parts []string) bool {
	at := g.after(parts)
	for _, ok := range at[:len(g)] {
		if ok {
			return true
		}
	}
	return false
}

// after returns where in the pattern one can be when the parts have been read: at i
// if the first i parts of the pattern are used up. All ways are followed at once, so
// the time is that of the pattern times the path, whatever the pattern.
func (g glob) after(parts []string) []bool {
	at := g.skip(make([]bool, len(g)+1), 0)
	for _, part := range parts {
		next := make([]bool, len(g)+1)
		for i, pattern := range g {
			switch {
			case !at[i]:
			case pattern == anyFolders:
				next = g.skip(next, i)
			default:
				if ok, _ := path.Match(pattern, part); ok {
					next = g.skip(next, i+1)
				}
			}
		}
		at = next
	}
	return at
}

// skip marks a place, and those behind it that no part is needed for.
func (g glob) skip(at []bool, i int) []bool {
	at[i] = true
	for i < len(g) && g[i] == anyFolders {
		i++
		at[i] = true
	}
	return at
}
