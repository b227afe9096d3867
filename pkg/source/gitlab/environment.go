// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// atOnce is how many environments are asked about at a time.
const atOnce = 4

// An Environments provider lists the environments of one project that something is
// deployed to.
type Environments struct {
	object   *api.ResourceSetInputProvider
	filter   *provider.Filter
	deployed *deployed
}

// NewEnvironments returns the provider of a definition of type GitLabEnvironment.
func NewEnvironments(cfg provider.Config) (*Environments, error) {
	filter, err := provider.NewFilter(cfg.Object.Spec.Filter)
	if err != nil {
		return nil, err
	}
	p, err := parseProject(cfg.Object)
	if err != nil {
		return nil, err
	}
	deployed, err := newDeployed(cfg, p)
	if err != nil {
		return nil, err
	}
	return &Environments{object: cfg.Object, filter: filter, deployed: deployed}, nil
}

// Fetch lists the environments, by number.
//
// Running deployments are listed before the environments: one that ends in between has
// started its environment by then. The other way round, an environment could be seen
// stopped before its deployment ends, and without a deployment after it.
func (e *Environments) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	running, err := e.deployed.running.All(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	all, err := e.deployed.environments.All(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	e.deployed.forget(all)
	passing := slices.DeleteFunc(all, func(env environment) bool { return !e.filter.Environment(env.name) })
	slices.SortFunc(passing, func(a, b environment) int { return cmp.Compare(a.id, b.id) })
	current, err := e.current(ctx, passing, running)
	if err != nil {
		return provider.Result{}, err
	}
	before := indexByID(previous)
	var items []provider.Item
	for i, env := range passing {
		input := current[i].input(env)
		if input == nil && !env.stopped() {
			input = env.keep(before[strconv.Itoa(env.id)])
		}
		if input != nil {
			items = append(items, provider.Item{Key: strconv.Itoa(env.id), Input: input})
		}
	}
	return provider.Export(e.object, "id", items, previous)
}

// current returns what is deployed to each environment: nothing to a stopped one that
// no deployment starts just now, and to one where none ever succeeded.
func (e *Environments) current(ctx context.Context, environments []environment, running []deployment) ([]deployment, error) {
	current := make([]deployment, len(environments))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, env := range environments {
		for _, d := range running {
			if d.environment == env.id && d.id > current[i].id {
				current[i] = d
			}
		}
		if env.stopped() {
			continue
		}
		group.Go(func() error {
			success, err := e.deployed.success(ctx, env)
			if success.id > current[i].id {
				current[i] = success
			}
			return err
		})
	}
	return current, group.Wait()
}

// input is what is exported for an environment; nil without a deployment.
func (d deployment) input(env environment) api.Input {
	if d.id == 0 {
		return nil
	}
	return env.with(api.Input{"sha": d.sha, "branch": d.ref, "author": d.author})
}

// keep is what is exported for an environment whose only deployments failed: what it
// had when one of them was running; nil if that is nothing.
func (env environment) keep(before api.Input) api.Input {
	if before == nil {
		return nil
	}
	input := api.Input{}
	for _, field := range []string{"sha", "branch", "author"} { // a record has only those that templates read
		if value, ok := before[field]; ok {
			input[field] = value
		}
	}
	return env.with(input)
}

// with adds what an environment itself has.
func (env environment) with(input api.Input) api.Input {
	input["id"], input["title"], input["slug"], input["url"] = strconv.Itoa(env.id), env.name, env.slug, provider.WebURL(env.url)
	return input
}

func indexByID(inputs []api.Input) map[string]api.Input {
	index := make(map[string]api.Input, len(inputs))
	for _, input := range inputs {
		if id, ok := provider.Text(input["id"]); ok {
			index[id] = input
		}
	}
	return index
}
