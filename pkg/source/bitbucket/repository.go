// SPDX-License-Identifier: Apache-2.0

package bitbucket

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/source/provider"
)

// A repository is what spec.url names.
type repository struct {
	cloud bool
	web   *url.URL // the repository's page
	api   *url.URL // the repository in the REST API, with a slash at its end
	root  *url.URL // the REST API, with a slash at its end
}

// cloudAPI is where Bitbucket Cloud has its API.
const cloudAPI = "https://api.bitbucket.org/2.0/"

// parseURL reads the address of a repository. On bitbucket.org that is
// WORKSPACE/REPOSITORY; a server of one's own has projects/KEY/repos/NAME or
// users/NAME/repos/NAME for people, and scm/KEY/NAME for Git, maybe below a folder.
func parseURL(raw string) (*repository, error) {
	if fixed, ok := fromSSH(raw); ok {
		return nil, &provider.Error{
			Reason: provider.Misconfigured,
			Msg:    "spec.url is an SSH address, but the API is asked over HTTPS",
			Hint:   "write " + fixed,
		}
	}
	u, err := provider.ParseURL(raw)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(strings.Trim(path.Clean(u.Path), "/"), "/")
	parts[len(parts)-1] = strings.TrimSuffix(parts[len(parts)-1], ".git")
	if slices.ContainsFunc(parts, func(part string) bool { return part == "." || part == ".." }) {
		parts = nil
	}
	if err := refuseAPI(u, parts); err != nil {
		return nil, err
	}
	if host := strings.ToLower(u.Hostname()); host == "bitbucket.org" || host == "www.bitbucket.org" {
		return cloudRepository(u, parts)
	}
	return serverRepository(u, parts)
}

// refuseAPI fails for an address in the API. That of a server has the form of a page.
func refuseAPI(u *url.URL, parts []string) error {
	if strings.EqualFold(u.Host, "api.bitbucket.org") {
		_, after, _ := provider.CutAPI(parts, "repositories")
		if len(after) < 2 {
			after = []string{"WORKSPACE", "REPOSITORY"}
		}
		return provider.RefuseAPI(u, "bitbucket.org", after[:2]...)
	}
	before, after, ok := provider.CutAPI(parts, "rest", "api")
	if !ok {
		return nil
	}
	if len(after) < 5 || after[3] != "repos" { // the first one is the version
		after = []string{"", "projects", "KEY", "repos", "NAME"}
	}
	return provider.RefuseAPI(u, u.Host, append(slices.Clone(before), after[1:5]...)...)
}

func cloudRepository(u *url.URL, parts []string) (*repository, error) {
	if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		hint := "write https://bitbucket.org/WORKSPACE/REPOSITORY"
		if len(parts) > 2 {
			hint = "write https://bitbucket.org/" + parts[0] + "/" + strings.TrimSuffix(parts[1], ".git")
		}
		return nil, notARepositoryURL(u, hint)
	}
	root, err := url.Parse(cloudAPI)
	if err != nil {
		return nil, err
	}
	return &repository{
		cloud: true,
		web:   &url.URL{Scheme: "https", Host: "bitbucket.org", Path: "/" + parts[0] + "/" + parts[1]},
		root:  root,
		api:   root.JoinPath("repositories", url.PathEscape(parts[0]), url.PathEscape(parts[1]), "/"),
	}, nil
}

func serverRepository(u *url.URL, parts []string) (*repository, error) {
	if last := len(parts) - 1; last >= 0 && parts[last] == "browse" {
		parts = parts[:last] // what the browser shows
	}
	n := len(parts)
	var prefix []string
	var project, name string
	switch {
	case n >= 4 && parts[n-4] == "projects" && parts[n-2] == "repos":
		prefix, project, name = parts[:n-4], parts[n-3], parts[n-1]
	case n >= 4 && parts[n-4] == "users" && parts[n-2] == "repos":
		prefix, project, name = parts[:n-4], "~"+parts[n-3], parts[n-1]
	case n >= 3 && parts[n-3] == "scm":
		prefix, project, name = parts[:n-3], parts[n-2], parts[n-1]
	}
	if project == "" || name == "" {
		return nil, notARepositoryURL(u, fmt.Sprintf(
			"write %s://%s/projects/KEY/repos/NAME, as the browser shows it; for Bitbucket Cloud, the host is bitbucket.org", u.Scheme, u.Host))
	}
	base := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}
	for _, folder := range prefix {
		base = base.JoinPath(url.PathEscape(folder))
	}
	web := base.JoinPath("projects", url.PathEscape(project), "repos", url.PathEscape(name))
	if user, ok := strings.CutPrefix(project, "~"); ok {
		web = base.JoinPath("users", url.PathEscape(user), "repos", url.PathEscape(name))
	}
	root := base.JoinPath("rest", "api", "1.0", "/")
	return &repository{web: web, root: root, api: root.JoinPath("projects", url.PathEscape(project), "repos", url.PathEscape(name), "/")}, nil
}

func notARepositoryURL(u *url.URL, hint string) error {
	return &provider.Error{
		Reason: provider.Misconfigured,
		Msg:    fmt.Sprintf("spec.url names no repository: its path is %q", u.Path),
		Hint:   hint,
	}
}

// fromSSH turns git@bitbucket.org:workspace/name.git and
// ssh://git@host:7999/key/name.git into what was meant.
func fromSSH(raw string) (string, bool) {
	rest, isURL := strings.CutPrefix(raw, "ssh://")
	if !isURL && (strings.Contains(raw, "://") || !strings.Contains(raw, ":")) {
		return "", false
	}
	if _, after, ok := strings.Cut(rest, "@"); ok {
		rest = after
	}
	separator := ":"
	if isURL {
		separator = "/"
	}
	host, repo, ok := strings.Cut(rest, separator)
	repo = strings.TrimSuffix(strings.Trim(repo, "/"), ".git")
	owner, name, two := strings.Cut(repo, "/")
	if !ok || host == "" || !two || owner == "" || name == "" {
		return "", false
	}
	if isURL {
		host, _, _ = strings.Cut(host, ":") // the port is that of SSH
	}
	if strings.EqualFold(host, "bitbucket.org") {
		return "https://bitbucket.org/" + owner + "/" + name, true
	}
	if user, personal := strings.CutPrefix(owner, "~"); personal {
		return "https://" + host + "/users/" + user + "/repos/" + name, true
	}
	return "https://" + host + "/projects/" + owner + "/repos/" + name, true
}
