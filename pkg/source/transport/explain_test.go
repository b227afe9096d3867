// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/pkg/source/provider"
)

// A server's own words come before its status, and a limit in them is one for all.
func TestExplain(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"`+r.URL.Path[1:]+`","message":"t0k3n-of-the-test"}`)
	}))
	defer server.Close()
	base, limits := parse(t, server.URL), &provider.Limits{}
	c := client(t, provider.Config{Limits: limits}, Options{
		Base: base, Authorize: bearer,
		Explain: func(_ *http.Response, body []byte) *provider.Error {
			switch {
			case strings.Contains(string(body), "Gone"):
				return &provider.Error{Reason: provider.NotFound, Msg: "no such thing as t0k3n-of-the-test", Hint: "look again"}
			case strings.Contains(string(body), "Bare"): // it has no words for it
				return &provider.Error{Reason: provider.Auth, Hint: "look again"}
			case strings.Contains(string(body), "Slower"):
				return &provider.Error{Reason: provider.RateLimited}
			}
			return nil
		},
	})
	get := func(path string) *provider.Error {
		t.Helper()
		resp, err := c.Get(server.URL + path)
		if err == nil {
			_ = resp.Body.Close()
		}
		var known *provider.Error
		if !errors.As(err, &known) || strings.Contains(err.Error(), "t0k3n") {
			t.Fatalf("%s: got %v", path, err)
		}
		return known
	}
	if got := get("/Gone"); got.Reason != provider.NotFound || got.Status != 400 || got.Hint != "look again" {
		t.Errorf("got %+v", got)
	}
	if got := get("/Bare"); got.Error() != base.Host+" answered 400" {
		t.Errorf("got %q", got)
	}
	if got := get("/Other"); got.Reason != provider.Implausible {
		t.Errorf("got %+v", got)
	}
	if got := get("/Slower"); got.Reason != provider.RateLimited || time.Until(got.Until) < 50*time.Second {
		t.Errorf("got %+v", got)
	}
	before := asked
	if got := get("/Gone"); got.Reason != provider.RateLimited || asked != before {
		t.Errorf("during the pause: got %+v, %d requests", got, asked-before)
	}
}

// A POST is sent again, whole, only where it changes nothing.
func TestReads(t *testing.T) {
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		if len(bodies) < 3 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer server.Close()
	for _, reads := range []bool{false, true} {
		bodies = nil
		c := client(t, provider.Config{}, Options{Base: parse(t, server.URL), Reads: reads})
		resp, err := c.Post(server.URL, "text/plain", strings.NewReader("question"))
		if (err == nil) != reads {
			t.Errorf("reads %t: %v", reads, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		want := "question"
		if reads {
			want = "question question question"
		}
		if got := strings.Join(bodies, " "); got != want {
			t.Errorf("reads %t: got %q", reads, got)
		}
	}
}

// Forges put the message where they like.
func TestQuote(t *testing.T) {
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	for body, want := range map[string]string{
		`{"message":"a"}`:                             "a",
		`{"Message":"b"}`:                             "b",
		`{"type":"error","error":{"message":"c"}}`:    "c",
		`{"errors":[{"context":null,"message":"d"}]}`: "d",
		`{"errors":[]}`:                               "",
		`{"error":"e"}`:                               "e",
		`[1]`:                                         "",
		`<html>`:                                      "",
	} {
		if got := quote(&http.Response{Request: req}, []byte(body)); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}
