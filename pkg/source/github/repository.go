// SPDX-License-Identifier: Apache-2.0

package github

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"resourceset.example/renderer/pkg/source/provider"
)

// A repository is what spec.url names.
type repository struct {
	owner, name string
	api         *url.URL // base of the REST API, with a slash at its end
}

// parseURL reads the address of a repository. On github.com the API has a host of
// its own, and so it has where GitHub runs a company's data residency (ghe.com);
// elsewhere it is below /api/v3/ on the same host.
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
	host := strings.ToLower(u.Hostname())
	public := host == "github.com" || host == "www.github.com"
	if len(parts) < 2 || parts[0] == "." || parts[0] == ".." || (public && len(parts) > 2) {
		return nil, &provider.Error{
			Reason: provider.Misconfigured,
			Msg:    fmt.Sprintf("spec.url names no repository: its path is %q", u.Path),
			Hint:   fmt.Sprintf("write %s://%s/OWNER/REPOSITORY", u.Scheme, u.Host),
		}
	}
	prefix, owner, name := parts[:len(parts)-2], parts[len(parts)-2], parts[len(parts)-1]
	name = strings.TrimSuffix(name, ".git")
	api := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/" + path.Join(path.Join(prefix...), "api/v3") + "/"}
	switch {
	case public:
		api.Host, api.Path = "api.github.com", "/"
	case strings.HasSuffix(host, ".ghe.com"):
		api.Host, api.Path = "api."+u.Host, "/"
	}
	return &repository{owner: owner, name: name, api: api}, nil
}

// fromSSH turns git@host:owner/name.git and ssh://git@host/owner/name.git into
// what was meant.
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
	if !ok || host == "" || repo == "" {
		return "", false
	}
	if isURL {
		host, _, _ = strings.Cut(host, ":") // the port is that of SSH
	}
	return "https://" + host + "/" + strings.TrimSuffix(strings.Trim(repo, "/"), ".git"), true
}
