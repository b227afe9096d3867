// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/url"
	"path"
	"regexp"
	"strings"
)

const (
	exampleURL = "https://git.example.com/org/fleet.git"
	urlHint    = "write https://, http:// or ssh://host/path, git@host:path, or file:///absolute/path"
	nameHint   = "names are lower-case letters, digits and dashes"
)

// A repository's address in one of the forms that Git takes.
type address struct {
	scheme   string // https, http, ssh or file
	host     string // lower case, with the port if there is one
	path     string // without a leading slash (but for file) and without ".git"
	password bool   // credentials are part of the URL
	extra    bool   // a query or a fragment is
}

// scpLike is "git@host:path", which ssh clients read as ssh://git@host/path. A
// one-letter host would be a Windows drive.
var scpLike = regexp.MustCompile(`^(?:([^@:/\s]+)@)?([A-Za-z0-9.-]{2,}|\[[0-9A-Fa-f:.]+\]):([^:\s][^\s]*)$`)

func parseAddress(raw string) (address, bool) {
	if !strings.Contains(raw, "://") {
		m := scpLike.FindStringSubmatch(raw)
		if m == nil || strings.HasPrefix(m[2], "-") {
			return address{}, false
		}
		return address{scheme: "ssh", host: strings.ToLower(m[2]), path: cleanRepository(m[3])}, true
	}
	u, err := url.Parse(raw)
	if err != nil || strings.ContainsAny(raw, " \t\r\n") {
		return address{}, false
	}
	a := address{
		scheme: strings.ToLower(u.Scheme), host: strings.ToLower(u.Host),
		path: cleanRepository(u.Path), extra: u.RawQuery != "" || u.Fragment != "",
	}
	_, hasPassword := u.User.Password()
	switch a.scheme {
	case "https", "http":
		a.password = u.User != nil // a lone user name may well be a token
	case "ssh":
		a.password = hasPassword
	case "file":
		return address{scheme: "file", path: strings.TrimSuffix(path.Clean(u.Path), ".git"), extra: a.extra},
			u.Host == "" && strings.HasPrefix(u.Path, "/") && u.Path != "/"
	default:
		return address{}, false
	}
	return a, u.Hostname() != "" && !strings.HasPrefix(u.Hostname(), "-") && a.path != ""
}

func cleanRepository(p string) string {
	return strings.TrimSuffix(strings.Trim(p, "/"), ".git")
}

// gitURL checks the address of a repository. What is wrong with it is said
// without repeating it, since it may hold a password.
func (v *validator) gitURL(path, raw string, auth Auth) {
	a, ok := parseAddress(raw)
	switch {
	case !ok && strings.HasPrefix(raw, "/"):
		v.fault(path, "write file://"+raw, "is a path where a URL is due")
	case !ok:
		v.fault(path, urlHint, "is not the URL of a Git repository")
	case a.password:
		v.fault(path, "put them into a secret and name it in "+strings.TrimSuffix(path, ".url")+".auth.secret",
			"holds credentials")
	case a.extra:
		v.fault(path, "end the URL with the repository", "has a query or a fragment")
	case a.scheme == "http" && !auth.Secret.IsZero():
		v.warn(path, "use https://", "is not encrypted: credentials travel in the open")
	}
}

// sameRepository compares addresses, not what they lead to: two names of one
// repository are taken for two.
func sameRepository(a, b string) bool {
	x, okX := parseAddress(a)
	y, okY := parseAddress(b)
	return a == b || okX && okY && x.host == y.host && x.path == y.path
}

func sameHost(a, b string) bool {
	x, okX := parseAddress(a)
	y, okY := parseAddress(b)
	return a == b || okX && okY && x.host == y.host && x.scheme == y.scheme
}

// cleanPath makes a repository path canonical ("./a/b/" is "a/b"). It returns
// what is wrong with one that could leave the repository or meet Git's own files.
func cleanPath(p string) (clean, problem, hint string) {
	const relative = "write a path inside the repository, as in ./clusters/preview"
	switch {
	case p == "":
		return "", "is empty", relative
	case strings.HasPrefix(p, "/"):
		return "", "is absolute", relative
	case strings.ContainsAny(p, "\\\x00\r\n"):
		return "", "holds a backslash or a line break", "separate folders with /"
	}
	for _, part := range strings.Split(p, "/") {
		switch {
		case part == "..":
			return "", "contains ..", relative
		case strings.EqualFold(part, ".git"):
			return "", "leads into .git", relative
		}
	}
	return path.Clean(p), "", ""
}

var (
	dnsLabel     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	dnsSubdomain = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
)

func isDNSLabel(s string) bool     { return dnsLabel.MatchString(s) }
func isDNSSubdomain(s string) bool { return len(s) <= 253 && dnsSubdomain.MatchString(s) }
