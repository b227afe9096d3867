// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/expand"
)

// exported is what the providers of one ResourceSet contribute to a pass.
type exported struct {
	exports   []expand.Export
	versions  []string            // one text per provider: equal texts mean equal exports
	sensitive map[string][]string // fields by provider
	fetched   time.Time           // of the oldest listing
	recorded  bool                // some are what inputs.lock recorded
	current   bool                // all listings are answers, and no provider has failed since
}

// exports collects the last good export of every provider in use. One that has
// not answered since the start counts with what inputs.lock recorded (DESIGN, rule
// 2); without a record nothing is known, and that is an error.
func (r *Reconciler) exports(previous *expand.Lock, used []*api.ResourceSetInputProvider) (*exported, error) {
	in := &exported{sensitive: map[string][]string{}, current: true}
	for _, obj := range used {
		e := expand.Export{Kind: api.KindInputProvider, Namespace: obj.Namespace, Name: obj.Name, Type: obj.Spec.Type}
		if fields := sensitiveFields(obj); len(fields) > 0 {
			in.sensitive[obj.Name] = fields
		}
		p := r.providers[obj.NamespacedName()]
		switch {
		case p != nil && p.answered:
			e.Inputs = p.exported
			in.current = in.current && p.err == nil
			if in.fetched.IsZero() || p.listedAt.Before(in.fetched) {
				in.fetched = p.listedAt
			}
			in.versions = append(in.versions, fmt.Sprintf("%s@%d", obj.Name, p.version))
		case mentions(previous, obj.Name):
			var err error
			in.current, in.recorded = false, true
			if e.Inputs, err = previous.Export(obj.Name); err != nil {
				return nil, fmt.Errorf("provider %s has not answered yet: %w", obj.NamespacedName(), err)
			}
			in.versions = append(in.versions, obj.Name+"@recorded")
		case p != nil && p.fetching:
			return nil, errWaiting
		default:
			return nil, &unknownInputsError{Provider: obj.NamespacedName()}
		}
		in.exports = append(in.exports, e)
	}
	return in, nil
}

// errWaiting is a provider whose first answer is still under way.
var errWaiting = errors.New("waiting for the first answer of a provider")

// mentions reports whether a lock records anything of a provider.
func mentions(lock *expand.Lock, provider string) bool {
	if lock == nil {
		return false
	}
	for _, name := range lock.Keys {
		if name == provider {
			return true
		}
	}
	return slices.ContainsFunc(lock.Sets, func(s expand.LockedSet) bool { return s.Provider == provider })
}

// unreadable are the sets that are kept because their provider's definition may
// only be unreadable: while some are, a provider that a selector does not find any
// more is not taken for deleted.
func (r *Reconciler) unreadable(previous *expand.Lock, in *exported) map[string]string {
	if r.defs.complete() || previous == nil {
		return nil
	}
	keep := map[string]string{}
	for _, set := range previous.Sets {
		if set.Provider == "" || slices.ContainsFunc(in.exports, func(e expand.Export) bool { return e.Name == set.Provider }) {
			continue
		}
		keep[set.Name] = fmt.Sprintf("provider %s is not found while some definitions cannot be read", set.Provider)
	}
	return keep
}

// recorded is what the last commit recorded of a provider's export, for a provider
// that has not answered since the start; nil when nothing is.
func (r *Reconciler) recorded(obj *api.ResourceSetInputProvider) []api.Input {
	for _, c := range r.committed {
		if c.lock == nil || !strings.HasPrefix(c.lock.ResourceSet, obj.Namespace+"/") || !mentions(c.lock, obj.Name) {
			continue
		}
		if inputs, err := c.lock.Export(obj.Name); err == nil {
			return inputs
		}
	}
	return nil
}

func sensitiveFields(obj *api.ResourceSetInputProvider) []string {
	var fields []string
	for field := range strings.SplitSeq(obj.Annotations[api.AnnotationSensitive], ",") {
		if field = strings.TrimSpace(field); field != "" {
			fields = append(fields, field)
		}
	}
	return fields
}

// An unknownInputsError is a provider of which nothing is known: it has not
// answered since the start, and Git has no record of it.
type unknownInputsError struct{ Provider string }

func (e *unknownInputsError) Error() string {
	return fmt.Sprintf("provider %s has not answered yet, and nothing is recorded of it: left as committed", e.Provider)
}

// Suggestion is what to do about it.
func (e *unknownInputsError) Suggestion() string {
	return "see the provider's own error; the ResourceSet follows as soon as it answers"
}
