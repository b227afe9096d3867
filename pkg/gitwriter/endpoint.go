// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

const (
	schemeFile  = "file"
	schemeSSH   = "ssh"
	schemeHTTP  = "http"
	schemeHTTPS = "https"
)

// An endpoint is a repository's URL, taken apart.
type endpoint struct {
	scheme         string
	user, password string // from the URL
	host, port     string
	path           string // what the server is asked for
	display        string // the URL without credentials
}

func (e endpoint) isHTTP() bool { return e.scheme == schemeHTTP || e.scheme == schemeHTTPS }

// An URLError is a repository URL that cannot be used. It does not repeat the URL,
// which may hold credentials.
type URLError struct{ Reason, Hint string }

func (e *URLError) Error() string { return "repository URL: " + e.Reason }

// Suggestion says what to do about it.
func (e *URLError) Suggestion() string { return e.Hint }

const urlForms = "use https://host/path, http://host/path, ssh://user@host/path, user@host:path or file:///path"

// CheckURL tells whether a repository can be reached under this URL, without asking it.
func CheckURL(raw string) error {
	_, err := parseEndpoint(raw)
	return err
}

func parseEndpoint(raw string) (endpoint, error) {
	raw = strings.TrimSpace(raw)
	if raw == "" {
		return endpoint{}, &URLError{"is empty", urlForms}
	}
	if strings.ContainsAny(raw, "\x00\n\r") {
		return endpoint{}, &URLError{"has control characters", urlForms}
	}
	if !strings.Contains(raw, "://") {
		return parseSCP(raw)
	}
	u, err := url.Parse(raw)
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err // without the URL
		}
		return endpoint{}, &URLError{fmt.Sprintf("cannot be read: %v", err), urlForms}
	}
	e := endpoint{scheme: strings.ToLower(u.Scheme), host: u.Hostname(), port: u.Port(), path: u.Path}
	if u.User != nil {
		e.user = u.User.Username()
		e.password, _ = u.User.Password()
	}
	switch e.scheme {
	case schemeFile:
		if e.host != "" && e.host != "localhost" {
			return endpoint{}, &URLError{"file:// with a host", "write file:///absolute/path, with three slashes"}
		}
		e.display = "file://" + e.path
	case schemeHTTP, schemeHTTPS, schemeSSH:
		if e.host == "" {
			return endpoint{}, &URLError{"has no host", urlForms}
		}
		e.display = displayURL(u, e)
	default:
		return endpoint{}, &URLError{fmt.Sprintf("has the scheme %q", u.Scheme), urlForms}
	}
	if e.path == "" || e.path == "/" {
		return endpoint{}, &URLError{"names no repository", urlForms}
	}
	if e.scheme == schemeSSH {
		if strings.HasPrefix(e.path, "/~") {
			e.path = e.path[1:]
		}
		if strings.HasPrefix(e.path, "-") || strings.HasPrefix(e.host, "-") {
			return endpoint{}, &URLError{"has a part that starts with a dash", urlForms}
		}
	}
	return e, nil
}

// displayURL keeps the user of ssh, which is no secret there, and drops what else could be.
func displayURL(u *url.URL, e endpoint) string {
	shown := url.URL{Scheme: e.scheme, Host: u.Host, Path: u.Path}
	if e.scheme == schemeSSH && e.user != "" {
		shown.User = url.User(e.user)
	}
	return shown.String()
}

// parseSCP reads user@host:path, the form that ssh's copy command made common.
func parseSCP(raw string) (endpoint, error) {
	host, path, ok := strings.Cut(raw, ":")
	if !ok || strings.Contains(host, "/") || host == "" || path == "" {
		return endpoint{}, &URLError{"has no scheme", urlForms}
	}
	e := endpoint{scheme: schemeSSH, path: path}
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		e.user, host = host[:at], host[at+1:]
	}
	e.host = host
	if host == "" || strings.HasPrefix(host, "-") || strings.HasPrefix(path, "-") {
		return endpoint{}, &URLError{"cannot be read", urlForms}
	}
	e.display = raw
	return e, nil
}

// address is host:port to dial.
func (e endpoint) address(defaultPort string) string {
	port := e.port
	if port == "" {
		port = defaultPort
	}
	return net.JoinHostPort(e.host, port)
}
