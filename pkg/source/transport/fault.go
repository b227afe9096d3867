// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"syscall"

	"resourceset.example/renderer/pkg/source/provider"
)

// Describe turns any error of a client of this package into a provider.Error:
// what was wrong and what to do, without the URL that net/http adds to it.
func Describe(err error) error {
	if err == nil {
		return nil
	}
	return Fault(err)
}

// Fault is Describe for what is an error, and keeps its type.
func Fault(err error) *provider.Error {
	var known *provider.Error
	if errors.As(err, &known) {
		return known
	}
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err
	}
	reason, hint := classify(err)
	return &provider.Error{Reason: reason, Msg: "", Hint: hint, Err: err}
}

func classify(err error) (provider.Reason, string) {
	var (
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
		operation *net.OpError
		header    tls.RecordHeaderError
		dns       *net.DNSError
		timeout   net.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return provider.Canceled, ""
	case errors.As(err, &operation) && operation.Op == "proxyconnect" && !operation.Timeout():
		return provider.Unavailable, "the proxy cannot be reached"
	case errors.Is(err, context.DeadlineExceeded):
		return provider.Timeout, "the server took too long: it may be down, or a firewall in between"
	case errors.As(err, &authority):
		return provider.TLS, "put the server's certificate authority into ca.crt of spec.certSecretRef"
	case errors.As(err, &hostname):
		return provider.TLS, "the server's certificate is for other names: check spec.url"
	case errors.As(err, &invalid), errors.As(err, &verify):
		return provider.TLS, "the server's certificate is not valid: it may have expired"
	case errors.As(err, &operation) && operation.Op == "remote error": // an alert of crypto/tls
		return provider.TLS, "the server ended the handshake: it may want a client certificate (tls.crt and tls.key of spec.certSecretRef)"
	case errors.As(err, &header):
		return provider.TLS, "the server does not speak TLS there: check scheme and port of spec.url"
	case errors.As(err, &dns):
		return provider.Unavailable, "the host name cannot be resolved: check spec.url and DNS"
	case errors.As(err, &timeout) && timeout.Timeout():
		return provider.Timeout, "the server took too long: it may be down, or a firewall in between"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return provider.Implausible, "the answer was cut off; the last good one stands"
	}
	return provider.Unavailable, "the server cannot be reached: check spec.url, and the network"
}

// transient tells whether the same request may succeed a moment later.
func transient(err error) bool {
	var known *provider.Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsTemporary || dns.IsTimeout
	}
	var operation *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPIPE) ||
		(errors.As(err, &operation) && operation.Timeout())
}
