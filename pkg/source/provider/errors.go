// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// A Reason is the class of an Error. It stays the same while the same thing is
// wrong, whatever request ids the server's words hold.
type Reason string

// The reasons why a fetch has no result.
const (
	Misconfigured Reason = "config"      // the provider's own definition or secrets
	Auth          Reason = "auth"        // the credential is missing, expired or not enough
	NotFound      Reason = "not-found"   // no such thing, or the credential cannot see it
	RateLimited   Reason = "rate-limit"  // the server said to come back later
	Implausible   Reason = "implausible" // an answer that is not the data asked for
	TooLarge      Reason = "too-large"   // an answer over its limit
	Redirected    Reason = "redirect"    // a redirect that is not followed
	TLS           Reason = "tls"         // no trust, in the one direction or the other
	Unavailable   Reason = "unavailable" // no answer, or the server says it cannot
	Timeout       Reason = "timeout"     // no answer in time
	Canceled      Reason = "canceled"    // we did not wait for the answer
	Unknown       Reason = "unknown"
)

// An Error is why a fetch has no result. It holds no credential.
type Error struct {
	Reason Reason
	Msg    string
	Hint   string    // what to do, or empty
	Status int       // HTTP status, or 0
	Until  time.Time // RateLimited, or Unavailable for a time: no request before then
	Err    error     // the cause, or nil
}

func (e *Error) Error() string {
	msg := e.Msg
	if e.Err != nil {
		msg = join(msg, e.Err.Error())
	}
	return cmp.Or(msg, string(e.Reason))
}

// Within is the error of a part of what was asked for, and says which part.
func (e *Error) Within(format string, args ...any) *Error {
	within := *e
	within.Msg = join(fmt.Sprintf(format, args...), e.Msg)
	return &within
}

// join leaves out what is empty, so that nobody reads ": :".
func join(outer, inner string) string {
	if outer == "" || inner == "" {
		return outer + inner
	}
	return outer + ": " + inner
}

func (e *Error) Unwrap() error { return e.Err }

// Suggestion is the hint line that is printed below the error.
func (e *Error) Suggestion() string { return e.Hint }

// ReasonOf returns the class of any error that a provider returned.
func ReasonOf(err error) Reason {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Reason
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Unknown
}
