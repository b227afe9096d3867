// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// ParseURL reads a spec.url that has to be an HTTP address. The error repeats no
// part of it that may be a credential.
func ParseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, &Error{Reason: Misconfigured, Msg: "spec.url is not a URL", Hint: "it has the form https://host/path"}
	}
	if u.User != nil {
		return nil, &Error{
			Reason: Misconfigured,
			Msg:    "spec.url holds a user name or password",
			Hint:   "put them into a Secret and name it in spec.secretRef; what is in Git is no secret any more",
		}
	}
	if (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "" {
		return nil, &Error{
			Reason: Misconfigured,
			Msg:    fmt.Sprintf("spec.url has the scheme %q and host %q", u.Scheme, u.Hostname()),
			Hint:   "it has the form https://host/path",
		}
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// ParseRepositoryURL reads a spec.url that has to be the address of a repository on
// a forge, as its page or as clone URL. The parts are those of its path, two at least.
func ParseRepositoryURL(raw string) (u *url.URL, parts []string, err error) {
	if fixed, ok := fromSSH(raw); ok {
		return nil, nil, &Error{
			Reason: Misconfigured,
			Msg:    "spec.url is an SSH address, but the API is asked over HTTPS",
			Hint:   "write " + fixed,
		}
	}
	u, err = ParseURL(raw)
	if err != nil {
		return nil, nil, err
	}
	clean := strings.TrimSuffix(strings.Trim(path.Clean("/"+u.Path), "/"), ".git")
	parts = strings.Split(clean, "/")
	if len(parts) < 2 || slices.Contains(parts, "") || slices.Contains(parts, "..") {
		return nil, nil, &Error{
			Reason: Misconfigured,
			Msg:    fmt.Sprintf("spec.url names no repository: its path is %q", u.Path),
			Hint:   fmt.Sprintf("write %s://%s/OWNER/REPOSITORY", u.Scheme, u.Host),
		}
	}
	return u, parts, nil
}

// WebURL is an address that a forge or its users gave for people, or empty where no
// browser should go: what it is exported to may make a link of it.
func WebURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return ""
	}
	return raw
}

// CutAPI splits the path of an address in a forge's REST API around the parts by which
// it is known as one.
func CutAPI(path []string, api ...string) (before, after []string, ok bool) {
	for i := range len(path) - len(api) + 1 {
		if slices.Equal(path[i:i+len(api)], api) {
			return path[:i], path[i+len(api):], true
		}
	}
	return nil, nil, false
}

// RefuseAPI is the error of a spec.url that is an address in a forge's REST API, where
// the page that was meant is at that path.
func RefuseAPI(u *url.URL, host string, parts ...string) error {
	page := url.URL{Scheme: u.Scheme, Host: host, Path: "/" + strings.Join(parts, "/")}
	return &Error{
		Reason: Misconfigured,
		Msg:    "spec.url is an address in the API, which is found from that of the repository",
		Hint:   "write " + page.String() + ", as the browser shows it",
	}
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
