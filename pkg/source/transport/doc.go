// SPDX-License-Identifier: Apache-2.0

// Package transport makes the HTTP client that input providers use, so that what
// must hold for all of them is written once:
//
//   - The credential goes to the host that it belongs to and nowhere else. With a
//     credential or client certificate, a redirect to another host is refused, and
//     so is any redirect from https to http.
//   - An answer that is not data is an error: every status but 200, 201 and (when
//     asked for) 304, and a web page whatever its status. Errors are of
//     type [provider.Error], have a hint, and hold neither credentials nor the
//     query of a URL.
//   - Bodies have a limit, and every wait an end.
//   - A server that asks for patience gets it: from all holders of the same
//     credential, through [provider.Limits]. What may heal by itself (a broken
//     connection, 502, 503, 504) is tried again twice.
//
// TLS trusts the system's certificate authorities plus those of "ca.crt" in the
// certificate secret. HTTPS_PROXY, HTTP_PROXY, NO_PROXY and SSL_CERT_FILE are
// honoured.
package transport
