// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"sigs.k8s.io/yaml"
)

// An ObjectRef names a Kubernetes object. Namespace is empty for one without.
type ObjectRef struct{ Kind, Namespace, Name string }

// ParseObjectRef reads "Kind/namespace/name", or "Kind/name" for an object without
// a namespace. As in kubectl, the case of the kind does not matter.
func ParseObjectRef(text string) (*ObjectRef, error) {
	parts := strings.Split(text, "/")
	for _, part := range parts {
		if part == "" {
			return nil, fmt.Errorf("%q is not of the form Kind/namespace/name", text)
		}
	}
	switch len(parts) {
	case 2:
		return &ObjectRef{Kind: parts[0], Name: parts[1]}, nil
	case 3:
		return &ObjectRef{Kind: parts[0], Namespace: parts[1], Name: parts[2]}, nil
	}
	return nil, fmt.Errorf("%q is not of the form Kind/namespace/name", text)
}

// cutName is a manifest's name that shows only part of the object's identity.
var cutName = regexp.MustCompile(`-x[0-9a-f]{12}\.yaml$`)

// concerns reports whether an event touches the manifest of an object.
func (h *historian) concerns(e Event, ref *ObjectRef) (bool, error) {
	plain := ref.Namespace + "_" + strings.ReplaceAll(ref.Name, ":", "__") + "_"
	for _, f := range e.Files {
		name := path.Base(f.Path)
		if strings.HasPrefix(name, plain) && strings.EqualFold(name[strings.LastIndexByte(name, '_')+1:], ref.Kind+".yaml") {
			return true, nil
		}
		if !cutName.MatchString(name) {
			continue
		}
		found, err := h.holds(e, f, ref)
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// holds reads a manifest whose name does not say what it holds: as the commit has
// it, or as its parent had it.
func (h *historian) holds(e Event, f FileChange, ref *ObjectRef) (bool, error) {
	c, err := h.commit(plumbing.NewHash(e.Commit))
	if err == nil && f.Change == "D" {
		c, err = h.parent(c)
	}
	if err != nil || c == nil {
		return false, err
	}
	file, err := h.at(c.tree, f.Path)
	if err != nil || file.none() || file.isDir() {
		return false, err
	}
	data, err := h.read(plumbing.BlobObject, file.hash)
	if err != nil {
		return false, err
	}
	var object struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if yaml.Unmarshal(data, &object) != nil {
		return false, nil // somebody else's file
	}
	return strings.EqualFold(object.Kind, ref.Kind) && object.Metadata.Namespace == ref.Namespace && object.Metadata.Name == ref.Name, nil
}
