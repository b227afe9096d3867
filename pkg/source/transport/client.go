// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"resourceset.example/renderer/pkg/source/provider"
)

// Bounds of one request. A whole fetch is bounded by its context.
const (
	connectTimeout = 10 * time.Second
	headerTimeout  = 30 * time.Second
	requestTimeout = time.Minute
	maxRedirects   = 10
	maxTries       = 3
)

// Options say what a client is for.
type Options struct {
	// Base is where the credential belongs: its scheme, host and port.
	Base *url.URL
	// Authorize adds the credential to a request to Base's host; nil for none.
	Authorize func(*http.Request) error
	// Renew, if set, is called once when the server refuses the credential (401),
	// before the request is tried once more.
	Renew func(context.Context) error
	// Challenge, if set, is called in Renew's place with the answer that wants a
	// credential: for servers that say there where to get one. The answer's request
	// is the one that was sent. The body is not there any more.
	Challenge func(ctx context.Context, refused *http.Response) error
	// Identity tells the credential from others for Limits. It is neither kept nor
	// shown, so it may be the credential.
	Identity string
	MaxBody  int64 // of one answer, in bytes, after decompression
	// Reads says that POST requests change nothing either, so that they are tried
	// again like GET requests. They need a GetBody.
	Reads bool
	// Explain, if set, says what a refusal (4xx, 5xx) with this body means, where the
	// server has words of its own for it; nil for what its status says. An error of
	// reason RateLimited makes all wait that share the credential.
	Explain func(resp *http.Response, body []byte) *provider.Error
}

// NewClient returns the HTTP client of a provider.
func NewClient(cfg provider.Config, opts Options) (*http.Client, error) {
	tlsConfig, err := tlsConfig(cfg.CertSecret)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
	wait := cfg.RetryWait
	if wait == 0 {
		wait = provider.DefaultRetryWait
	}
	credentialed := opts.Authorize != nil || len(tlsConfig.Certificates) > 0
	return &http.Client{
		Timeout:       requestTimeout,
		CheckRedirect: redirectPolicy(opts.Base, credentialed),
		Transport: &roundTripper{
			opts:      opts,
			userAgent: cfg.UserAgent,
			limits:    cfg.Limits,
			limitKey:  limitKey(opts),
			wait:      wait,
			proxy:     http.ProxyFromEnvironment,
			next: &http.Transport{
				Proxy:                  http.ProxyFromEnvironment,
				OnProxyConnectResponse: refusedByProxy,
				DialContext:            dialer.DialContext,
				TLSClientConfig:        tlsConfig,
				TLSHandshakeTimeout:    connectTimeout,
				ResponseHeaderTimeout:  headerTimeout,
				MaxResponseHeaderBytes: 256 << 10,
				IdleConnTimeout:        90 * time.Second,
				MaxIdleConnsPerHost:    4,
				MaxConnsPerHost:        8,
				ForceAttemptHTTP2:      true,
			},
		},
	}, nil
}

// Bound gives a context without a deadline the default one.
func Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, provider.DefaultTimeout)
}

// limitKey tells holders of different credentials apart without keeping them.
func limitKey(opts Options) string {
	sum := sha256.Sum256([]byte(opts.Identity))
	return opts.Base.Host + " " + hex.EncodeToString(sum[:8])
}

var errRedirect = errors.New("redirect refused")

// redirectPolicy refuses redirects that would carry a credential to another
// host, also by way of a chain that comes back, and those that leave TLS.
func redirectPolicy(base *url.URL, credentialed bool) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		from := via[len(via)-1].URL
		switch {
		case len(via) >= maxRedirects:
			return &provider.Error{
				Reason: provider.Redirected,
				Msg:    fmt.Sprintf("more than %d redirects", maxRedirects),
				Hint:   "set spec.url to where they should end",
				Err:    errRedirect,
			}
		case from.Scheme == "https" && req.URL.Scheme != "https":
			return &provider.Error{
				Reason: provider.Redirected,
				Msg:    fmt.Sprintf("redirected from https to %s://%s", req.URL.Scheme, req.URL.Host),
				Hint:   "a redirect that gives up encryption is not followed",
				Err:    errRedirect,
			}
		case credentialed && !SameHost(base, req.URL):
			return &provider.Error{
				Reason: provider.Redirected,
				Msg:    "redirected to another host, " + req.URL.Host,
				Hint:   "credentials are not sent there: if it is the right one, set spec.url to it",
				Err:    errRedirect,
			}
		}
		return nil
	}
}

// SameHost tells whether a credential for base may be sent to u: the same scheme,
// host and port, or the step from http to https on the default ports.
func SameHost(base, u *url.URL) bool {
	if !strings.EqualFold(base.Hostname(), u.Hostname()) {
		return false
	}
	if strings.EqualFold(base.Scheme, u.Scheme) {
		return port(base) == port(u)
	}
	return base.Scheme == "http" && u.Scheme == "https" && port(base) == "80" && port(u) == "443"
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}
