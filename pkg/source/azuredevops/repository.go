// SPDX-License-Identifier: Apache-2.0

package azuredevops

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
	cloud bool     // Azure DevOps Services, and nobody else
	web   *url.URL // the repository's page
	base  *url.URL // the organisation or collection, with a slash at its end
	api   *url.URL // the repository in the REST API, with a slash at its end
}

// gitPart is what stands before the name of a repository in its address.
const gitPart = "_git"

// parseURL reads the address of a repository, which has all of these forms:
//
//	https://dev.azure.com/ORGANISATION/PROJECT/_git/REPOSITORY
//	https://ORGANISATION.visualstudio.com[/DefaultCollection]/PROJECT/_git/REPOSITORY
//	https://HOST[/tfs]/COLLECTION/PROJECT/_git/REPOSITORY
//
// Where the project has the name of the repository, it may be left out.
func parseURL(raw string) (*repository, error) {
	if fixed, ok := fromSSH(raw); ok {
		return nil, &provider.Error{
			Reason: provider.Misconfigured,
			Msg:    "spec.url is an SSH address, but the API is asked over HTTPS",
			Hint:   "write " + fixed,
		}
	}
	u, err := provider.ParseURL(withoutUser(raw))
	if err != nil {
		return nil, err
	}
	parts := strings.Split(strings.Trim(path.Clean("/"+u.Path), "/"), "/")
	if before, after, ok := provider.CutAPI(parts, "_apis", "git", "repositories"); ok {
		return nil, provider.RefuseAPI(u, u.Host, append(slices.Clone(before), gitPart, append(after, "REPOSITORY")[0])...)
	}
	at := slices.Index(parts, gitPart)
	if at < 0 || at != len(parts)-2 || parts[at+1] == "" {
		hint := fmt.Sprintf("write %s://%s/ORGANISATION/PROJECT/_git/REPOSITORY, as the browser shows it", u.Scheme, u.Host)
		if at > 0 && at < len(parts)-2 {
			hint = fmt.Sprintf("write %s://%s/%s", u.Scheme, u.Host, strings.Join(parts[:at+2], "/"))
		}
		return nil, notARepositoryURL(u, hint)
	}
	before, name := parts[:at], parts[at+1]
	host := strings.ToLower(u.Hostname())
	services := host == "dev.azure.com" || strings.HasSuffix(host, ".visualstudio.com")
	above := 1 // how many parts stand before the project
	switch {
	case strings.HasSuffix(host, ".visualstudio.com"):
		above = 0
		if len(before) > 0 && strings.EqualFold(before[0], "DefaultCollection") {
			above = 1
		}
	case !services && len(before) > 0 && strings.EqualFold(before[0], "tfs"):
		above = 2
	}
	switch {
	case len(before) == above:
		before = append(slices.Clone(before), name)
	case len(before) < above, services && len(before) != above+1:
		return nil, notARepositoryURL(u, fmt.Sprintf("write %s://%s/ORGANISATION/PROJECT/_git/REPOSITORY, as the browser shows it", u.Scheme, u.Host))
	}
	organisation, project := before[:len(before)-1], before[len(before)-1]
	base := join(&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/"}, organisation...)
	return &repository{
		cloud: services && u.Scheme == "https" && u.Port() == "",
		base:  base.JoinPath("/"),
		web:   join(base, project, gitPart, name),
		api:   join(base, project, "_apis", "git", "repositories", name).JoinPath("/"),
	}, nil
}

// join appends parts to a path whatever letters they have: projects have spaces.
func join(base *url.URL, parts ...string) *url.URL {
	for _, part := range parts {
		base = base.JoinPath(url.PathEscape(part))
	}
	return base
}

func notARepositoryURL(u *url.URL, hint string) error {
	return &provider.Error{
		Reason: provider.Misconfigured,
		Msg:    fmt.Sprintf("spec.url names no repository: its path is %q", u.Path),
		Hint:   hint,
	}
}

// withoutUser takes off the name of the organisation with which clone URLs begin.
func withoutUser(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.User == nil {
		return raw
	}
	if _, password := u.User.Password(); password {
		return raw
	}
	u.User = nil
	return u.String()
}

// fromSSH turns git@ssh.dev.azure.com:v3/organisation/project/name, with or without
// ssh://, into what was meant.
func fromSSH(raw string) (string, bool) {
	rest, isURL := strings.CutPrefix(raw, "ssh://")
	if !isURL && (strings.Contains(raw, "://") || !strings.Contains(raw, "@")) {
		return "", false
	}
	_, rest, _ = strings.Cut(rest, "@")
	_, place, ok := strings.Cut(strings.Replace(rest, ":", "/", 1), "/v3/")
	parts := strings.Split(strings.Trim(place, "/"), "/")
	if !ok || len(parts) != 3 {
		return "https://dev.azure.com/ORGANISATION/PROJECT/_git/REPOSITORY", isURL
	}
	return fmt.Sprintf("https://dev.azure.com/%s/%s/_git/%s", parts[0], parts[1], parts[2]), true
}
