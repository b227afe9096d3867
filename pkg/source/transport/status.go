// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"resourceset.example/renderer/pkg/source/provider"
)

// maxQuote is how much of a server's message an error repeats.
const maxQuote = 200

// maxErrorBody is how much of a refusal is read.
const maxErrorBody = 16 << 10

// check returns an error for an answer that is not data. Redirects pass: the
// client follows or refuses them.
func (t *roundTripper) check(req *http.Request, resp *http.Response) error {
	switch code := resp.StatusCode; {
	case code == http.StatusNotModified:
		if req.Header.Get("If-None-Match") != "" || req.Header.Get("If-Modified-Since") != "" {
			return nil
		}
		return statusError(provider.Implausible, resp, "", "nobody asked whether anything changed")
	case code >= 300 && code < 400:
		if resp.Header.Get("Location") != "" && code != http.StatusMultipleChoices {
			return nil
		}
		return statusError(provider.Implausible, resp, "", "a redirect to nowhere")
	case code == http.StatusNonAuthoritativeInfo:
		return statusError(provider.Auth, resp, "", "this is how some services show a sign-in page: check the credential")
	case code == http.StatusOK || code == http.StatusCreated:
		return checkContent(resp)
	case code < 300:
		return statusError(provider.Implausible, resp, "", "the answer has no body, or not all of it")
	}
	return t.refusal(resp)
}

// checkContent refuses web pages: a sign-in or maintenance page is no list.
func checkContent(resp *http.Response) error {
	mediaType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err == nil && (mediaType == "text/html" || mediaType == "application/xhtml+xml") {
		return statusError(provider.Implausible, resp, "a web page instead of data",
			"it may be a sign-in or maintenance page: check spec.url and the credential")
	}
	return nil
}

// refusal describes an answer of status 4xx or 5xx.
func (t *roundTripper) refusal(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what there is of it is good enough to quote
	said := quote(resp, body)
	now := time.Now()
	if known := t.explain(resp, body); known != nil {
		if known.Reason == provider.RateLimited {
			until := t.limits.Pause(t.limitKey, provider.RateLimited, now, retryAfter(resp.Header, now))
			return waitError(provider.RateLimited, "rate limit", said, resp.StatusCode, until)
		}
		return known
	}
	if until, limited := rateLimit(resp, said, now); limited {
		until = t.limits.Pause(t.limitKey, provider.RateLimited, now, until)
		return waitError(provider.RateLimited, "rate limit", said, resp.StatusCode, until)
	}
	switch code := resp.StatusCode; {
	case code == http.StatusServiceUnavailable && !retryAfter(resp.Header, now).IsZero():
		until := t.limits.Pause(t.limitKey, provider.Unavailable, now, retryAfter(resp.Header, now))
		return waitError(provider.Unavailable, answered(resp)+", and asks to wait", said, code, until)
	case code == http.StatusUnauthorized:
		if t.opts.Authorize == nil {
			return statusError(provider.Auth, resp, said, "it wants a credential: set spec.secretRef")
		}
		return statusError(provider.Auth, resp, said, "the credential is wrong, expired or revoked: renew the secret of spec.secretRef")
	case code == http.StatusForbidden:
		return statusError(provider.Auth, resp, said, forbiddenHint(resp.Header))
	case code == http.StatusProxyAuthRequired:
		return statusError(provider.Auth, resp, said, "the proxy wants a credential: see HTTPS_PROXY")
	case code == http.StatusNotFound || code == http.StatusGone:
		return statusError(provider.NotFound, resp, said, "check spec.url; a credential that cannot see it gets the same answer")
	case code >= 500 || code == http.StatusRequestTimeout:
		return statusError(provider.Unavailable, resp, said, "the service has a fault of its own; the last good answer stands")
	}
	return statusError(provider.Implausible, resp, said, "check spec.url")
}

// explain returns what the server's own words mean, with its name and status.
func (t *roundTripper) explain(resp *http.Response, body []byte) *provider.Error {
	if t.opts.Explain == nil {
		return nil
	}
	known := t.opts.Explain(resp, body)
	if known == nil {
		return nil
	}
	described := *known
	described.Status = resp.StatusCode
	described.Msg = oneLine(scrub(resp.Request, known.Msg))
	return described.Within("%s answered %d", resp.Request.URL.Host, resp.StatusCode)
}

// forbiddenHint says what a credential lacks, where the server tells: GitHub names
// the permissions that a call needs, and organizations that want single sign-on.
func forbiddenHint(h http.Header) string {
	if needs := oneLine(h.Get("X-Accepted-Github-Permissions")); needs != "" {
		return "the credential needs the permission " + needs
	}
	if strings.HasPrefix(h.Get("X-Github-Sso"), "required") {
		return "authorize the token for the organization's single sign-on"
	}
	return "the credential lacks a permission, or its use here is not allowed"
}

func statusError(reason provider.Reason, resp *http.Response, said, hint string) error {
	e := &provider.Error{Reason: reason, Msg: said, Hint: hint, Status: resp.StatusCode}
	return e.Within("%s", answered(resp))
}

func answered(resp *http.Response) string {
	return strings.TrimSpace(fmt.Sprintf("%s answered %d %s", resp.Request.URL.Host, resp.StatusCode, http.StatusText(resp.StatusCode)))
}

// waitError says until when no request is made: because of a limit, or because the
// server is busy for a time.
func waitError(reason provider.Reason, what, said string, status int, until time.Time) error {
	hint := "no request is made before then; fetch less often, or use a credential with a higher limit"
	if reason == provider.Unavailable {
		hint = "the service is busy or down for maintenance; no request is made before then, and the last good answer stands"
	}
	e := &provider.Error{Reason: reason, Msg: said, Hint: hint, Status: status, Until: until}
	return e.Within("%s until %s", what, until.UTC().Format(time.RFC3339))
}

// rateLimit tells whether a refusal is about the number of requests, and until
// when; the zero time if the server does not say.
func rateLimit(resp *http.Response, said string, now time.Time) (time.Time, bool) {
	h := resp.Header
	until := retryAfter(h, now)
	exhausted := h.Get("X-Ratelimit-Remaining") == "0" || h.Get("Ratelimit-Remaining") == "0"
	if until.IsZero() && exhausted {
		until = resetTime(h, now)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return until, true
	case http.StatusForbidden:
		// Servers word secondary limits differently, and often without headers.
		words := strings.ToLower(said)
		return until, !until.IsZero() || exhausted ||
			strings.Contains(words, "rate limit") || strings.Contains(words, "abuse detection")
	}
	return time.Time{}, false
}

// longestWait bounds what a server can ask for, so that a wrong clock or a wrong
// header does not stop us for good.
const longestWait = 2 * time.Hour

func retryAfter(h http.Header, now time.Time) time.Time {
	value := h.Get("Retry-After")
	if value == "" {
		return time.Time{}
	}
	if seconds, err := strconv.Atoi(value); err == nil && seconds >= 0 {
		return now.Add(min(time.Duration(min(seconds, 1<<20))*time.Second, longestWait))
	}
	if at, err := http.ParseTime(value); err == nil {
		return bounded(at, now)
	}
	return time.Time{}
}

func resetTime(h http.Header, now time.Time) time.Time {
	for _, name := range []string{"X-Ratelimit-Reset", "Ratelimit-Reset"} {
		if seconds, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil && seconds > 0 {
			return bounded(time.Unix(seconds, 0), now)
		}
	}
	return time.Time{}
}

func bounded(at, now time.Time) time.Time {
	if !at.After(now) {
		return now.Add(time.Second)
	}
	if latest := now.Add(longestWait); at.After(latest) {
		return latest
	}
	return at
}

// quote returns the message of an error answer in JSON, shortened and without
// anything that must stay hidden. Other bodies are not worth quoting.
func quote(resp *http.Response, body []byte) string {
	var answer map[string]any
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	text := message(answer)
	for _, key := range []string{"error", "errors"} { // one level down, or the first of several
		if text != "" {
			break
		}
		inner := answer[key]
		if list, ok := inner.([]any); ok && len(list) > 0 {
			inner = list[0]
		}
		if object, ok := inner.(map[string]any); ok {
			text = message(object)
		}
	}
	return oneLine(scrub(resp.Request, text))
}

func message(answer map[string]any) string {
	for _, key := range []string{"message", "Message", "error_description", "error", "detail", "title"} {
		if text, ok := answer[key].(string); ok && text != "" {
			return text
		}
	}
	return ""
}

func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	if len(text) > maxQuote {
		text = strings.ToValidUTF8(text[:maxQuote], "") + "…"
	}
	return text
}
