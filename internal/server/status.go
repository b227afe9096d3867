// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"time"

	"resourceset.example/renderer/internal/reconcile"
)

// StatusPath is where the status is served as JSON (docs/status.md).
const StatusPath = "/api/v1/status"

// The page shows what is in trouble first, and not more than this many rows of a
// table; all are in the JSON.
const maxRows = 500

// refreshAfter is how often a browser asks for the page again, in seconds.
const refreshAfter = 10

//go:embed status.html
var statusHTML string

//go:embed status.css
var statusCSS string

// A StatusSource knows how the loop is doing. Asking must not take long.
type StatusSource interface {
	Status() *reconcile.Status
}

// A statusHandler serves the status: as a page at /, as JSON at StatusPath. The page
// is whole as it comes: it needs no script and loads nothing.
type statusHandler struct {
	source  StatusSource
	version string
	now     func() time.Time
	page    *template.Template
	policy  string // Content-Security-Policy of the page
}

// NewStatusHandler is a handler for [Config.Status].
func NewStatusHandler(source StatusSource, version string) http.Handler {
	h := &statusHandler{source: source, version: version, now: time.Now}
	style := sha256.Sum256([]byte(statusCSS))
	h.policy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(style[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	h.page = template.Must(template.New("status").Funcs(template.FuncMap{
		"time":   func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
		"ago":    h.ago,
		"in":     h.in,
		"short":  func(hash string) string { return hash[:min(len(hash), 12)] },
		"plural": plural,
	}).Parse(statusHTML))
	return h
}

func (h *statusHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", h.policy)
	if r.URL.Path != "/" && r.URL.Path != StatusPath {
		say(w, http.StatusNotFound, "not found")
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		say(w, http.StatusMethodNotAllowed, "only GET")
		return
	}
	if r.URL.Path == StatusPath {
		h.json(w)
		return
	}
	h.html(w)
}

func (h *statusHandler) json(w http.ResponseWriter) {
	body, err := json.MarshalIndent(h.source.Status(), "", "  ")
	if err != nil {
		say(w, http.StatusInternalServerError, "the status cannot be written as JSON")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // a client that is gone cannot be told
}

// A statusPage is what the template shows.
type statusPage struct {
	*reconcile.Status
	Version         string
	Style           template.CSS
	Refresh         int
	Sets            []reconcile.ResourceSetStatus // worst first
	SetsLeftOut     int
	Asked           []reconcile.ProviderStatus // failing first
	ProvidersLeft   int
	Failed, Held    int // ResourceSets
	FailedProviders int
}

func (h *statusHandler) html(w http.ResponseWriter) {
	page := newStatusPage(h.source.Status())
	page.Version = h.version
	var body bytes.Buffer
	if err := h.page.Execute(&body, page); err != nil {
		say(w, http.StatusInternalServerError, "the page cannot be made")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = body.WriteTo(w) // a client that is gone cannot be told
}

func newStatusPage(s *reconcile.Status) *statusPage {
	page := &statusPage{
		Status: s, Style: template.CSS(statusCSS), Refresh: refreshAfter,
		Sets: slices.Clone(s.ResourceSets), Asked: slices.Clone(s.Providers),
	}
	rank := map[string]int{reconcile.StateFailed: 0, reconcile.StateHeld: 1}
	rankOf := func(state string) int {
		if n, ok := rank[state]; ok {
			return n
		}
		return len(rank)
	}
	for _, set := range page.Sets {
		switch set.State {
		case reconcile.StateFailed:
			page.Failed++
		case reconcile.StateHeld:
			page.Held++
		}
	}
	slices.SortStableFunc(page.Sets, func(a, b reconcile.ResourceSetStatus) int {
		return cmp.Compare(rankOf(a.State), rankOf(b.State))
	})
	for _, p := range page.Asked {
		if p.Error != "" {
			page.FailedProviders++
		}
	}
	slices.SortStableFunc(page.Asked, func(a, b reconcile.ProviderStatus) int {
		return cmp.Compare(btoi(a.Error == ""), btoi(b.Error == ""))
	})
	page.SetsLeftOut = max(len(page.Sets)-maxRows, 0)
	page.Sets = page.Sets[:min(len(page.Sets), maxRows)]
	page.ProvidersLeft = max(len(page.Asked)-maxRows, 0)
	page.Asked = page.Asked[:min(len(page.Asked), maxRows)]
	return page
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Headline is the state of everything in one line.
func (p *statusPage) Headline() string {
	switch {
	case p.Pass == nil:
		return "The first pass is under way"
	case p.Pass.Result == reconcile.ResultOK:
		return "All in order"
	case p.Pass.Result == reconcile.ResultHeld:
		return "Something is held back"
	}
	return "Something failed; what it concerns stays as committed"
}

// Mood is the style of the headline.
func (p *statusPage) Mood() string {
	if p.Pass == nil {
		return reconcile.StateDisabled
	}
	return p.Pass.Result
}

// First cuts a long list for reading.
func (p *statusPage) First(list []string) []string { return list[:min(len(list), 10)] }

func (h *statusHandler) ago(t time.Time) string { return distance(h.now().Sub(t)) + " ago" }

func (h *statusHandler) in(t time.Time) string {
	if d := t.Sub(h.now()); d > time.Second {
		return "in " + distance(d)
	}
	return "now"
}

// distance is a duration as people say it: its largest unit.
func distance(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", max(d, 0)/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
