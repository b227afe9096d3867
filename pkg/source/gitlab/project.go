// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
)

// A project is what spec.url names.
type project struct {
	path string   // "group/subgroup/name"
	api  *url.URL // base of the REST API, with a slash at its end
	deep bool     // the path may begin with one that the server is below
}

// parseProject reads the address of a project. Groups can be nested, so nothing tells
// a server below a path from a group of that name: where the annotation
// renderer/base-url does not say otherwise, all of the path is the project's. To try
// both would be to take an answer of the wrong one for good some day.
func parseProject(object *api.ResourceSetInputProvider) (*project, error) {
	u, parts, err := provider.ParseRepositoryURL(object.Spec.URL)
	if err != nil {
		return nil, err
	}
	if before, _, ok := provider.CutAPI(parts, "api", "v4"); ok {
		return nil, provider.RefuseAPI(u, u.Host, append(slices.Clone(before), projectIn(u))...)
	}
	if end := slices.Index(parts, "-"); end >= 0 {
		parts = parts[:end] // "/-/" begins a page within a project
	}
	base, err := baseOf(object, u)
	if err != nil {
		return nil, err
	}
	prefix := strings.FieldsFunc(base.Path, func(r rune) bool { return r == '/' })
	if len(parts) < len(prefix)+2 || !slices.Equal(parts[:len(prefix)], prefix) {
		return nil, &provider.Error{
			Reason: provider.Misconfigured,
			Msg:    "spec.url names no project",
			Hint:   "write " + strings.TrimRight(base.String(), "/") + "/GROUP/PROJECT",
		}
	}
	return &project{
		path: strings.Join(parts[len(prefix):], "/"),
		api:  &url.URL{Scheme: base.Scheme, Host: base.Host, Path: "/" + path.Join(path.Join(prefix...), "api/v4") + "/"},
		deep: len(prefix) == 0 && len(parts) > 2,
	}, nil
}

// baseOf is the server's own address: that of the annotation, or the host of the URL.
func baseOf(object *api.ResourceSetInputProvider, u *url.URL) (*url.URL, error) {
	raw := object.Annotations[api.AnnotationBaseURL]
	if raw == "" {
		return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
	}
	base, err := provider.ParseURL(raw)
	if err != nil || base.Scheme != u.Scheme || !strings.EqualFold(base.Host, u.Host) {
		return nil, &provider.Error{
			Reason: provider.Misconfigured,
			Msg:    "spec.url is not below the annotation " + api.AnnotationBaseURL,
			Hint:   "the annotation is where GitLab's first page is, like https://host/gitlab",
		}
	}
	base.RawQuery = ""
	base.Path = strings.TrimSuffix(strings.TrimRight(path.Clean("/"+base.Path), "/"), "/api/v4")
	return base, nil
}

// resource is the path of something of the project, encoded exactly once.
func (p *project) resource(name string) string {
	return "projects/" + url.PathEscape(p.path) + "/" + name
}

// projectIn is the path of the project that an address in the API names, as far as it
// does not name it by a number.
func projectIn(u *url.URL) string {
	_, after, _ := provider.CutAPI(strings.Split(u.EscapedPath(), "/"), "api", "v4", "projects")
	if len(after) > 0 {
		if project, err := url.PathUnescape(after[0]); err == nil && strings.Contains(project, "/") {
			return project
		}
	}
	return "GROUP/PROJECT"
}
