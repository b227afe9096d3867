// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"resourceset.example/renderer/pkg/api"
)

// A NoProviderError is a reference of spec.inputsFrom that matches no provider.
// It is a fault and never the same as a provider without inputs: a ResourceSet
// that has it keeps what it rendered before.
type NoProviderError struct {
	Fault *api.Fault
	// Name is the provider that does not exist; empty when a selector matches nothing.
	Name string
}

func (e *NoProviderError) Error() string      { return e.Fault.Error() }
func (e *NoProviderError) Suggestion() string { return e.Fault.Hint }

// SelectProviders are the providers that spec.inputsFrom of rs refers to, by name
// or by labels, each once, sorted by name. Only providers of the namespace of rs
// count. The error joins all that is wrong, and does not keep the providers that
// were found from being returned: a *NoProviderError alone is something that a
// preview may pass over.
func SelectProviders(rs *api.ResourceSet, providers []*api.ResourceSetInputProvider) ([]*api.ResourceSetInputProvider, error) {
	var near []*api.ResourceSetInputProvider
	for _, provider := range providers {
		if provider.Namespace == rs.Namespace {
			near = append(near, provider)
		}
	}
	slices.SortStableFunc(near, func(a, b *api.ResourceSetInputProvider) int { return cmp.Compare(a.Name, b.Name) })
	chosen := make(map[*api.ResourceSetInputProvider]bool)
	var errs []error
	for i, ref := range rs.Spec.InputsFrom {
		path := fmt.Sprintf("spec.inputsFrom[%d]", i)
		matched, err := match(rs, path, ref, near)
		if err != nil {
			errs = append(errs, err)
		}
		for _, provider := range matched {
			chosen[provider] = true
		}
	}
	var selected []*api.ResourceSetInputProvider
	for _, provider := range near {
		if chosen[provider] {
			selected = append(selected, provider)
		}
	}
	return selected, errors.Join(errs...)
}

// match are the providers that one reference refers to.
func match(rs *api.ResourceSet, path string, ref api.InputProviderReference, near []*api.ResourceSetInputProvider) ([]*api.ResourceSetInputProvider, error) {
	var matched []*api.ResourceSetInputProvider
	if ref.Selector == nil {
		for _, provider := range near {
			if provider.Name == ref.Name {
				return append(matched, provider), nil
			}
		}
		return nil, &NoProviderError{Name: ref.Name, Fault: faultOf(rs, path, nameHint(ref.Name, near),
			"%s: there is no %s %s/%s", path, api.KindInputProvider, rs.Namespace, ref.Name)}
	}
	for _, provider := range near {
		ok, err := selects(ref.Selector, provider.Labels)
		if err != nil {
			return nil, faultOf(rs, path, "", "%s.selector: %v", path, err)
		}
		if ok {
			matched = append(matched, provider)
		}
	}
	if len(matched) == 0 {
		return nil, &NoProviderError{Fault: faultOf(rs, path,
			"check the labels of the providers; remove the reference if none is meant to match",
			"%s.selector matches no %s in namespace %s", path, api.KindInputProvider, rs.Namespace)}
	}
	return matched, nil
}

func nameHint(name string, near []*api.ResourceSetInputProvider) string {
	names := make([]string, len(near))
	for i := range near {
		names[i] = near[i].Name
	}
	if found := nearest(name, names); found != "" {
		return fmt.Sprintf("did you mean %q?", found)
	}
	return "providers are looked up in the namespace of the ResourceSet only"
}

// selects says whether a label selector matches labels.
func selects(selector *api.LabelSelector, labels map[string]string) (bool, error) {
	for key, value := range selector.MatchLabels {
		if have, ok := labels[key]; !ok || have != value {
			return false, nil
		}
	}
	matches := true
	for _, req := range selector.MatchExpressions {
		value, has := labels[req.Key]
		switch req.Operator {
		case "In":
			matches = matches && has && slices.Contains(req.Values, value)
		case "NotIn":
			matches = matches && !(has && slices.Contains(req.Values, value))
		case "Exists":
			matches = matches && has
		case "DoesNotExist":
			matches = matches && !has
		default:
			return false, fmt.Errorf("unknown operator %q", req.Operator)
		}
	}
	return matches, nil
}
