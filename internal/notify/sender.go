// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of sending.
const (
	maxQueue       = 1000 // events that wait for one address
	maxTries       = 4    // of one event
	firstWait      = 500 * time.Millisecond
	requestTimeout = 10 * time.Second
	maxMessage     = 39000 // characters, Flux's own limit
)

// Severities of events. Alerts with eventSeverity: error leave out the others.
const (
	SeverityInfo  = eventv1.EventSeverityInfo
	SeverityError = eventv1.EventSeverityError
)

// An Event is something that happened to an object.
type Event struct {
	APIVersion, Kind, Namespace, Name string
	Severity                          string
	Reason                            string // one word in CamelCase
	Message                           string
	// Metadata has keys without a prefix ("revision"); they are sent with that of
	// the object's API group, as Flux's controllers do.
	Metadata map[string]string
	// Annotations are metadata with keys of their own prefix, sent as they are: those
	// of the object in Flux's group for events.
	Annotations map[string]string
	// Token tells the event from an earlier one about the same object in the same
	// words. Of two events without a difference, the notification-controller drops
	// the one that comes within five minutes.
	Token string
	Time  time.Time
}

// A Config says where events go.
type Config struct {
	Addresses  []string // http:// or https://
	Controller string   // who reports
	UserAgent  string
	Log        *slog.Logger  // discards if nil
	FirstWait  time.Duration // before an event is tried again, doubled each time; half a second if 0
}

// A Sender posts events to all addresses.
type Sender struct {
	cfg    Config
	queues []*queue
	done   sync.WaitGroup
	stop   context.CancelFunc
	host   string
}

// NewSender starts to wait for events. Close ends it.
func NewSender(cfg Config) *Sender {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.FirstWait == 0 {
		cfg.FirstWait = firstWait
	}
	ctx, stop := context.WithCancel(context.Background()) // it outlives the loop, to send what is left
	s := &Sender{cfg: cfg, stop: stop}
	s.host, _ = os.Hostname() // the Pod's name; an event without is one, too
	client := &http.Client{
		Timeout:       requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for _, address := range cfg.Addresses {
		q := newQueue()
		s.queues = append(s.queues, q)
		s.done.Go(func() {
			for {
				body, ok := q.take(ctx)
				if !ok {
					return
				}
				if err := s.deliver(ctx, client, address, body); err != nil {
					cfg.Log.Warn("event not delivered", "address", address, "error", err)
				}
			}
		})
	}
	return s
}

// Send hands over events. It does not wait.
func (s *Sender) Send(events ...Event) {
	for _, event := range events {
		body, err := json.Marshal(s.encode(event))
		if err != nil {
			s.cfg.Log.Error("event cannot be encoded", "error", err)
			continue
		}
		for i, q := range s.queues {
			if q.put(body) == 1 {
				s.cfg.Log.Warn("too many events are waiting: the oldest are dropped", "address", s.cfg.Addresses[i])
			}
		}
	}
}

// Close sends what is left until the context ends, and returns what was not sent.
func (s *Sender) Close(ctx context.Context) error {
	for _, q := range s.queues {
		q.close()
	}
	sent := make(chan struct{})
	go func() {
		s.done.Wait()
		close(sent)
	}()
	defer func() {
		s.stop()
		<-sent
	}()
	select {
	case <-sent:
		return nil
	case <-ctx.Done():
		left := 0
		for _, q := range s.queues {
			left += q.len()
		}
		return fmt.Errorf("%d events and those under way were not delivered: %w", left, ctx.Err())
	}
}

func (s *Sender) encode(e Event) *eventv1.Event {
	message := []rune(e.Message)
	if len(message) > maxMessage {
		message = append(message[:maxMessage-1], '…')
	}
	out := &eventv1.Event{
		InvolvedObject:      corev1.ObjectReference{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name},
		Severity:            e.Severity,
		Timestamp:           metav1.NewTime(e.Time),
		Message:             string(message),
		Reason:              e.Reason,
		ReportingController: s.cfg.Controller,
		ReportingInstance:   s.host,
	}
	group := out.InvolvedObject.GroupVersionKind().Group
	metadata := maps.Clone(e.Annotations)
	if metadata == nil {
		metadata = make(map[string]string, len(e.Metadata)+1)
	}
	for key, value := range e.Metadata {
		metadata[group+"/"+key] = value
	}
	if e.Token != "" {
		metadata[group+"/"+eventv1.MetaTokenKey] = e.Token
	}
	out.Metadata = metadata
	return out
}

// deliver posts one event, again if that may help.
func (s *Sender) deliver(ctx context.Context, client *http.Client, address string, body []byte) error {
	for try := 1; ; try++ {
		again, err := s.post(ctx, client, address, body)
		if err == nil || !again || try == maxTries {
			return err
		}
		wait := s.cfg.FirstWait << (try - 1)
		timer := time.NewTimer(wait/2 + rand.N(wait/2+1))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// post reports whether another try may go better.
func (s *Sender) post(ctx context.Context, client *http.Client, address string, body []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("not an address")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", s.cfg.UserAgent)
	resp, err := client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // the address is said by the caller
		}
		return true, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	switch {
	case resp.StatusCode/100 == 2:
		return false, nil
	case resp.StatusCode == http.StatusTooManyRequests:
		// The notification-controller's way to say that it has had this event already.
		return false, nil
	}
	return resp.StatusCode >= 500, fmt.Errorf("the receiver answered %d", resp.StatusCode)
}
