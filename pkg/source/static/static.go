// SPDX-License-Identifier: Apache-2.0

// Package static is the input provider of type Static: one input set that is
// written in the provider's own definition, under spec.defaultValues.
//
// It is how values are shared by several ResourceSets, and what a ResourceSet
// with the strategy Permute combines other inputs with.
package static

import (
	"context"
	"maps"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
)

// A Provider exports the default values of its definition.
type Provider struct {
	object *api.ResourceSetInputProvider
}

// New returns the provider of a definition.
func New(cfg provider.Config) (*Provider, error) {
	return &Provider{object: cfg.Object}, nil
}

// Fetch returns the one input set. Its id is a checksum of the provider's name,
// as where the operator renders without a cluster, and replaces one of its own.
func (p *Provider) Fetch(ctx context.Context, _ []api.Input) (provider.Result, error) {
	if err := ctx.Err(); err != nil {
		return provider.Result{}, err
	}
	input := make(api.Input, len(p.object.Spec.DefaultValues)+1)
	maps.Copy(input, p.object.Spec.DefaultValues)
	input["id"] = provider.Checksum(p.object.Name)
	return provider.Result{Inputs: []api.Input{input}, Matched: 1}, nil
}
