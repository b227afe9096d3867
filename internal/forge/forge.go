// SPDX-License-Identifier: Apache-2.0

// Package forge is what pull requests look like from here, whatever a forge calls
// them: a branch of ours, a title and a text, and a person's answer.
//
// Each forge is a package of its own below this one that speaks through that forge's
// library, with the same five functions:
//
//	Find(ctx, branch)            the open request from a branch, else the newest closed one
//	Create(ctx, branch, content)
//	Update(ctx, request, content) what differs, and nothing else
//	Close(ctx, request, body, comment)
//	Commit(ctx, hash)            the message of a commit, to see whose it is
//
// Branches are pushed and deleted over Git, not here: a forge's API knows no
// compare-and-swap for them.
//
// All requests go through the same HTTP client as those of input providers, so the
// token goes to its own host only, and an answer that is not data is an error.
package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

const (
	// MaxPages bounds a listing; what lies beyond is not looked for.
	MaxPages = 50
	// MaxBody bounds one answer, in bytes.
	MaxBody = 32 << 20
)

// A State is what became of a request.
type State int

// Open, Merged and Closed, which is closed without a merge.
const (
	Open State = iota
	Merged
	Closed
)

// A Request is a pull or merge request.
type Request struct {
	Number      int
	URL         string // for people
	State       State
	Title, Body string
	Labels      []string
	Head        string // commit at its branch's tip when last seen
}

// Lacks are the labels that the request does not have.
func (r *Request) Lacks(labels []string) []string {
	var missing []string
	for _, label := range labels {
		// Forges do not tell labels apart by case.
		if !slices.ContainsFunc(r.Labels, func(l string) bool { return strings.EqualFold(l, label) }) {
			missing = append(missing, label)
		}
	}
	return missing
}

// Content is what a request should say.
type Content struct {
	Title, Body string
	Labels      []string // it may have others as well
}

// A Commit is what there is to know of a commit.
type Commit struct {
	Message        string
	CommitterName  string
	CommitterEmail string
	Parents        []string
}

// Config is all that a client is made from.
type Config struct {
	BaseURL    string // of the forge's web pages, without a slash at the end
	Repository string // "org/fleet"; with more parts on GitLab
	Base       string // branch that requests go to
	Token      string
	TLS        map[string][]byte // ca.crt, tls.crt and tls.key, if there are any
	UserAgent  string
	Limits     *provider.Limits
}

// API is the address of the forge's API, which is at a path below its web pages.
// Who gives that address itself is understood as well.
func (c Config) API(path string) (*url.URL, error) {
	base := strings.TrimSuffix(strings.TrimRight(c.BaseURL, "/"), "/"+path)
	u, err := url.Parse(base + "/" + path + "/")
	if err != nil || u.Host == "" {
		return nil, &Error{Msg: "target.pullRequest.baseURL is not a URL"}
	}
	return u, nil
}

// OwnerAndName splits a repository's path on forges that have no deeper ones.
func (c Config) OwnerAndName() (owner, name string, err error) {
	owner, name, ok := strings.Cut(c.Repository, "/")
	if !ok || owner == "" || name == "" || strings.Contains(name, "/") {
		return "", "", &Error{
			Msg:  fmt.Sprintf("%q is not the path of a repository on this forge", c.Repository),
			Hint: "target.url ends with <owner>/<repository>; if the forge is below a path of its host, name it in target.pullRequest.baseURL",
		}
	}
	return owner, name, nil
}

// Client is the HTTP client for the API, which puts the token into each request.
func (c Config) Client(api *url.URL) (*http.Client, error) {
	if strings.ContainsAny(c.Token, "\r\n\x00") || c.Token == "" {
		return nil, &Error{Msg: "the secret has no API token, or one with a line break in it",
			Hint: "the secret of target.pullRequest.secret, or else of target.auth, has it in token or password"}
	}
	cfg := provider.Config{UserAgent: c.UserAgent, Limits: c.Limits}
	if len(c.TLS) > 0 {
		cfg.CertSecret = c.TLS
	}
	client, err := transport.NewClient(cfg, transport.Options{
		Base: api, Identity: c.Token, MaxBody: MaxBody,
		Authorize: func(req *http.Request) error {
			req.Header.Set("Authorization", "Bearer "+c.Token)
			return nil
		},
	})
	return client, Describe(err)
}

// An Error is a request to a forge that did not work out. It holds no credential.
type Error struct {
	Msg, Hint string
	Status    int // of HTTP, or 0
	Err       error
}

func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return e.Msg
	case e.Msg == "":
		return e.Err.Error()
	}
	return e.Msg + ": " + e.Err.Error()
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Suggestion is what to do about it.
func (e *Error) Suggestion() string { return e.Hint }

// Implausible is an answer that is not what was asked for.
func Implausible(what string) error {
	return &Error{Msg: "the forge's answer is not data: " + what, Hint: "check target.pullRequest.baseURL and .forge"}
}

// Describe turns any error of a client into an Error, with a hint that speaks of the
// configuration and without the URL that libraries add.
func Describe(err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	var cause *provider.Error
	if !errors.As(transport.Describe(err), &cause) {
		return &Error{Err: err}
	}
	e := &Error{Msg: cause.Msg, Err: cause.Err, Status: cause.Status, Hint: hint(cause)}
	if cause.Status == 0 && cause.Err != nil && cause.Msg == "" {
		e.Msg = "the forge's answer cannot be read"
	}
	return e
}

func hint(cause *provider.Error) string {
	switch cause.Reason {
	case provider.Auth:
		return "the API token is missing, wrong or expired, or may not write pull requests: see target.pullRequest.secret"
	case provider.NotFound:
		return "check target.url and target.pullRequest.baseURL; a token that cannot see the repository gets the same answer"
	case provider.RateLimited:
		return "no request is made before then; the branch is pushed all the same"
	case provider.TLS:
		return "put the forge's certificate authority into ca.crt of the secret with the API token"
	case provider.Unavailable, provider.Timeout:
		return "the branch is pushed all the same; the pull request follows when the forge answers"
	case provider.Redirected, provider.Implausible:
		return cmp.Or(map[int]string{
			http.StatusUnprocessableEntity: "the forge does not take this pull request: look for another one from the same branch, and at the repository's rules",
			http.StatusConflict:            "the forge has another pull request from the same branch, or the branch has just moved",
		}[cause.Status], "check target.pullRequest.baseURL and .forge")
	}
	return ""
}
