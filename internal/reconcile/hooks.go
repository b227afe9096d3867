// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"resourceset.example/renderer/pkg/api"
)

// A Hook is a Receiver of the definitions with what it takes to serve it.
type Hook struct {
	Receiver *api.Receiver
	Token    []byte
	// Targets are the objects that a call refreshes, each by its own name.
	Targets []Target
}

// Hooks are the Receivers of the last good definitions. One whose token cannot be
// read is not among them, and is a problem. It must not run beside a pass.
func (r *Reconciler) Hooks(ctx context.Context) ([]Hook, []*Problem) {
	if r.defs == nil {
		return nil, nil
	}
	var hooks []Hook
	var problems []*Problem
	for _, rec := range r.defs.Receivers {
		data, err := r.secrets.Get(ctx, rec.Namespace, rec.Spec.SecretRef)
		if err == nil && len(data["token"]) == 0 {
			err = fmt.Errorf("secret %s/%s has no key %q", rec.Namespace, rec.Spec.SecretRef, "token")
		}
		if err != nil {
			problems = append(problems, &Problem{Pos: rec.Pos, Object: rec.String(), Err: fmt.Errorf("spec.secretRef: %w", err)})
			continue
		}
		r.redactor.Add(rec.Namespace+"/"+rec.Spec.SecretRef, data)
		hook := Hook{Receiver: rec, Token: data["token"]}
		for _, res := range rec.Spec.Resources {
			hook.Targets = append(hook.Targets, r.targetsOf(rec, res)...)
		}
		if len(hook.Targets) == 0 {
			problems = append(problems, &Problem{Pos: rec.Pos, Object: rec.String(), Err: errNoTargets})
		}
		hooks = append(hooks, hook)
	}
	return hooks, problems
}

// ReadHooks reads the definitions as they are now, and gives the hooks of their
// Receivers. Nothing else of a pass is done.
func (r *Reconciler) ReadHooks(ctx context.Context) ([]Hook, []*Problem, error) {
	if err := r.readDefinitions(ctx); err != nil {
		return nil, nil, err
	}
	faults, _ := r.defs.definitionProblems(false)
	hooks, problems := r.Hooks(ctx)
	return hooks, slices.Concat(faults, problems), nil
}

var errNoTargets = errors.New("none of its resources is defined: a call refreshes nothing")

// targetsOf resolves one entry of spec.resources: a name, or "*" with labels.
func (r *Reconciler) targetsOf(rec *api.Receiver, res api.ReceiverResource) []Target {
	namespace := res.Namespace
	if namespace == "" {
		namespace = rec.Namespace
	}
	matches := func(m *api.Meta) bool {
		if m.Namespace != namespace || res.Name != "*" && res.Name != m.Name {
			return false
		}
		for key, value := range res.MatchLabels {
			if m.Labels[key] != value {
				return false
			}
		}
		return true
	}
	var targets []Target
	switch res.Kind {
	case api.KindInputProvider:
		for _, p := range r.defs.Providers {
			if matches(&p.Meta) {
				targets = append(targets, Target{Kind: res.Kind, Namespace: p.Namespace, Name: p.Name})
			}
		}
	case api.KindResourceSet:
		for _, rs := range r.defs.ResourceSets {
			if matches(&rs.Meta) {
				targets = append(targets, Target{Kind: res.Kind, Namespace: rs.Namespace, Name: rs.Name})
			}
		}
	default:
		// A Flux source or the like: for us it stands for the definitions.
		targets = []Target{{Kind: res.Kind, Namespace: namespace, Name: res.Name}}
	}
	return slices.Compact(targets)
}
