// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 the library is the one that the design names; its successor is a change of this package

package gitlab

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/xanzy/go-gitlab"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// maxPage is the most that one page may have, in bytes: a hundred merge requests with
// long descriptions.
const maxPage = 32 << 20

// perPage is the most that GitLab allows.
const perPage = "100"

// newClient returns a client of the API with the credential of the secret. The library
// neither retries nor waits: the HTTP client below it knows what the server asked for,
// and also puts in the credential, so that it goes to one host only.
func newClient(cfg provider.Config, p *project) (*gitlab.Client, error) {
	options := transport.Options{Base: p.api, MaxBody: maxPage, Explain: p.explain}
	if err := authorize(cfg.Secret, &options); err != nil {
		return nil, err
	}
	client, err := transport.NewClient(cfg, options)
	if err != nil {
		return nil, err
	}
	gl, err := gitlab.NewOAuthClient("", gitlab.WithBaseURL(p.api.String()), gitlab.WithHTTPClient(client),
		gitlab.WithoutRetries(), gitlab.WithCustomLimiter(unlimited{}))
	if err != nil {
		return nil, transport.Fault(err)
	}
	return gl, nil
}

type unlimited struct{}

func (unlimited) Wait(context.Context) error { return nil }

// authorize adds the credential of the secret. GitLab takes every kind of token as a
// bearer's, but for those of CI jobs.
func authorize(secret provider.Secret, options *transport.Options) error {
	if secret == nil {
		return nil
	}
	for _, kind := range []struct{ key, header, scheme string }{
		{"password", "Authorization", "Bearer "},
		{"token", "Authorization", "Bearer "},
		{"bearerToken", "Authorization", "Bearer "},
		{"jobToken", transport.JobToken, ""},
	} {
		token, err := secret.Line(kind.key)
		if err != nil {
			return err
		}
		if token == "" {
			continue
		}
		options.Identity = token
		options.Authorize = func(req *http.Request) error {
			req.Header.Set(kind.header, kind.scheme+token)
			return nil
		}
		return nil
	}
	return &provider.Error{
		Reason: provider.Misconfigured,
		Msg:    "the secret has no credential",
		Hint:   "the Secret of spec.secretRef has a token in password, token or bearerToken, or that of a CI job in jobToken",
	}
}

// explain says what GitLab means by a refusal.
func (p *project) explain(resp *http.Response, body []byte) *provider.Error {
	var answer struct {
		Error       string
		Description string `json:"error_description"`
		Message     any
	}
	_ = json.Unmarshal(body, &answer) // what is no JSON, says nothing
	switch {
	case resp.StatusCode == http.StatusForbidden && answer.Error == "insufficient_scope":
		return &provider.Error{Reason: provider.Auth, Msg: answer.Description, Hint: "make a token with the scope read_api"}
	case resp.StatusCode == http.StatusForbidden && answer.Message == "403 Forbidden":
		return &provider.Error{Reason: provider.Auth, Msg: "403 Forbidden", Hint: "the token's user needs the role Reporter in the project, and the feature has to be enabled there"}
	case resp.StatusCode == http.StatusNotFound && p.deep:
		return &provider.Error{
			Reason: provider.NotFound, Msg: "no project " + p.path,
			Hint: "check spec.url; a token that cannot see the project gets the same answer; " + belowAPath,
		}
	}
	return nil
}

// elsewhere adds to what a redirect or a web page may mean that GitLab is not at the
// top of its host: something else answers there then.
func (p *project) elsewhere(fault *provider.Error) *provider.Error {
	if !p.deep || fault.Reason != provider.Redirected && (fault.Reason != provider.Implausible || strings.Contains(fault.Hint, api.AnnotationBaseURL)) {
		return fault
	}
	described := *fault
	described.Hint += "; " + belowAPath
	return &described
}

// belowAPath is what to do where the path of spec.url does not begin with the project's.
const belowAPath = "if GitLab is below a path of its host, name it in the annotation " + api.AnnotationBaseURL

// A list is what to ask for.
type list[T any] struct {
	what, resource string
	query          url.Values
	decode         listing.Decode[T]
	firstOnly      bool // the first page is all that is wanted
}

// sharedClient returns the client of a config, together with the others that have it.
func sharedClient(cfg provider.Config, p *project) (*gitlab.Client, error) {
	return provider.Share(cfg.Shared, sharedKey(cfg, p), func() (*gitlab.Client, error) { return newClient(cfg, p) })
}

func sharedKey(cfg provider.Config, p *project) string {
	return "gitlab " + cfg.Identity() + " " + p.api.String()
}

// newList returns the list of a config, together with the others that have it.
func newList[T any](cfg provider.Config, p *project, l list[T]) (*listing.List[T], error) {
	gl, err := sharedClient(cfg, p)
	if err != nil {
		return nil, err
	}
	key := sharedKey(cfg, p) + " " + p.resource(l.resource) + "?" + l.query.Encode()
	return provider.Share(cfg.Shared, key, func() (*listing.List[T], error) { return l.of(gl, p), nil })
}

func (l list[T]) of(gl *gitlab.Client, p *project) *listing.List[T] {
	get := l.get(gl, p.resource(l.resource))
	return listing.New(l.what, l.query.Encode(), func(ctx context.Context, address string, known *listing.Page[T]) (*listing.Page[T], error) {
		page, err := get(ctx, address, known)
		if err != nil {
			return nil, p.elsewhere(transport.Fault(err))
		}
		return page, nil
	})
}

// get reads the pages of a list, whose addresses are their queries.
func (l list[T]) get(gl *gitlab.Client, resource string) listing.Get[T] {
	return func(ctx context.Context, address string, known *listing.Page[T]) (*listing.Page[T], error) {
		req, err := gl.NewRequest(http.MethodGet, resource, nil, []gitlab.RequestOptionFunc{gitlab.WithContext(ctx)})
		if err != nil {
			return nil, transport.Fault(err)
		}
		req.URL.RawQuery = address
		if known != nil && known.ETag != "" {
			req.Header.Set("If-None-Match", known.ETag)
		}
		var body bytes.Buffer
		resp, err := gl.Do(req, &body)
		if err != nil {
			return nil, transport.Fault(err)
		}
		if resp.StatusCode == http.StatusNotModified && known != nil {
			return known, nil
		}
		page, err := listing.Array(body.Bytes(), l.what, notAProject, l.decode)
		if err != nil {
			return nil, err
		}
		page.ETag = resp.Header.Get("ETag")
		if !l.firstOnly {
			page.Total = listing.Total(resp.Response, "X-Total")
			page.Next, err = next(resp.Response)
		}
		return page, err
	}
}

// next returns the query of the page after a response. Some proxies take Link headers
// away, so the number of the next page counts as well.
func next(resp *http.Response) (string, error) {
	query, ok, err := listing.NextQuery(resp)
	if err != nil || ok {
		return query.Encode(), err
	}
	number := resp.Header.Get("X-Next-Page")
	if number == "" {
		return "", nil
	}
	query = resp.Request.URL.Query()
	query.Set("page", number)
	return query.Encode(), nil
}

const notAProject = "check that spec.url is a project on GitLab; the last good list stands"
