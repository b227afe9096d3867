// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/source/provider"
)

func parse(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestRule08_SameHost(t *testing.T) {
	for _, test := range []struct {
		base, to string
		want     bool
	}{
		{"https://a.example", "https://a.example/x", true},
		{"https://a.example", "https://A.example:443/x", true},
		{"http://a.example", "https://a.example/x", true},
		{"https://a.example", "http://a.example/x", false},
		{"https://a.example", "https://b.example", false},
		{"https://a.example", "https://a.example.evil.example", false},
		{"https://a.example", "https://x.a.example", false},
		{"https://a.example", "https://a.example:8443", false},
		{"http://a.example:8080", "https://a.example", false},
		{"http://a.example:8080", "https://a.example:8443", false},
	} {
		if got := SameHost(parse(t, test.base), parse(t, test.to)); got != test.want {
			t.Errorf("%s to %s: %t", test.base, test.to, got)
		}
	}
}

func client(t *testing.T, cfg provider.Config, opts Options) *http.Client {
	t.Helper()
	cfg.RetryWait = time.Millisecond
	c, err := NewClient(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bearer is a credential that a server could see.
func bearer(req *http.Request) error {
	req.Header.Set("Authorization", "Bearer t0k3n-of-the-test")
	return nil
}

// FR-81: A redirect stays on the host, or it is not followed; also the headers
// that a caller set himself do not leave it.
func TestRule08_Redirects(t *testing.T) {
	var at string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/here", http.StatusMovedPermanently)
		case "/away":
			http.Redirect(w, r, at, http.StatusTemporaryRedirect)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		default:
			_, _ = io.WriteString(w, r.Header.Get("Authorization"))
		}
	}))
	defer server.Close()
	var seen http.Header
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header }))
	defer other.Close()
	at = other.URL

	base := parse(t, server.URL)
	with := client(t, provider.Config{}, Options{Base: base, Authorize: bearer, MaxBody: 1 << 10})
	resp, err := with.Get(server.URL + "/moved")
	if err != nil {
		t.Fatal(err)
	}
	if body, err := ReadBody(resp); err != nil || string(body) != "Bearer t0k3n-of-the-test" {
		t.Errorf("after a redirect on the host: %q, %v", body, err)
	}
	if resp, err := with.Get(other.URL); err != nil || seen.Get("Authorization") != "" {
		t.Errorf("asked for another host: it was sent %v, %v", seen, err)
	} else {
		_ = resp.Body.Close()
	}
	seen = nil
	for _, path := range []string{"/away", "/round"} {
		if _, err := with.Get(server.URL + path); provider.ReasonOf(Describe(err)) != provider.Redirected {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if seen != nil {
		t.Errorf("the other host was asked, with %v", seen)
	}
	without := client(t, provider.Config{}, Options{Base: base})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/away?q=s3cr3t", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer set-by-hand")
	resp, err = without.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if seen == nil || seen.Get("Authorization") != "" || seen.Get("Referer") != "" || seen.Get("Cookie") != "" {
		t.Errorf("the other host was sent %v", seen)
	}
}

func TestWaits(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "120": 2 * time.Minute, "0": 0, "-5": 0, "soon": 0, "999999999999": longestWait, "99999999": longestWait,
		"Sun, 29 Nov 2026 12:01:30 GMT": 90 * time.Second, "Sun, 29 Nov 2026 11:00:00 GMT": time.Second, "Tue, 29 Nov 2099 11:00:00 GMT": longestWait,
	} {
		got := retryAfter(http.Header{"Retry-After": {value}}, now)
		if want == 0 && value != "0" {
			if !got.IsZero() {
				t.Errorf("Retry-After %q: %s", value, got)
			}
			continue
		}
		if got.Sub(now) != want {
			t.Errorf("Retry-After %q: %s, want %s", value, got.Sub(now), want)
		}
	}
}

// FR-01, FR-03: what a page instead of data is taken for, before anybody parses it.
func TestRule01_Pages(t *testing.T) {
	o, err := forgetest.NewOrchestrator(forgetest.OrchestratorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	for name, test := range map[string]struct {
		fault forgetest.Fault
		want  provider.Reason
	}{
		"web page":         {forgetest.Page(), provider.Implausible},
		"sign-in page":     {forgetest.SignIn(), provider.Auth},
		"accepted":         {forgetest.Answer(http.StatusAccepted, "application/json", "[]"), provider.Implausible},
		"part of it":       {forgetest.Answer(http.StatusPartialContent, "application/json", "[]"), provider.Implausible},
		"nothing":          {forgetest.Answer(http.StatusNoContent, "", ""), provider.Implausible},
		"unasked 304":      {forgetest.Answer(http.StatusNotModified, "", ""), provider.Implausible},
		"not found":        {forgetest.Status(http.StatusNotFound, "no"), provider.NotFound},
		"forbidden":        {forgetest.Status(http.StatusForbidden, "Resource not accessible by personal access token"), provider.Auth},
		"method":           {forgetest.Status(http.StatusMethodNotAllowed, "no"), provider.Implausible},
		"fault":            {forgetest.Status(http.StatusInternalServerError, "no"), provider.Unavailable},
		"proxy":            {forgetest.Status(http.StatusProxyAuthRequired, "no"), provider.Auth},
		"busy, for a time": {retryIn("3600", http.StatusServiceUnavailable), provider.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			o.Break(test.fault)
			_, err := client(t, provider.Config{}, Options{Base: parse(t, o.URL)}).Get(o.URL)
			if provider.ReasonOf(err) != test.want {
				t.Errorf("got %v, want reason %s", err, test.want)
			}
		})
	}
}

func retryIn(seconds string, status int) forgetest.Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		w.Header().Set("Retry-After", seconds)
		forgetest.Status(status, "later")(w, r, next)
	}
}

// FR-86, FR-92: what is wrong, and what to do, for the ways in which no answer comes.
func TestDescribe(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	ca, err := forgetest.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	untrusted, err := forgetest.NewOrchestrator(forgetest.OrchestratorOptions{CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	defer untrusted.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()

	for name, test := range map[string]struct {
		url  string
		want provider.Reason
	}{
		"refused":              {closed.URL + "/?token=s3cr3t", provider.Unavailable},
		"unknown authority":    {untrusted.URL, provider.TLS},
		"http on a TLS port":   {strings.Replace(untrusted.URL, "https", "http", 1), provider.Implausible},
		"https on a http port": {strings.Replace(plain(t), "http", "https", 1), provider.TLS},
		"accepts and is still": {"http://" + silent.Addr().String(), provider.Timeout},
		"no such host":         {"http://no-such-host.invalid/", provider.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, provider.Config{}, Options{Base: parse(t, test.url), Authorize: bearer})
			if test.want == provider.Timeout {
				c.Timeout = 50 * time.Millisecond
			}
			_, err := c.Get(test.url)
			described := Describe(err)
			var known *provider.Error
			if !errors.As(described, &known) || known.Reason != test.want || known.Hint == "" {
				t.Errorf("got %v, want reason %s and a hint", described, test.want)
			}
			if strings.Contains(described.Error(), "s3cr3t") || strings.Contains(described.Error(), "t0k3n") {
				t.Errorf("%q holds a credential", described)
			}
		})
	}
}

func plain(t *testing.T) string {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return server.URL
}

// A renewed credential is tried once, and the request is not told apart from others.
func TestRenew(t *testing.T) {
	token, renewed := "old", 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer new" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	c := client(t, provider.Config{}, Options{
		Base:      parse(t, server.URL),
		Authorize: func(req *http.Request) error { req.Header.Set("Authorization", "Bearer "+token); return nil },
		Renew:     func(context.Context) error { renewed++; token = "new"; return nil },
	})
	resp, err := c.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if renewed != 1 {
		t.Errorf("renewed %d times", renewed)
	}
}

// A registry says in its refusal where to get a token; the request is sent once more with it.
func TestChallenge(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer fresh" {
			w.Header().Set("Www-Authenticate", "Bearer fresh")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"errors":[{"code":"DENIED","message":"not with that"}]}`))
		}
	}))
	defer server.Close()
	credential, learned := "Bearer stale", ""
	c := client(t, provider.Config{}, Options{
		Base:      parse(t, server.URL),
		Authorize: func(req *http.Request) error { req.Header.Set("Authorization", credential); return nil },
		Challenge: func(_ context.Context, refused *http.Response) error {
			if sent := refused.Request.Header.Get("Authorization"); sent != credential {
				t.Errorf("told that %q was sent", sent)
			}
			if learned != "" {
				credential = learned
			}
			learned = refused.Header.Get("Www-Authenticate")
			return nil
		},
	})
	head := func() error {
		resp, err := c.Head(server.URL)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	if err := head(); provider.ReasonOf(Describe(err)) != provider.Auth {
		t.Errorf("with nothing new to offer: got %v", err)
	}
	if err := head(); err != nil {
		t.Errorf("with a new credential: %v", err)
	}
	credential, learned = "Bearer stale", ""
	if _, err := c.Get(server.URL); err == nil || !strings.Contains(err.Error(), "not with that") {
		t.Errorf("got %v, want what the registry said", err)
	}
}
