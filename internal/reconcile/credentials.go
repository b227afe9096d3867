// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	"resourceset.example/renderer/pkg/api"
)

// learnCredentials makes known all credentials that the definitions name, before
// anything is rendered: also those that nobody uses in this pass (the token of a
// Receiver with --once, the password of a provider outside its schedule window)
// must not get into Git (DESIGN, rule 8). A secret that cannot be read is reported
// where it is used.
func (r *Reconciler) learnCredentials(ctx context.Context, defs *api.Definitions) {
	learn := func(namespace, name string) {
		if name == "" {
			return
		}
		if data, err := r.secrets.Get(ctx, namespace, name); err == nil {
			r.redactor.Add(namespace+"/"+name, data)
		}
	}
	for _, p := range defs.Providers {
		learn(p.Namespace, p.Spec.SecretRef)
		learn(p.Namespace, p.Spec.CertSecretRef)
	}
	for _, receiver := range defs.Receivers {
		learn(receiver.Namespace, receiver.Spec.SecretRef)
	}
}
