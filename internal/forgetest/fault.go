// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A Fault answers a request in place of the server, or passes it on to next.
type Fault func(w http.ResponseWriter, r *http.Request, next http.Handler)

// Answer is a fault that answers everything with a status, type and body.
func Answer(status int, contentType, body string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// Page is a maintenance page with status 200.
func Page() Fault {
	return Answer(http.StatusOK, "text/html", "<html><title>Be right back</title></html>")
}

// SignIn is a sign-in page with the status that Azure DevOps gives it.
func SignIn() Fault {
	return Answer(http.StatusNonAuthoritativeInfo, "text/html; charset=utf-8", "<!DOCTYPE html><title>Sign In</title>")
}

// JSON is a fault that answers 200 with a body of type JSON, whatever it is.
func JSON(body string) Fault {
	return Answer(http.StatusOK, "application/json; charset=utf-8", body)
}

// Status is a fault that answers with a status and a message in JSON.
func Status(status int, message string) Fault {
	return Answer(status, "application/json; charset=utf-8", fmt.Sprintf("{\"message\":%q}", message))
}

// Truncate cuts the real answer after half of its bytes and drops the connection.
func Truncate() Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		body := rec.Body.Bytes()
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// Redirect is a fault that sends the caller elsewhere.
func Redirect(location string) Fault {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	}
}

// Hang accepts the request and answers nothing until the caller goes away.
func Hang() Fault {
	return func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body) // a server sees that a client went away only when it has read all
		<-r.Context().Done()
	}
}

// Wait answers when the channel is closed, or when the client goes away.
func Wait(until <-chan struct{}) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case <-until:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}

// RateLimited is the primary limit, as GitHub answers it.
func RateLimited(reset time.Time) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		w.Header().Set("X-Ratelimit-Limit", "5000")
		w.Header().Set("X-Ratelimit-Remaining", "0")
		w.Header().Set("X-Ratelimit-Reset", strconv.FormatInt(reset.Unix(), 10))
		Status(http.StatusForbidden, "API rate limit exceeded for user ID 1.")(w, r, next)
	}
}

// SecondaryLimit is the secondary limit in its bare form, without any header.
func SecondaryLimit() Fault {
	return Status(http.StatusTooManyRequests, "You have exceeded a secondary rate limit")
}

// Times limits a fault to the first n requests.
func Times(n int, fault Fault) Fault {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		mu.Lock()
		n--
		broken := n >= 0
		mu.Unlock()
		if broken {
			fault(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// OnPage limits a fault to one page of a listing.
func OnPage(page int, fault Fault) Fault { return OnPageOf(pageOf, page, fault) }

// OnPageOf does so where something else than "page" tells the pages apart.
func OnPageOf(number func(*http.Request) int, page int, fault Fault) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if number(r) == page {
			fault(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	}
}

// Link is a fault that replaces the Link header: an endless list if it names a
// page that was there before.
func Link(header func(r *http.Request) string) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.Header().Set("Link", header(r))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	}
}

// After calls fn once, when the server has answered a page.
func After(page int, fn func()) Fault {
	var once sync.Once
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(w, r)
		if pageOf(r) == page {
			once.Do(fn)
		}
	}
}

func pageOf(r *http.Request) int {
	page, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil || page < 1 {
		return 1
	}
	return page
}

// A front is what all servers have in common: a switch for faults and a record of
// requests.
type front struct {
	mu       sync.Mutex
	fault    Fault
	requests []*http.Request
	next     http.Handler
}

// Break makes the server fail until Heal is called.
func (f *front) Break(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// Heal ends what Break began.
func (f *front) Heal() { f.Break(nil) }

// Requests returns the requests so far, without their bodies.
func (f *front) Requests() []*http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// Forget empties the record of requests.
func (f *front) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = nil
}

// Sent tells whether any request, as it came over the wire, had this text in it.
func (f *front) Sent(text string) bool {
	return slices.ContainsFunc(f.Requests(), func(r *http.Request) bool {
		dump, err := httputil.DumpRequest(r, false)
		return err == nil && containsFold(string(dump), text)
	})
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	fault := f.fault
	f.requests = append(f.requests, record(r))
	f.mu.Unlock()
	if fault != nil {
		fault(w, r, f.next)
		return
	}
	f.next.ServeHTTP(w, r)
}

// record is what is kept of a request: a copy that the server does not touch.
func record(r *http.Request) *http.Request {
	kept := r.Clone(context.Background())
	kept.Body = http.NoBody
	return kept
}

// Calls counts the requests so far.
func (f *front) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests)
}
