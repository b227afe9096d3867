// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A tenant is one input set, as the orchestrator answers with it. It has no id.
type tenant struct {
	Tenant       string   `json:"tenant"`
	Version      string   `json:"version"`
	FeatureFlags []string `json:"featureFlags"`
}

// An orchestrator is a small service that knows which tenant runs what. It
// answers renderer's question for input sets to whoever has its token, and calls
// a webhook after each change.
type orchestrator struct {
	token string // of those who ask
	hook  hook

	mu      sync.Mutex
	tenants map[string]tenant
	broken  bool
	asked   int // answers given, errors included

	listener net.Listener
	server   *http.Server
}

// A hook is where changes are announced.
type hook struct {
	url   string
	token string
}

// startOrchestrator listens on loopback. It is open for a person with curl, too:
// PUT and DELETE of /tenants/NAME need no token, since only this machine reaches it.
func startOrchestrator(ctx context.Context, token string, hook hook, tenants map[string]tenant) (*orchestrator, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("orchestrator: %w", err)
	}
	o := &orchestrator{token: token, hook: hook, tenants: tenants, listener: listener}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/flux/inputs", o.inputs)
	mux.HandleFunc("PUT /tenants/{name}", o.put)
	mux.HandleFunc("DELETE /tenants/{name}", o.delete)
	o.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = o.server.Serve(listener) }() // ends with Close
	return o, nil
}

func (o *orchestrator) url() string  { return "http://" + o.listener.Addr().String() }
func (o *orchestrator) close() error { return o.server.Close() }

func (o *orchestrator) inputs(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked++
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+o.token)) != 1 {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if o.broken { // what a proxy in front of a service that is down likes to say
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html><title>Be right back</title></html>\n")
		return
	}
	answer := struct {
		Inputs []tenant `json:"inputs"`
	}{Inputs: []tenant{}}
	for _, name := range slices.Sorted(maps.Keys(o.tenants)) {
		answer.Inputs = append(answer.Inputs, o.tenants[name])
	}
	_ = json.NewEncoder(w).Encode(answer) // a client that is gone asks again
}

func (o *orchestrator) put(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	o.mu.Lock()
	t := o.tenants[name]
	o.mu.Unlock()
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&t); err != nil && !errors.Is(err, io.EOF) {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t.Tenant = name
	if t.Version == "" {
		t.Version = "2.0.0"
	}
	if t.FeatureFlags == nil {
		t.FeatureFlags = []string{}
	}
	o.answer(w, o.set(r.Context(), t))
}

func (o *orchestrator) delete(w http.ResponseWriter, r *http.Request) {
	o.answer(w, o.remove(r.Context(), r.PathValue("name")))
}

func (o *orchestrator) answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// set onboards a tenant, or changes one.
func (o *orchestrator) set(ctx context.Context, t tenant) error {
	o.mu.Lock()
	o.tenants[t.Tenant] = t
	o.mu.Unlock()
	return o.announce(ctx)
}

// remove offboards a tenant.
func (o *orchestrator) remove(ctx context.Context, name string) error {
	o.mu.Lock()
	delete(o.tenants, name)
	o.mu.Unlock()
	return o.announce(ctx)
}

// fail makes the orchestrator answer as if it were down, or heals it.
func (o *orchestrator) fail(ctx context.Context, broken bool) error {
	o.mu.Lock()
	o.broken = broken
	o.mu.Unlock()
	return o.announce(ctx)
}

// answers is how often the orchestrator has been asked.
func (o *orchestrator) answers() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked
}

// announce calls the webhook, signed as receivers of type generic-hmac want it. A
// service that has just started may not know the path yet, and is called again.
func (o *orchestrator) announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		status, err := o.call(ctx)
		switch {
		case err != nil:
			return errors.New("webhook: nobody answers") // the cause would repeat the URL, which is a secret
		case status == http.StatusOK:
			return nil
		case status != http.StatusNotFound:
			return fmt.Errorf("webhook: answered with status %d", status)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return errors.New("webhook: the service does not know its path")
		}
	}
}

func (o *orchestrator) call(ctx context.Context) (status int, err error) {
	const body = `{"reason":"tenants changed"}`
	mac := hmac.New(sha256.New, []byte(o.hook.token))
	mac.Write([]byte(body))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.hook.url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// newToken is a secret that nobody has to remember.
func newToken() string { return rand.Text() }
