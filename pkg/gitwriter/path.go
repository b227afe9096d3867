// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	maxComponent = 255  // bytes: what common file systems can check out
	maxPath      = 4096 // bytes
)

// checkPath refuses slash paths that a Git tree must not hold: those that leave the
// repository, that a checkout could not create, or that name Git's own folder in any
// spelling that some file system takes for it.
func checkPath(path string) error {
	if path == "" {
		return &PathError{Path: path, Reason: "is empty"}
	}
	if len(path) > maxPath {
		return &PathError{Path: path[:64] + "…", Reason: fmt.Sprintf("is longer than %d bytes", maxPath)}
	}
	for _, part := range strings.Split(path, "/") {
		if reason := badComponent(part); reason != "" {
			return &PathError{Path: path, Reason: reason}
		}
	}
	return nil
}

func badComponent(part string) string {
	switch {
	case part == "":
		return "has an empty component"
	case part == "." || part == "..":
		return "has the component " + part
	case len(part) > maxComponent:
		return fmt.Sprintf("has a component of more than %d bytes", maxComponent)
	case strings.ContainsAny(part, "\x00\\"):
		return "has a NUL or a backslash"
	case !utf8.ValidString(part):
		return "is not valid UTF-8"
	case isDotGit(part):
		return "names Git's own folder"
	}
	return ""
}

// isDotGit tells whether some file system could open .git under this name: FAT and
// NTFS fold case, drop trailing dots and spaces, know the short name GIT~1 and streams
// (".git::$INDEX_ALLOCATION"); HFS+ ignores some invisible characters.
func isDotGit(part string) bool {
	name := strings.Map(dropIgnorable, part)
	if stream := strings.IndexByte(name, ':'); stream >= 0 {
		name = name[:stream]
	}
	name = strings.ToLower(strings.TrimRight(name, ". "))
	return name == ".git" || name == "git~1"
}

// dropIgnorable removes the code points that HFS+ does not compare.
func dropIgnorable(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	}
	return r
}
