// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	"resourceset.example/renderer/internal/secrets"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
)

// A Tryout asks providers what they export, as the service would on its first day:
// without a record of what was exported before. Nothing is rendered or written.
type Tryout struct{ r *Reconciler }

// NewTryout returns one with these secrets, whose values are made known to the redactor.
func NewTryout(store secretStore, redactor *secrets.Redactor, version string) *Tryout {
	return &Tryout{&Reconciler{
		secrets: store, redactor: redactor, userAgent: "renderer/" + version,
		limits: &provider.Limits{}, shared: &provider.Shared{}, constructors: constructors(),
	}}
}

// Fetch asks one provider, also outside its schedule windows. Those asked with one
// context of provider.WithPass share their listings.
func (t *Tryout) Fetch(ctx context.Context, obj *api.ResourceSetInputProvider) (provider.Result, error) {
	var a answer
	t.r.list(ctx, obj, nil, &a)
	return a.result, a.err
}

// SensitiveFields are the fields whose values a provider wants kept out of sight.
func SensitiveFields(obj *api.ResourceSetInputProvider) []string { return sensitiveFields(obj) }
