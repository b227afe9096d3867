// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"resourceset.example/renderer/pkg/source/provider"
)

// patience is the longest Retry-After that a request waits for by itself, where
// the server is only busy. Beyond it the fetch ends and its caller decides.
const patience = 3 * time.Second

type roundTripper struct {
	opts      Options
	userAgent string
	limits    *provider.Limits
	limitKey  string
	wait      time.Duration
	next      http.RoundTripper
	proxy     func(*http.Request) (*url.URL, error)
}

// RoundTrip sends a request, again if that may help, and turns every answer that
// is not data into an error.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	renewed := false
	for try := 1; ; try++ {
		resp, err := t.send(req)
		if err == nil && resp.StatusCode == http.StatusUnauthorized && t.renews() && !renewed {
			discard(resp)
			if err := t.renew(req.Context(), resp); err != nil {
				return nil, err
			}
			renewed = true
			try--
			continue
		}
		wait, again := t.again(req, resp, err, try)
		if !again {
			return t.finish(req, resp, err)
		}
		discard(resp)
		if err := sleep(req.Context(), wait); err != nil {
			return nil, t.describe(req, err)
		}
	}
}

func (t *roundTripper) renews() bool { return t.opts.Renew != nil || t.opts.Challenge != nil }

func (t *roundTripper) renew(ctx context.Context, refused *http.Response) error {
	if t.opts.Challenge != nil {
		return t.opts.Challenge(ctx, refused)
	}
	return t.opts.Renew(ctx)
}

// send sends one request, with the credential if it goes where that belongs.
func (t *roundTripper) send(req *http.Request) (*http.Response, error) {
	if until, reason := t.limits.Until(t.limitKey, time.Now()); !until.IsZero() {
		what, said := "rate limit", "still limited by an earlier answer"
		if reason == provider.Unavailable {
			what, said = "wait", "an earlier answer asked for it"
		}
		return nil, waitError(reason, what, said, 0, until)
	}
	req = req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		req.Body = body
	}
	req.Header.Del("Authorization")
	req.Header.Del("Referer") // of a redirect: the URL before may have a query that is nobody else's business
	if t.userAgent != "" {
		req.Header.Set("User-Agent", t.userAgent)
	}
	if t.opts.Authorize != nil && SameHost(t.opts.Base, req.URL) {
		if err := t.opts.Authorize(req); err != nil {
			return nil, err
		}
	}
	return t.next.RoundTrip(req)
}

// again tells whether and when a request is worth another try.
func (t *roundTripper) again(req *http.Request, resp *http.Response, err error, try int) (time.Duration, bool) {
	if !t.repeatable(req) || try >= maxTries || req.Context().Err() != nil {
		return 0, false
	}
	backoff := t.wait << (try - 1)
	backoff = backoff/2 + rand.N(backoff/2+1)
	if err != nil {
		return backoff, transient(err)
	}
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		asked := retryAfter(resp.Header, time.Now())
		if asked.IsZero() {
			return backoff, true
		}
		wait := time.Until(asked)
		return max(wait, backoff), wait <= patience
	}
	return 0, false
}

func (t *roundTripper) repeatable(req *http.Request) bool {
	return req.Method == http.MethodGet || req.Method == http.MethodHead || (t.opts.Reads && req.GetBody != nil)
}

// finish turns what came back into data or an error.
func (t *roundTripper) finish(req *http.Request, resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, t.describe(req, err)
	}
	if err := t.check(req, resp); err != nil {
		discard(resp)
		return nil, t.answeredByProxy(req, resp, err)
	}
	t.limits.Served(t.limitKey)
	if t.opts.MaxBody > 0 {
		resp.Body = &limitedBody{body: resp.Body, left: t.opts.MaxBody, limit: t.opts.MaxBody}
	}
	return resp, nil
}

func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// discard lets the connection be used again, unless much is left to read.
func discard(resp *http.Response) {
	if resp == nil || resp.Body == nil {
		return
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
}

// A limitedBody fails, rather than ends, when it is read past its limit.
type limitedBody struct {
	body        io.ReadCloser
	left, limit int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, tooLarge(b.limit)
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return 0, tooLarge(b.limit)
	}
	return n, err
}

func (b *limitedBody) Close() error { return b.body.Close() }

func tooLarge(limit int64) error {
	return &provider.Error{
		Reason: provider.TooLarge,
		Msg:    fmt.Sprintf("answer over %d KiB", limit>>10),
		Hint:   "have the service send less, or split it over several providers",
	}
}

// ReadBody reads the body of a response whole and closes it.
func ReadBody(resp *http.Response) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil {
		return body, nil
	}
	var known *provider.Error
	if errors.As(err, &known) {
		return nil, known
	}
	if cause := context.Cause(resp.Request.Context()); cause != nil {
		err = cause
	}
	return nil, Describe(err)
}
