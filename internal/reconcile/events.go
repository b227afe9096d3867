// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/secrets"
	"resourceset.example/renderer/pkg/api"
)

// Reasons of events. The first two are those of Flux's own objects.
const (
	ReasonSucceeded   = "ReconciliationSucceeded"
	ReasonFailed      = "ReconciliationFailed"
	ReasonRemovalHeld = "RemovalHeld" // the prune guard holds back a removal
	ReasonChangeHeld  = "ChangeHeld"  // something stays as a person left it
	ReasonWarning     = "Warning"     // nothing is kept from being rendered
	ReasonRequest     = "PullRequest" // one was opened, updated or closed
)

// Flux's source for the target, if the configuration names none: what Flux's own
// bootstrap makes.
const (
	sourceKind       = "GitRepository"
	sourceAPIVersion = "source.toolkit.fluxcd.io/v1"
	defaultFluxName  = "flux-system"
)

// Flux sends annotations of this group along with the events about their object.
const eventGroup = "event.toolkit.fluxcd.io/"

// An Event is something that people may want to be told: what was pushed, what is
// wrong, and that it is well again. It is about an object of the definitions or,
// where the Git repositories are the trouble, about Flux's source for the target.
type Event struct {
	APIVersion, Kind, Namespace, Name string
	Error                             bool
	Reason                            string
	Message                           string
	Metadata                          map[string]string
	Annotations                       map[string]string // the object's own, for whoever gets the event
	Token                             string            // tells it from an earlier one in the same words; may be empty
	Time                              time.Time
}

// Events finds what happened from one pass to the next. A problem gives one event
// when it appears or becomes another one, however often it is found again (request
// ids and counts in its text are no difference), and one when it is gone.
type Events struct {
	redactor *secrets.Redactor
	source   Event // the object that stands for the target repository
	branch   string
	open     map[string]openProblem
	passed   bool // a pass of this process
}

type openProblem struct {
	class   string
	object  Event
	warning bool
}

// NewEvents knows of no problem yet.
func NewEvents(cfg *config.Config, redactor *secrets.Redactor) *Events {
	source := Event{APIVersion: sourceAPIVersion, Kind: sourceKind, Namespace: defaultFluxName, Name: defaultFluxName}
	if flux := cfg.Target.Flux; flux != nil && flux.SourceRef.Kind == sourceKind {
		source.Name = flux.SourceRef.Name
		if flux.SourceRef.Namespace != "" {
			source.Namespace = flux.SourceRef.Namespace
		}
	}
	return &Events{redactor: redactor, source: source, branch: cfg.Target.Branch, open: map[string]openProblem{}}
}

// Of returns the events of a pass, in the order of the report.
func (e *Events) Of(report *Report) []Event {
	var events []Event
	token := report.Ended.UTC().Format(time.RFC3339Nano)
	add := func(event Event, reason, message string, metadata map[string]string) {
		event.Reason, event.Message, event.Token, event.Time = reason, e.redactor.Scrub(message), token, report.Ended
		event.Metadata = map[string]string{"trigger": report.Trigger}
		if report.Revision != "" {
			event.Metadata["sourceRevision"] = report.Revision
		}
		maps.Copy(event.Metadata, metadata)
		for key, value := range report.Annotations[event.Kind+" "+event.Namespace+"/"+event.Name] {
			if event.Annotations == nil {
				event.Annotations = map[string]string{}
			}
			event.Annotations[key] = e.redactor.Scrub(value)
		}
		events = append(events, event)
	}
	for _, c := range report.Commits {
		add(e.object(api.KindResourceSet+" "+c.ResourceSet), ReasonSucceeded, c.Message, map[string]string{
			"revision": e.branch + "@sha1:" + c.Hash,
		})
	}
	for _, q := range report.Requests {
		add(e.source, ReasonRequest, fmt.Sprintf("%s pull request #%d from %s: %s", q.Action, q.Number, q.Branch, q.URL),
			map[string]string{"change_request": fmt.Sprint(q.Number)})
	}
	if !e.passed {
		// The process before this one may have told of it already. One that starts
		// over and over is to tell it once.
		token = ""
	}
	seen := map[string]openProblem{}
	note := func(p *Problem, warning bool) {
		key := fmt.Sprintf("%t\x00%s\x00%s", warning, p.Object, p.Set)
		if warning {
			key += "\x00" + classOf(p) // an object may have several
		}
		problem := openProblem{class: classOf(p), object: e.object(p.Object), warning: warning}
		seen[key] = problem
		if before, ok := e.open[key]; ok && before.class == problem.class {
			return
		}
		event, reason := problem.object, ReasonWarning
		if !warning {
			reason, event.Error = reasonOf(p.Err), true
		}
		message := p.Error()
		if hint := p.Suggestion(); hint != "" {
			message += "\n" + hint
		}
		add(event, reason, message, nil)
	}
	for _, p := range report.Problems {
		note(p, false)
	}
	for _, w := range report.Warnings {
		note(w, true)
	}
	for _, key := range slices.Sorted(maps.Keys(e.open)) {
		problem := e.open[key]
		if _, still := seen[key]; !still && !problem.warning {
			_, rest, _ := strings.Cut(key, "\x00")
			object, set, _ := strings.Cut(rest, "\x00")
			add(problem.object, ReasonSucceeded, strings.TrimSuffix("in order again: "+object+": "+set, ": "), nil)
		}
	}
	e.open, e.passed = seen, true
	return events
}

func reasonOf(err error) string {
	var held *HeldError
	var taken *TakenBackError
	switch {
	case errors.As(err, &held):
		return ReasonRemovalHeld
	case errors.As(err, &taken):
		return ReasonChangeHeld
	}
	return ReasonFailed
}

// object is what an event about "ResourceSet apps/podinfo" is about; the target's
// source where a name is none of an object.
func (e *Events) object(name string) Event {
	kind, rest, _ := strings.Cut(name, " ")
	namespace, name, ok := strings.Cut(rest, "/")
	if !ok {
		return e.source
	}
	event := Event{Kind: kind, Namespace: namespace, Name: name}
	switch kind {
	case api.KindResourceSet, api.KindInputProvider:
		event.APIVersion = api.APIVersion
	case api.KindReceiver:
		event.APIVersion = api.ReceiverAPIVersion
	default:
		return e.source
	}
	return event
}

// eventAnnotations are the annotations that go along with events, by object.
func eventAnnotations(defs *api.Definitions) map[string]map[string]string {
	all := map[string]map[string]string{}
	add := func(kind string, meta *api.Meta) {
		for key, value := range meta.Annotations {
			if !strings.HasPrefix(key, eventGroup) {
				continue
			}
			object := kind + " " + meta.NamespacedName()
			if all[object] == nil {
				all[object] = map[string]string{}
			}
			all[object][key] = value
		}
	}
	for _, o := range defs.ResourceSets {
		add(api.KindResourceSet, &o.Meta)
	}
	for _, o := range defs.Providers {
		add(api.KindInputProvider, &o.Meta)
	}
	for _, o := range defs.Receivers {
		add(api.KindReceiver, &o.Meta)
	}
	return all
}
