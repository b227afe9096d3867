// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"regexp"
	"strings"
)

// What the API server takes for names. An object that it would refuse must not get
// into Git: Flux applies a folder as a whole, so one bad name (made from an id of
// somebody else's, perhaps) would keep all others from being applied.
// Source: Kubernetes, "Object Names and IDs"; RBAC names are path segments.
var (
	subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	dnsLabel  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	kindName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
	version   = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
)

const (
	maxSubdomain = 253 // characters
	maxLabel     = 63
)

// invalidName says what is wrong with an object's identity, or nothing.
func invalidName(object *Object) (msg, hint string) {
	id := object.ID
	group, v, grouped := strings.Cut(object.APIVersion, "/")
	if !grouped {
		group, v = "", object.APIVersion
	}
	switch {
	case v != "" && !version.MatchString(v), grouped && (!subdomain.MatchString(group) || len(group) > maxSubdomain):
		return "apiVersion is not of the form group/version", "write it into the template; it should not be made from an input"
	case !kindName.MatchString(id.Kind):
		return "kind is not a word", "write it into the template; it should not be made from an input"
	case id.Namespace != "" && (!dnsLabel.MatchString(id.Namespace) || len(id.Namespace) > maxLabel):
		return "metadata.namespace is no name of a namespace: lower-case letters, digits and dashes, at most 63",
			"put the value through slugify"
	case id.Group == "rbac.authorization.k8s.io":
		if strings.ContainsAny(id.Name, "/%") || id.Name == "." || id.Name == ".." {
			return "metadata.name must not hold / or %", "put the value through slugify"
		}
	case !subdomain.MatchString(id.Name) || len(id.Name) > maxSubdomain:
		return "metadata.name is no DNS subdomain: lower-case letters, digits, dashes and dots, beginning and ending with a letter or digit",
			"put the value through slugify, and mind that it may be empty"
	}
	return "", ""
}
