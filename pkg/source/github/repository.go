// SPDX-License-Identifier: Apache-2.0

package github

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
	owner, name string
	api         *url.URL // base of the REST API, with a slash at its end
}

// parseURL reads the address of a repository. On github.com the API has a host of
// its own, and so it has where GitHub runs a company's data residency (ghe.com);
// elsewhere it is below /api/v3/ on the same host.
func parseURL(raw string) (*repository, error) {
	u, parts, err := provider.ParseRepositoryURL(raw)
	if err != nil {
		return nil, err
	}
	if err := refuseAPI(u, parts); err != nil {
		return nil, err
	}
	host := strings.ToLower(u.Hostname())
	public := host == "github.com" || host == "www.github.com"
	if public && len(parts) > 2 {
		return nil, &provider.Error{
			Reason: provider.Misconfigured,
			Msg:    fmt.Sprintf("spec.url names no repository: its path is %q", u.Path),
			Hint:   fmt.Sprintf("write %s://%s/OWNER/REPOSITORY", u.Scheme, u.Host),
		}
	}
	prefix, owner, name := parts[:len(parts)-2], parts[len(parts)-2], parts[len(parts)-1]
	api := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/" + path.Join(path.Join(prefix...), "api/v3") + "/"}
	switch {
	case public:
		api.Host, api.Path = "api.github.com", "/"
	case strings.HasSuffix(host, ".ghe.com"):
		api.Host, api.Path = "api."+u.Host, "/"
	}
	return &repository{owner: owner, name: name, api: api}, nil
}

// refuseAPI fails for an address in the API, which is one of a repository in form.
func refuseAPI(u *url.URL, parts []string) error {
	host := strings.ToLower(u.Host)
	before, after, ok := provider.CutAPI(parts, "api", "v3")
	if of, found := strings.CutPrefix(host, "api."); found && (of == "github.com" || strings.HasSuffix(of, ".ghe.com")) {
		host, before, after, ok = of, nil, parts, true
	}
	if !ok {
		return nil
	}
	if len(after) < 3 || after[0] != "repos" {
		after = []string{"repos", "OWNER", "REPOSITORY"}
	}
	return provider.RefuseAPI(u, host, append(slices.Clone(before), after[1:3]...)...)
}
