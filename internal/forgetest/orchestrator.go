// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// OrchestratorOptions say how an Orchestrator is reached, and by whom.
type OrchestratorOptions struct {
	Token              string // wanted as bearer token, if set
	Username, Password string // wanted as basic authentication, if set
	CA                 *CA    // serves https with a certificate of this authority, if set
	ClientCert         bool   // wants a client certificate of that authority
}

// An Orchestrator answers every GET with its input sets, as an ExternalService does.
type Orchestrator struct {
	*httptest.Server
	front
	options OrchestratorOptions
	mu      sync.Mutex
	inputs  []map[string]any
}

// NewOrchestrator starts an orchestrator without any input sets.
func NewOrchestrator(options OrchestratorOptions) (*Orchestrator, error) {
	o := &Orchestrator{options: options, inputs: []map[string]any{}}
	o.next = http.HandlerFunc(o.answer)
	o.Server = httptest.NewUnstartedServer(&o.front)
	o.Config.ErrorLog = log.New(io.Discard, "", 0)
	if options.CA == nil {
		o.Start()
		return o, nil
	}
	config, err := options.CA.ServerTLS(options.ClientCert)
	if err != nil {
		o.Close()
		return nil, err
	}
	o.TLS = config
	o.StartTLS()
	return o, nil
}

// Set replaces all input sets.
func (o *Orchestrator) Set(inputs ...map[string]any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inputs = append([]map[string]any{}, inputs...)
}

// Add appends an input set.
func (o *Orchestrator) Add(input map[string]any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inputs = append(o.inputs, input)
}

// Update sets a field of the input set whose field key has a value.
func (o *Orchestrator) Update(key string, value any, field string, to any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, input := range o.inputs {
		if input[key] == value {
			changed := map[string]any{}
			for name, old := range input {
				changed[name] = old
			}
			changed[field] = to
			o.inputs[i] = changed
		}
	}
}

// Remove takes away the input sets whose field key has a value.
func (o *Orchestrator) Remove(key string, value any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inputs = slices.DeleteFunc(o.inputs, func(input map[string]any) bool { return input[key] == value })
}

func (o *Orchestrator) answer(w http.ResponseWriter, r *http.Request) {
	if !o.authorized(r) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		Status(http.StatusUnauthorized, "who are you?")(w, r, nil)
		return
	}
	if r.Method != http.MethodGet {
		Status(http.StatusMethodNotAllowed, "only GET")(w, r, nil)
		return
	}
	o.mu.Lock()
	body, err := json.MarshalIndent(map[string]any{"inputs": o.inputs}, "", "  ")
	o.mu.Unlock()
	if err != nil {
		Status(http.StatusInternalServerError, err.Error())(w, r, nil)
		return
	}
	JSON(string(body))(w, r, nil)
}

func (o *Orchestrator) authorized(r *http.Request) bool {
	if o.options.Token != "" && r.Header.Get("Authorization") != "Bearer "+o.options.Token {
		return false
	}
	if o.options.Username != "" {
		username, password, _ := r.BasicAuth()
		return username == o.options.Username && password == o.options.Password
	}
	return true
}

func containsFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
