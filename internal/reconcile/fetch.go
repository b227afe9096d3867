// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"resourceset.example/renderer/internal/schedule"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
)

// defaultFetchTimeout bounds one fetch, unless the provider's annotation says otherwise.
const defaultFetchTimeout = time.Minute

// providerState is what is remembered of one provider between passes.
type providerState struct {
	object *api.ResourceSetInputProvider
	plan   *schedule.Plan
	client fetcher
	made   string // digest of the object and the secrets that the client was made from

	// exported is the last good export; it stands until a fetch succeeds. Nil until
	// the provider has answered once since the start: then inputs.lock counts.
	exported []api.Input
	answered bool
	version  uint64 // grows whenever exported becomes another one

	asked    time.Time // when the last fetch began
	missed   time.Time // the last slot that passed without a fetch
	fetching bool      // a fetch is under way
	listedAt time.Time // when the fetch began that exported is from
	failures int       // in a row
	failed   uint64    // in all
	err      error
	warnings []string

	// listed is the state of the target (Reconciler.seen) that the last listing is
	// newer than. Where somebody else has written later, the listing is too old to
	// remove or change anything (DESIGN, rule 10).
	listed uint64
}

// syncProviders brings the remembered providers in line with the definitions. A
// provider whose definition changed is due at once.
func (r *Reconciler) syncProviders(defs *api.Definitions) {
	next := make(map[string]*providerState, len(defs.Providers))
	for _, obj := range defs.Providers {
		key := obj.NamespacedName()
		state := r.providers[key]
		switch {
		case state == nil:
			state = r.newProvider(obj)
		case !sameProvider(state.object, obj):
			// What the old definition exported stays the last good export until the new
			// one has answered.
			fresh := r.newProvider(obj)
			fresh.exported, fresh.answered, fresh.listedAt = state.exported, state.answered, state.listedAt
			fresh.version, fresh.listed = state.version+1, state.listed
			state = fresh
		default:
			state.object = obj // the lines may have moved
		}
		next[key] = state
	}
	r.providers = next
}

func (r *Reconciler) newProvider(obj *api.ResourceSetInputProvider) *providerState {
	p := &providerState{object: obj}
	plan, err := schedule.New(obj, r.pace)
	if err != nil {
		p.err = err
		return p
	}
	p.plan = plan
	return p
}

func sameProvider(a, b *api.ResourceSetInputProvider) bool {
	return reflect.DeepEqual(a.Spec, b.Spec) && maps.Equal(a.Annotations, b.Annotations)
}

// decide says whether a provider is to be fetched now, and when to ask again.
func (r *Reconciler) decide(p *providerState) schedule.Decision {
	if p.plan == nil {
		return schedule.Decision{} // its schedule is wrong: a fault of the definition
	}
	history := schedule.History{Tried: p.asked, Failures: p.failures, Exported: p.answered || r.recorded(p.object) != nil}
	var failed *provider.Error
	if errors.As(p.err, &failed) {
		history.NotBefore = failed.Until // said by a rate limit, or by a server that is down for a while
	}
	return p.plan.At(r.now(), history)
}

// secret reads a secret, adds its values to those that must never be shown, and
// mixes it into the digest. An empty name is no secret.
func (r *Reconciler) secret(ctx context.Context, namespace, name string, digest hash.Hash) (map[string][]byte, error) {
	if name == "" {
		return nil, nil
	}
	data, err := r.secrets.Get(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	r.redactor.Add(namespace+"/"+name, data)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(digest, "%q=%q\n", key, data[key])
	}
	return data, nil
}

// An unsupportedTypeError is a provider of a type that this version cannot fetch.
type unsupportedTypeError struct{ Type string }

func (e *unsupportedTypeError) Error() string {
	return fmt.Sprintf("providers of type %s are not fetched by this version", e.Type)
}

// Suggestion is what to do about it.
func (e *unsupportedTypeError) Suggestion() string {
	return "what is committed for its ResourceSets stays; an ExternalService can export the same inputs meanwhile"
}

func fetchTimeout(p *api.ResourceSetInputProvider) time.Duration {
	if d, err := time.ParseDuration(p.Annotations[api.AnnotationReconcileTimeout]); err == nil && d > 0 {
		return d
	}
	return defaultFetchTimeout
}

func disabled(annotations map[string]string) bool {
	return annotations[api.AnnotationReconcile] == "disabled"
}

// jitter spreads d by up to a tenth either way, so that many clients of one broken
// service do not come back at the same moment.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d))
}
