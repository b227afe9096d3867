// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"resourceset.example/renderer/pkg/source/provider"
)

// aboutProxies is where to look when a proxy is in the way.
const aboutProxies = "see HTTPS_PROXY and HTTP_PROXY, and NO_PROXY for hosts that are reached without one"

// describe says why there is no answer. It names the host, and the proxy by way of
// which it was asked: from here, nobody can tell which of the two it is.
func (t *roundTripper) describe(req *http.Request, err error) error {
	fault := Fault(err)
	if fault.Msg != "" {
		return fault
	}
	named := fault.Within("%s", req.URL.Host)
	if through := t.through(req); through != nil && named.Reason != provider.Canceled {
		named = fault.Within("%s through the proxy %s", req.URL.Host, through.Host)
		named.Hint += "; " + aboutProxies
	}
	return named
}

// through is the proxy that a request goes through, or nil.
func (t *roundTripper) through(req *http.Request) *url.URL {
	if t.proxy == nil {
		return nil
	}
	proxy, err := t.proxy(req)
	if err != nil {
		return nil
	}
	return proxy
}

// answeredByProxy names the proxy in a refusal that may be its own. Over TLS it sees
// no requests, and so answers none but the one for the connection.
func (t *roundTripper) answeredByProxy(req *http.Request, resp *http.Response, err error) error {
	through := t.through(req)
	if through == nil || req.URL.Scheme == "https" ||
		resp.StatusCode != http.StatusProxyAuthRequired && resp.StatusCode < http.StatusBadGateway {
		return err
	}
	named := *Fault(err)
	named.Msg += ", through the proxy " + through.Host
	named.Hint += "; " + aboutProxies
	return &named
}

// refusedByProxy describes the answer of a proxy that does not connect.
func refusedByProxy(_ context.Context, proxy *url.URL, connect *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	refused := &provider.Error{
		Reason: provider.Unavailable,
		Msg:    fmt.Sprintf("%s: the proxy %s answered %d %s", connect.Host, proxy.Host, resp.StatusCode, http.StatusText(resp.StatusCode)),
		Hint:   "the proxy does not connect to that host; " + aboutProxies,
	}
	if resp.StatusCode == http.StatusProxyAuthRequired {
		refused.Reason, refused.Hint = provider.Auth, "the proxy wants a credential: HTTPS_PROXY=http://USER:PASSWORD@HOST"
	}
	return refused
}
