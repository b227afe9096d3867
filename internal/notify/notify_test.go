// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A receiver takes events, and answers what it is told to.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	status []int // of the next answers; 202 after them
}

func newReceiver(t *testing.T, status ...int) *receiver {
	r := &receiver{status: status}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bodies = append(r.bodies, req.Method+" "+req.Header.Get("Content-Type")+" "+string(body))
		answer := http.StatusAccepted
		if len(r.status) > 0 {
			answer, r.status = r.status[0], r.status[1:]
		}
		if answer == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(answer)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.bodies...)
}

func TestEventFormat(t *testing.T) {
	r := newReceiver(t)
	s := NewSender(Config{Addresses: []string{r.URL}, Controller: "renderer"})
	s.host = "renderer-0"
	s.Send(Event{
		APIVersion: "fluxcd.controlplane.io/v1", Kind: "ResourceSet", Namespace: "apps", Name: "podinfo",
		Severity: SeverityInfo, Reason: "ReconciliationSucceeded", Message: "apps/podinfo: add 12",
		Metadata: map[string]string{"revision": "main@sha1:abc"}, Token: "7",
		Annotations: map[string]string{"event.toolkit.fluxcd.io/team": "web"}, Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
	})
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := r.got()
	if len(got) != 1 {
		t.Fatalf("got %q", got)
	}
	body, ok := strings.CutPrefix(got[0], "POST application/json ")
	if !ok {
		t.Fatalf("got %q", got[0])
	}
	var event, want any
	if err := json.Unmarshal([]byte(body), &event); err != nil {
		t.Fatal(err)
	}
	const format = `{
		"involvedObject": {"apiVersion": "fluxcd.controlplane.io/v1", "kind": "ResourceSet", "namespace": "apps", "name": "podinfo"},
		"severity": "info", "timestamp": "2026-01-02T03:04:05Z", "message": "apps/podinfo: add 12", "reason": "ReconciliationSucceeded",
		"metadata": {"fluxcd.controlplane.io/revision": "main@sha1:abc", "fluxcd.controlplane.io/token": "7", "event.toolkit.fluxcd.io/team": "web"},
		"reportingController": "renderer", "reportingInstance": "renderer-0"}`
	if err := json.Unmarshal([]byte(format), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, event); diff != "" {
		t.Error(diff)
	}
}

// What may heal is tried again, a bounded number of times; what will not is not,
// and neither keeps the next event.
func TestAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		status []int
		tries  int
		logged string
	}{
		"accepted":      {nil, 1, ""},
		"repeated":      {[]int{429}, 1, ""},
		"for a moment":  {[]int{503, 500}, 3, ""},
		"broken":        {[]int{500, 500, 500, 500, 500}, 4, "answered 500"},
		"refused":       {[]int{400}, 1, "answered 400"},
		"sent off":      {[]int{302}, 1, "answered 302"},
		"wrong address": {[]int{404}, 1, "answered 404"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, test.status...)
			var log bytes.Buffer
			s := NewSender(Config{Addresses: []string{r.URL}, FirstWait: time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
			s.Send(Event{Message: "one"})
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := len(r.got()); got != test.tries {
				t.Errorf("%d requests, want %d", got, test.tries)
			}
			if test.logged == "" != (log.Len() == 0) || !strings.Contains(log.String(), test.logged) {
				t.Errorf("logged %q, want %q", &log, test.logged)
			}
		})
	}
}

// FR-92: a receiver that never answers delays nobody, and one address that is down
// does not keep events from another.
func TestSlowReceiver(t *testing.T) {
	release := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		select {
		case <-release:
		case <-req.Context().Done():
		}
	}))
	defer hangs.Close()
	defer close(release)
	r := newReceiver(t)
	var log bytes.Buffer
	s := NewSender(Config{Addresses: []string{hangs.URL, r.URL}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	const count = maxQueue + 100
	for i := range count {
		s.Send(Event{Message: fmt.Sprint(i)})
	}
	for _, q := range s.queues {
		if q.len() > maxQueue {
			t.Errorf("%d events wait", q.len())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(ctx); err == nil || !strings.Contains(err.Error(), "not delivered") {
		t.Errorf("got %v", err)
	}
	if n := strings.Count(log.String(), "the oldest are dropped"); n < 1 || n > 2 {
		t.Errorf("said %d times that events were dropped:\n%s", n, &log)
	}
}

func TestNobodyListens(t *testing.T) {
	r := newReceiver(t)
	r.Close()
	var log bytes.Buffer
	s := NewSender(Config{Addresses: []string{r.URL}, FirstWait: time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))})
	s.Send(Event{Message: "one"})
	if err := s.Close(t.Context()); err != nil || !strings.Contains(log.String(), "connection refused") {
		t.Errorf("got %v, logged %q", err, &log)
	}
}

// A message is cut where Flux would refuse it, between characters.
func TestLongMessage(t *testing.T) {
	s := NewSender(Config{})
	got := []rune(s.encode(Event{Message: strings.Repeat("ö", maxMessage+1)}).Message)
	if len(got) != maxMessage || got[0] != 'ö' || got[maxMessage-1] != '…' {
		t.Errorf("%d characters", len(got))
	}
}
