// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net/http"
	"strings"
)

// What became of a call, as the metric names it.
const (
	accepted = "accepted"
	ignored  = "ignored"
	refused  = "refused"
	unknown  = "unknown" // no such path
)

// hook answers one webhook call. See the package comment for the order of checks.
func (s *Server) hook(w http.ResponseWriter, r *http.Request) {
	status, result := s.receive(w, r)
	s.hooks.WithLabelValues(result).Inc()
	text := result
	switch status {
	case http.StatusNotFound:
		text = "not found"
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
		text = "only POST"
	case http.StatusRequestEntityTooLarge:
		text = "the body is too large"
	}
	say(w, status, text)
}

func (s *Server) receive(w http.ResponseWriter, r *http.Request) (status int, result string) {
	if r.Method != http.MethodPost {
		return http.StatusMethodNotAllowed, refused
	}
	if r.ContentLength > s.cfg.MaxBody {
		return http.StatusRequestEntityTooLarge, refused
	}
	e := s.receivers.Load().find(r.URL.Path)
	if e == nil {
		return http.StatusNotFound, unknown
	}
	log := s.cfg.Log.With("receiver", e.Namespace+"/"+e.Name)
	if e.Suspend {
		log.DebugContext(r.Context(), "webhook refused: receiver is suspended")
		return http.StatusServiceUnavailable, refused
	}
	seal := e.seal(r.Header)
	if _, err := io.Copy(seal, http.MaxBytesReader(w, r.Body, s.cfg.MaxBody)); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return http.StatusRequestEntityTooLarge, refused
		}
		return http.StatusBadRequest, refused
	}
	if !seal.holds() {
		log.WarnContext(r.Context(), "webhook refused: its signature or token is wrong or absent", "remote", r.RemoteAddr)
		return http.StatusForbidden, refused
	}
	event := eventOf(e.Type, r.Header)
	if !e.wants(event) {
		log.DebugContext(r.Context(), "webhook ignored", "event", event)
		return http.StatusOK, ignored
	}
	s.queue.Add(e.Targets...)
	log.InfoContext(r.Context(), "webhook accepted", "event", event, "targets", len(e.Targets))
	return http.StatusOK, accepted
}

// eventOf is the kind of event that a forge names, cut to what fits a log line.
func eventOf(kind string, h http.Header) string {
	event := ""
	switch kind {
	case TypeGitHub:
		event = h.Get("X-GitHub-Event")
	case TypeGitLab:
		event = h.Get("X-Gitlab-Event")
	}
	return event[:min(len(event), 100)]
}

// A seal is what proves that a body comes from somebody who knows the token. The
// body is written to it, and then it is asked whether it holds.
type seal struct {
	io.Writer
	holds func() bool
}

// seal reads from the headers what the body has to prove.
func (e *endpoint) seal(h http.Header) seal {
	switch e.Type {
	case TypeGeneric: // no signature by design: the path is the secret
		return seal{io.Discard, func() bool { return true }}
	case TypeGitLab:
		return seal{io.Discard, func() bool { return equal([]byte(h.Get("X-Gitlab-Token")), e.token) }}
	case TypeGenericHMAC:
		return e.hmac(h.Get("X-Signature"))
	case TypeGitHub:
		if signature := h.Get("X-Hub-Signature-256"); signature != "" {
			return e.hmac(signature)
		}
		return e.hmac(h.Get("X-Hub-Signature"))
	}
	return broken()
}

func broken() seal { return seal{io.Discard, func() bool { return false }} }

// hmac checks a signature "<algorithm>=<hex>". SHA-1 is taken as Flux takes it:
// as a MAC it is not broken, and old servers have nothing else.
func (e *endpoint) hmac(signature string) seal {
	algorithm, digits, _ := strings.Cut(signature, "=")
	var function func() hash.Hash
	switch algorithm {
	case "sha1":
		function = sha1.New
	case "sha256":
		function = sha256.New
	case "sha512":
		function = sha512.New
	default:
		return broken()
	}
	want, err := hex.DecodeString(digits)
	if err != nil {
		return broken()
	}
	mac := hmac.New(function, e.token)
	return seal{mac, func() bool { return hmac.Equal(want, mac.Sum(nil)) }}
}

// equal compares in a time that tells neither where two values differ nor how
// long the secret one is.
func equal(a, b []byte) bool {
	x, y := sha256.Sum256(a), sha256.Sum256(b)
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
