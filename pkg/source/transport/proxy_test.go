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

	"resourceset.example/renderer/pkg/source/provider"
)

// through makes a client ask by way of a proxy, as HTTPS_PROXY and HTTP_PROXY do.
func through(t *testing.T, c *http.Client, proxy string) {
	t.Helper()
	rt, ok := c.Transport.(*roundTripper)
	if !ok {
		t.Fatalf("the transport is a %T", c.Transport)
	}
	rt.proxy = http.ProxyURL(parse(t, proxy))
	rt.next.(*http.Transport).Proxy = rt.proxy
}

// Where a proxy is in the way, it is named, and where to look; its password is not.
func TestRule08_Proxies(t *testing.T) {
	answer := func(status int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html>Squid</html>")
		}))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	dead := closed.Listener.Addr().String()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	for name, test := range map[string]struct {
		proxy, url string
		want       provider.Reason
		words      string
	}{
		"https, dead":                {dead, "https://forge.example/", provider.Unavailable, "forge.example through the proxy " + dead},
		"http, dead":                 {dead, "http://forge.example/", provider.Unavailable, "forge.example through the proxy " + dead},
		"no such proxy":              {"no-such-host.invalid:3128", "https://forge.example/", provider.Unavailable, "through the proxy no-such-host.invalid:3128"},
		"silent":                     {silent.Addr().String(), "https://forge.example/", provider.Timeout, "through the proxy " + silent.Addr().String()},
		"wants a password":           {answer(407), "https://forge.example/", provider.Auth, "forge.example:443: the proxy 127.0.0.1:"},
		"wants a password, no TLS":   {answer(407), "http://forge.example/", provider.Auth, "through the proxy 127.0.0.1:"},
		"forbids":                    {answer(403), "https://forge.example/", provider.Unavailable, "answered 403 Forbidden"},
		"does not get there":         {answer(502), "https://forge.example/", provider.Unavailable, "answered 502 Bad Gateway"},
		"does not get there, no TLS": {answer(504), "http://forge.example/", provider.Unavailable, "504 Gateway Timeout, through the proxy 127.0.0.1:"},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, provider.Config{}, Options{Base: parse(t, test.url), Authorize: bearer})
			through(t, c, "http://robot:s3cr3t@"+test.proxy)
			ctx, cancel := context.WithCancel(t.Context())
			if test.want == provider.Timeout {
				ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
			}
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, test.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Do(req)
			var known *provider.Error
			if !errors.As(Describe(err), &known) || known.Reason != test.want || !strings.Contains(known.Error(), test.words) || !strings.Contains(known.Hint, "HTTPS_PROXY") {
				t.Errorf("got %v (%s), hint %q; want %s, %q", known, known.Reason, known.Hint, test.want, test.words)
			}
			if strings.Contains(known.Error()+known.Hint, "s3cr3t") || strings.Contains(known.Error(), ": :") {
				t.Errorf("%v holds the proxy's password, or says nothing between two colons", known)
			}
		})
	}
}

// A server behind a proxy that works is not blamed on it.
func TestProxyThatWorks(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
	defer proxy.Close()
	c := client(t, provider.Config{}, Options{Base: &url.URL{Scheme: "http", Host: "forge.example"}})
	through(t, c, proxy.URL)
	_, err := c.Get("http://forge.example/")
	if provider.ReasonOf(err) != provider.NotFound || strings.Contains(err.Error(), "proxy") {
		t.Errorf("got %v", err)
	}
}

// A server that is busy for a time is not said to have a limit, neither to the first
// nor to those who wait with him.
func TestBusyForATimeIsNoLimit(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"message":"Upgrading"}`)
	}))
	defer server.Close()
	limits := &provider.Limits{}
	for _, words := range []string{"answered 503 Service Unavailable, and asks to wait until ", "wait until "} {
		_, err := client(t, provider.Config{Limits: limits}, Options{Base: parse(t, server.URL)}).Get(server.URL)
		var known *provider.Error
		if !errors.As(err, &known) || known.Reason != provider.Unavailable || known.Until.IsZero() || !strings.Contains(known.Error(), words) {
			t.Fatalf("got %v; want %q", err, words)
		}
		if text := known.Error() + known.Hint; strings.Contains(text, "limit") || strings.Contains(text, ": :") {
			t.Errorf("got %q with hint %q", known, known.Hint)
		}
	}
}
