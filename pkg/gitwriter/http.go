// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	infoRefs      = "/info/refs"
	maxErrorBody  = 4 << 10
	maxDrain      = 64 << 10 // read to the end, so that the connection can be used again
	maxRedirects  = 5
	dialTimeout   = 30 * time.Second
	idleKeepAlive = 90 * time.Second
)

var errRedirect = errors.New("redirect refused")

// An httpClient keeps connections between conversations, as long as the certificates
// that they rest on stay the same.
type httpClient struct {
	*http.Client
	certificates [sha256.Size]byte
	foreign      bool // Config.HTTPClient
}

func (h *httpClient) close() { h.CloseIdleConnections() }

// tlsConfig trusts the system's certificates and those given.
func tlsConfig(auth Auth) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(auth.CAFile) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(auth.CAFile) {
			return nil, errors.New("ca.crt holds no certificate in PEM format")
		}
		config.RootCAs = pool
	}
	if len(auth.ClientCert) > 0 || len(auth.ClientKey) > 0 {
		pair, err := tls.X509KeyPair(auth.ClientCert, auth.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func (m *Mirror) httpClientFor(auth Auth) (*httpClient, error) {
	if m.cfg.HTTPClient != nil {
		return &httpClient{Client: m.cfg.HTTPClient, foreign: true}, nil
	}
	sum := sha256.Sum256(bytes.Join([][]byte{auth.CAFile, auth.ClientCert, auth.ClientKey}, []byte{0}))
	if m.client != nil && m.client.certificates == sum {
		return m.client, nil
	}
	config, err := tlsConfig(auth)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.remote.display, err)
	}
	if m.client != nil {
		m.client.close()
	}
	m.client = &httpClient{certificates: sum, Client: &http.Client{
		CheckRedirect: checkRedirect,
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
			TLSClientConfig:     config,
			TLSHandshakeTimeout: dialTimeout,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 2,
			IdleConnTimeout:     idleKeepAlive,
		},
	}}
	return m.client, nil
}

// checkRedirect follows a server that moved a repository, or that wants https, and no
// other: what goes to another host would carry our credentials or miss them.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from, to := via[0].URL, req.URL
	switch {
	case req.Method != http.MethodGet || via[0].Method != http.MethodGet:
		return fmt.Errorf("%w: of a request other than the first", errRedirect)
	case len(via) >= maxRedirects:
		return fmt.Errorf("%w: more than %d", errRedirect, maxRedirects)
	case to.Hostname() != from.Hostname():
		return fmt.Errorf("%w: to another host, %s", errRedirect, to.Hostname())
	case to.Scheme == from.Scheme && to.Port() == from.Port():
		return nil
	case from.Scheme == schemeHTTP && to.Scheme == schemeHTTPS && from.Port() == "" && to.Port() == "":
		return nil
	}
	return fmt.Errorf("%w: to another scheme or port, %s://%s", errRedirect, to.Scheme, to.Host)
}

// httpLine is a conversation over smart HTTP: the list and the request are two requests.
type httpLine struct {
	c       *conversation
	client  *httpClient
	auth    Auth
	service string
	base    string // URL of the repository; a redirect of the list changes it
}

func (m *Mirror) dialHTTP(c *conversation, auth Auth, service string) (line, error) {
	client, err := m.httpClientFor(auth)
	if err != nil {
		return nil, err
	}
	if auth.BearerToken == "" && auth.Username == "" && auth.Password == "" {
		auth.Username, auth.Password = c.remote.user, c.remote.password
	}
	return &httpLine{c: c, client: client, auth: auth, service: service, base: strings.TrimSuffix(c.remote.display, "/")}, nil
}

func (h *httpLine) hangUp()         {}
func (h *httpLine) explain() string { return "" }

func (h *httpLine) list() (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(h.c.ctx, http.MethodGet, h.base+infoRefs+"?service="+h.service, nil)
	if err != nil {
		return nil, &URLError{Reason: "cannot be used"}
	}
	res, err := h.do(req, "application/x-"+h.service+"-advertisement")
	if err != nil {
		return nil, err
	}
	if moved := *res.Request.URL; strings.HasSuffix(moved.Path, infoRefs) {
		moved.Path, moved.RawPath, moved.RawQuery, moved.User = strings.TrimSuffix(moved.Path, infoRefs), "", "", nil
		h.base = moved.String()
	}
	return h.body(res), nil
}

func (h *httpLine) exchange(write func(io.Writer) error) (io.ReadCloser, error) {
	var buf bytes.Buffer
	if err := write(&buf); err != nil {
		return nil, err
	}
	size := int64(buf.Len())
	body := io.NopCloser(watched{dog: h.c.dog, Reader: &buf})
	req, err := http.NewRequestWithContext(h.c.ctx, http.MethodPost, h.base+"/"+h.service, body)
	if err != nil {
		return nil, &URLError{Reason: "cannot be used"}
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", "application/x-"+h.service+"-request")
	res, err := h.do(req, "application/x-"+h.service+"-result")
	if err != nil {
		return nil, err
	}
	return h.body(res), nil
}

// do sends the request and returns the answer if it is Git's.
func (h *httpLine) do(req *http.Request, want string) (*http.Response, error) {
	req.Header.Set("User-Agent", h.c.agent)
	req.Header.Set("Accept", want)
	switch {
	case h.auth.BearerToken != "":
		req.Header.Set("Authorization", "Bearer "+h.auth.BearerToken)
	case h.auth.Username != "" || h.auth.Password != "":
		req.SetBasicAuth(h.auth.Username, h.auth.Password)
	}
	res, err := h.client.Do(req)
	if err != nil {
		return nil, h.transportError(err)
	}
	h.c.dog.alive()
	if res.StatusCode != http.StatusOK {
		defer h.body(res).Close()
		return nil, h.statusError(res)
	}
	if got, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); got != want {
		defer h.body(res).Close()
		return nil, &ServerError{URL: h.c.remote.display, Status: res.StatusCode,
			Text: fmt.Sprintf("the answer is %q and not Git's; is this the URL of a repository?", got)}
	}
	return res, nil
}

func (h *httpLine) transportError(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL
	}
	if h.client.foreign {
		return err
	}
	if errors.Is(err, errRedirect) {
		return &ServerError{URL: h.c.remote.display, Text: err.Error() + "; put the repository's present URL into the configuration"}
	}
	return h.c.unreachable(err)
}

func (h *httpLine) statusError(res *http.Response) error {
	text := ""
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "text/plain" {
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody)) // what can be read of an explanation
		text = h.c.hide.text(string(body))
	}
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		reason := fmt.Sprintf("status %d", res.StatusCode)
		if text != "" {
			reason += ": " + text
		}
		hint := "check that the credentials are right and not expired"
		if res.StatusCode == http.StatusForbidden || h.service == serviceReceivePack {
			hint = "check that these credentials may write to the repository"
		}
		return &AuthError{URL: h.c.remote.display, Reason: reason, Hint: hint, Status: res.StatusCode}
	case http.StatusNotFound, http.StatusGone:
		return &NotFoundError{URL: h.c.remote.display}
	}
	if text == "" {
		text = http.StatusText(res.StatusCode)
	}
	return &ServerError{URL: h.c.remote.display, Status: res.StatusCode, Text: text}
}

// body reads the answer under the watchdog. Closing it reads a short rest, so that the
// connection can be used again.
func (h *httpLine) body(res *http.Response) io.ReadCloser {
	return watched{dog: h.c.dog, Reader: res.Body, closer: func() error {
		_, _ = io.CopyN(io.Discard, res.Body, maxDrain)
		return res.Body.Close()
	}}
}
