// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/pkg/source/provider"
)

// Whatever a server answers in place of data, it becomes an error of one line that has
// no credential in it, and nobody waits for longer than hours.
func FuzzRule08_Refusal(f *testing.F) {
	f.Add(403, "application/json", "", `{"message":"you sent t0k3n-of-the-test"}`)
	f.Add(429, "", "120", `{"errors":[{"message":"slow down"}]}`)
	f.Add(503, "text/html; charset=utf-8", "Sun, 29 Nov 2026 12:01:30 GMT", "<html>")
	f.Add(400, "application/json", "99999999999999999999", `{"error":{"message":"a\n\tb: "}}`)
	f.Add(200, "text/html", "", "<html>")
	f.Add(203, "", "-1", "")
	f.Add(304, "", "", "")
	f.Fuzz(func(t *testing.T, status int, kind, after, body string) {
		if status < 100 || status > 999 {
			return // of those net/http makes an error itself
		}
		rt := &roundTripper{opts: Options{Base: &url.URL{Scheme: "https", Host: "forge.example"}, Authorize: bearer}, limits: &provider.Limits{}}
		req := &http.Request{URL: rt.opts.Base, Header: http.Header{}}
		_ = bearer(req)
		resp := &http.Response{StatusCode: status, Request: req, Header: http.Header{"Content-Type": {kind}, "Retry-After": {after}}, Body: io.NopCloser(bytes.NewReader([]byte(body)))}
		err := rt.check(req, resp)
		if err == nil {
			if status != http.StatusOK && status != http.StatusCreated {
				t.Errorf("status %d is data", status)
			}
			return
		}
		var known *provider.Error
		if !errors.As(err, &known) || known.Hint == "" || known.Reason == provider.Unknown {
			t.Fatalf("%d: got %v", status, err)
		}
		text := known.Error()
		if strings.Contains(text, "t0k3n-of-the-test") || strings.ContainsAny(text, "\n\r\t\x00") || len(text) > 2*maxQuote {
			t.Errorf("%d %q: got %q", status, body, text)
		}
		if wait := time.Until(known.Until); !known.Until.IsZero() && wait > longestWait+time.Minute {
			t.Errorf("%q: waits %s", after, wait)
		}
	})
}
