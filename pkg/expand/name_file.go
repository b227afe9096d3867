// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"path"
	"strings"
)

const (
	manifestEnding = ".yaml"
	// maxFileName is the longest file name; most file systems refuse over 255 bytes.
	maxFileName = 200
	rbacGroup   = "rbac.authorization.k8s.io"
)

// FileName is the name of an object's manifest: the object's ID in a Flux
// inventory, <namespace>_<name>_<group>_<kind>, and ".yaml". Where a file system
// could refuse or fold a letter of it, or where it would be too long, the name is cut
// and gets a digest. No two objects have the same name.
func FileName(id ObjectID) string {
	if name := id.inventoryID() + manifestEnding; id.isPlain() && len(name) <= maxFileName {
		return name
	}
	return id.digestedFileName()
}

// inventoryID is the object's ID in a Flux inventory. Flux writes the colons in the names
// of roles and role bindings as "__".
func (id ObjectID) inventoryID() string {
	name := id.Name
	if id.Group == rbacGroup {
		name = strings.ReplaceAll(name, ":", "__")
	}
	return id.Namespace + "_" + name + "_" + id.Group + "_" + id.Kind
}

// isPlain says that the ID can be a file's name: no letter in it is foldable but
// those of the kind, and the underscores part it without ambiguity.
func (id ObjectID) isPlain() bool {
	name := id.Name
	if id.Group == rbacGroup {
		name = strings.ReplaceAll(name, ":", "-")
	}
	return only(id.Namespace, "-") && !strings.HasPrefix(id.Namespace, "-") &&
		only(name, "-.") && name != "" && only(id.Group, "-.") &&
		only(strings.ToLower(id.Kind), "") && id.Kind != ""
}

// only says that text has nothing but lower-case letters, digits and the bytes of more.
func only(text, more string) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if ('a' > c || c > 'z') && ('0' > c || c > '9') && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return true
}

// digestedFileName shows what is readable of the ID and ends in a digest of all of it.
func (id ObjectID) digestedFileName() string {
	kind := strings.Map(func(r rune) rune {
		if r < 0x80 && only(strings.ToLower(string(r)), "") {
			return r
		}
		return -1
	}, id.Kind)
	// The parts are cut one by one, so that all of them show: together with the digest
	// they have less than maxFileName bytes.
	shown := cut(slug(id.Namespace), 50) + "_" + cut(slug(id.Name), 60) + "_" + cut(slug(id.Group), 40) + "_" + cut(kind, 25)
	return digested(shown, maxFileName-len(manifestEnding), key("object", id.Namespace, id.Name, id.Group, id.Kind)) + manifestEnding
}

// isManifestName says that name is one that FileName can return.
func isManifestName(name string) bool {
	stem, ok := strings.CutSuffix(name, manifestEnding)
	return ok && len(name) <= maxFileName && only(strings.ToLower(stem), "-._") &&
		strings.Contains(stem, "_") && stem[0] != '.' && stem[0] != '-'
}

// IsManifest says that a file in a ResourceSet's folder is a manifest: the others are
// lists and records, which have the same names in every folder.
func IsManifest(file string) bool { return isManifestName(path.Base(file)) }
