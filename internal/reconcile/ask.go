// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"time"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
)

// patience is how long a pass of the service waits for providers. One that is slower
// is not waited for: the pass goes on with what it exported last, so that a webhook
// for another one is a commit in time, and its answer starts a pass of its own.
const (
	patience        = time.Second
	startupPatience = 10 * time.Second // of the first pass, after which the service is ready
)

// An answer is the outcome of one fetch. Fetches run beside the loop and touch
// nothing of its; the loop takes their answers in when it is ready for them.
type answer struct {
	of     *providerState
	client fetcher
	made   string // digest of the object and the secrets that the client was made from
	asked  time.Time
	cause  string // trigger of the pass that asked
	listed uint64 // Reconciler.seen before the listing began
	result provider.Result
	err    error
}

// fetch asks the providers, at most inputs.concurrency at once, and takes their
// answers in. It returns when all have answered, or after the given time if it is
// not zero: then the others go on.
func (r *Reconciler) fetch(ctx context.Context, due []*providerState, wait time.Duration) {
	// Providers of one repository share a listing, a new one each time that it matters.
	pass := provider.WithPass(ctx)
	for _, p := range due {
		if !p.fetching {
			r.ask(pass, p)
		}
	}
	var over <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		over = timer.C
	}
	for anyFetching(due) {
		select {
		case a := <-r.answers:
			r.take(a)
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

func anyFetching(list []*providerState) bool {
	for _, p := range list {
		if p.fetching {
			return true
		}
	}
	return false
}

// ask starts one fetch.
func (r *Reconciler) ask(ctx context.Context, p *providerState) {
	p.fetching = true
	p.asked = r.now()
	a := answer{of: p, client: p.client, made: p.made, asked: p.asked, cause: r.trigger, listed: r.seen}
	previous := p.exported
	if !p.answered {
		previous = r.recorded(p.object)
	}
	r.fetches.Go(func() {
		select {
		case r.slots <- struct{}{}:
			defer func() { <-r.slots }()
			r.list(ctx, p.object, previous, &a)
		case <-ctx.Done():
			a.err = ctx.Err()
		}
		select {
		case r.answers <- a:
		case <-ctx.Done(): // nobody takes it any more
		}
	})
}

// list makes one complete listing.
func (r *Reconciler) list(ctx context.Context, obj *api.ResourceSetInputProvider, previous []api.Input, a *answer) {
	timeout := fetchTimeout(obj)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if a.err = r.connect(ctx, obj, a); a.err == nil {
		a.result, a.err = a.client.Fetch(ctx, previous)
	}
	if a.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		a.err = fmt.Errorf("no complete answer within %s: %w", timeout, a.err)
	}
}

// take takes an answer in. One to a definition that has changed meanwhile is worth
// nothing.
func (r *Reconciler) take(a answer) {
	p := a.of
	p.fetching = false
	p.client, p.made = a.client, a.made
	r.cause = foremost(r.cause, a.cause)
	if a.err != nil {
		p.failures++
		p.failed++
		p.err = a.err
		return
	}
	if !p.answered || !reflect.DeepEqual(p.exported, a.result.Inputs) {
		p.version++
	}
	p.exported, p.answered, p.listedAt, p.listed = a.result.Inputs, true, a.asked, a.listed
	p.failures, p.err, p.warnings = 0, nil, a.result.Warnings
	if a.result.Forks > 0 {
		r.log.Debug("left out change requests from forks", "provider", p.object.NamespacedName(), "count", a.result.Forks)
	}
	r.log.Debug("fetched inputs", "provider", p.object.NamespacedName(), "type", p.object.Spec.Type,
		"inputs", len(a.result.Inputs), "duration", r.now().Sub(a.asked))
}

// foremost is the one of two causes that a commit names: an answer that a webhook
// asked for makes it the webhook's, also when it came too late for that pass.
func foremost(a, b string) string {
	for _, cause := range []string{TriggerStartup, TriggerOnce, TriggerWebhook, TriggerManual, TriggerSource, TriggerSchedule} {
		if a == cause || b == cause {
			return cause
		}
	}
	return a
}

// connect makes the provider's client, or keeps the one there is while neither the
// definition nor the secrets changed. Secrets are read every time, so that a
// rotated one is used at once.
func (r *Reconciler) connect(ctx context.Context, obj *api.ResourceSetInputProvider, a *answer) error {
	spec := obj.Spec
	cfg := provider.Config{Object: obj, UserAgent: r.userAgent, Limits: r.limits, Shared: r.shared}
	digest := sha256.New()
	var err error
	if cfg.Secret, err = r.secret(ctx, obj.Namespace, spec.SecretRef, digest); err != nil {
		return fmt.Errorf("spec.secretRef: %w", err)
	}
	if cfg.CertSecret, err = r.secret(ctx, obj.Namespace, spec.CertSecretRef, digest); err != nil {
		return fmt.Errorf("spec.certSecretRef: %w", err)
	}
	made := hex.EncodeToString(digest.Sum(nil))
	if a.client != nil && a.made == made {
		return nil
	}
	make, ok := r.constructors[spec.Type]
	if !ok {
		return &unsupportedTypeError{Type: spec.Type}
	}
	client, err := make(cfg)
	if err != nil {
		return err
	}
	a.client, a.made = client, made
	return nil
}
