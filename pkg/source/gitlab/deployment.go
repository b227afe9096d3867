// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"sync"

	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
)

// States and statuses that make a difference here.
const (
	stopped   = "stopped"
	running   = "running"
	succeeded = "success"
)

// An environment is a place that is deployed to.
type environment struct {
	id                     int
	name, slug, state, url string
}

func (env environment) stopped() bool { return env.state == stopped }

// A deployment is one to an environment; the later it began, the higher its id.
type deployment struct {
	id, environment          int
	sha, ref, status, author string
}

// A place tells environments apart, also from others of the name.
type place struct {
	id   int
	name string
}

func (env environment) place() place { return place{env.id, env.name} }

// deployed is what the providers of one project and token share: its environments, the
// deployments that are running, and the last successful one of each environment.
type deployed struct {
	environments *listing.List[environment]
	running      *listing.List[deployment]
	list         func(env environment) *listing.List[deployment]

	mu        sync.Mutex
	successes map[place]*listing.List[deployment] // kept for what the server may say "not modified" about
}

func newDeployed(cfg provider.Config, p *project) (*deployed, error) {
	gl, err := sharedClient(cfg, p)
	if err != nil {
		return nil, err
	}
	all, err := newList(cfg, p, environments())
	if err != nil {
		return nil, err
	}
	now, err := newList(cfg, p, runningDeployments())
	if err != nil {
		return nil, err
	}
	key := sharedKey(cfg, p) + " " + p.path + " deployed"
	return provider.Share(cfg.Shared, key, func() (*deployed, error) {
		return &deployed{
			environments: all, running: now, successes: map[place]*listing.List[deployment]{},
			list: func(env environment) *listing.List[deployment] { return successOf(env).of(gl, p) },
		}, nil
	})
}

func runningDeployments() list[deployment] {
	return list[deployment]{
		what: "running deployments", resource: "deployments", decode: decodeDeployment(running),
		query: url.Values{"status": {running}, "order_by": {"id"}, "sort": {"desc"}, "per_page": {perPage}, "page": {"1"}},
	}
}

func environments() list[environment] {
	return list[environment]{
		what: "environments", resource: "environments", decode: decodeEnvironment,
		query: url.Values{"per_page": {perPage}, "page": {"1"}},
	}
}

// successOf asks for the newest successful deployment to an environment.
func successOf(env environment) list[deployment] {
	return list[deployment]{
		what: "deployments to " + env.name, resource: "deployments", decode: decodeDeployment(succeeded), firstOnly: true,
		query: url.Values{
			"environment": {env.name}, "status": {succeeded}, "order_by": {"id"}, "sort": {"desc"}, "per_page": {"1"}, "page": {"1"},
		},
	}
}

// success returns the newest successful deployment to an environment, or the zero one.
func (d *deployed) success(ctx context.Context, env environment) (deployment, error) {
	found, err := d.successList(env).All(ctx)
	if err != nil || len(found) == 0 {
		return deployment{}, err
	}
	// The filter is checked again: some servers are said to ignore it.
	if newest := found[0]; newest.environment == env.id {
		return newest, nil
	}
	return deployment{}, &provider.Error{
		Reason: provider.Implausible,
		Msg:    fmt.Sprintf("list of deployments to %s: the server gave one to another environment", env.name),
		Hint:   "the environment may have been made anew just now: it is tried again; the last good list stands",
	}
}

func (d *deployed) successList(env environment) *listing.List[deployment] {
	d.mu.Lock()
	defer d.mu.Unlock()
	list, ok := d.successes[env.place()]
	if !ok {
		list = d.list(env)
		d.successes[env.place()] = list
	}
	return list
}

// forget drops what is known of environments that are no longer listed.
func (d *deployed) forget(listed []environment) {
	known := make(map[place]bool, len(listed))
	for _, env := range listed {
		known[env.place()] = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.successes, func(p place, _ *listing.List[deployment]) bool { return !known[p] })
}

// decodeEnvironment and decodeDeployment do not use the types of the library, which
// hold commits (see decodeRef).
func decodeEnvironment(data json.RawMessage) (environment, string, error) {
	var env struct {
		ID                int
		Name, Slug, State string
		ExternalURL       string `json:"external_url"`
	}
	if err := json.Unmarshal(data, &env); err != nil {
		return environment{}, "", errors.New("not an environment in JSON")
	}
	if env.ID <= 0 {
		return environment{}, "", errors.New("has no id")
	}
	for _, must := range []struct{ name, value string }{{"name", env.Name}, {"slug", env.Slug}, {"state", env.State}} {
		if must.value == "" {
			return environment{}, "", fmt.Errorf("environment %d has no %s", env.ID, must.name)
		}
	}
	return environment{id: env.ID, name: env.Name, slug: env.Slug, state: env.State, url: env.ExternalURL}, strconv.Itoa(env.ID), nil
}

// decodeDeployment reads a deployment, which has to have the status that was asked for.
func decodeDeployment(status string) listing.Decode[deployment] {
	return func(data json.RawMessage) (deployment, string, error) {
		var d struct {
			ID               int
			SHA, Ref, Status string
			User             struct{ Username string }
			Environment      struct{ ID int }
		}
		if err := json.Unmarshal(data, &d); err != nil {
			return deployment{}, "", errors.New("not a deployment in JSON")
		}
		switch {
		case d.ID <= 0:
			return deployment{}, "", errors.New("has no id")
		case d.SHA == "" || d.Ref == "" || d.Environment.ID <= 0:
			return deployment{}, "", fmt.Errorf("deployment %d has no sha, ref or environment", d.ID)
		case !provider.IsCommit(d.SHA):
			return deployment{}, "", fmt.Errorf("deployment %d has a sha that is no name of a commit", d.ID)
		case d.Status != status:
			return deployment{}, "", fmt.Errorf("deployment %d has the status %q, and %q was asked for", d.ID, d.Status, status)
		}
		author := ghost
		if d.User.Username != "" {
			author = d.User.Username
		}
		return deployment{id: d.ID, environment: d.Environment.ID, sha: d.SHA, ref: d.Ref, status: d.Status, author: author}, strconv.Itoa(d.ID), nil
	}
}
