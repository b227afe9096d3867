// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"resourceset.example/renderer/integration/process"
)

// StartFlux starts the controllers of Flux, and waits until they work.
func (c *Cluster) StartFlux(ctx context.Context) error {
	var err error
	if c.Notify, err = c.controller("notification-controller", c.ports.notifyHealth, c.ports.notifyMetrics,
		"--events-addr", address(c.ports.events), "--receiverAddr", address(c.ports.hooks)); err != nil {
		return err
	}
	if c.Source, err = c.controller("source-controller", c.ports.sourceHealth, c.ports.sourceMetrics,
		"--events-addr", c.EventsURL(), "--interval-jitter-percentage", "0",
		"--storage-path", filepath.Join(c.options.Dir, "source-controller"),
		"--storage-addr", address(c.ports.artifacts), "--storage-adv-addr", address(c.ports.artifacts)); err != nil {
		return err
	}
	if c.Kustomize, err = c.controller("kustomize-controller", c.ports.kustomizeHealth, c.ports.kustomizeMetrics,
		"--events-addr", c.EventsURL(), "--interval-jitter-percentage", "0",
		"--requeue-dependency", "1s",
		"--kube-api-qps", "1000", "--kube-api-burst", "2000"); err != nil {
		return err
	}
	if c.Helm, err = c.controller("helm-controller", c.ports.helmHealth, c.ports.helmMetrics,
		"--events-addr", c.EventsURL(), "--interval-jitter-percentage", "0"); err != nil {
		return err
	}
	for _, start := range []func(context.Context) error{c.StartNotify, c.StartSource, c.StartKustomize, c.StartHelm} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// EventsURL is where notification-controller takes events.
func (c *Cluster) EventsURL() string { return "http://" + address(c.ports.events) + "/" }

// StartNotify starts notification-controller, again if it was killed.
func (c *Cluster) StartNotify(ctx context.Context) error {
	return started(ctx, c.Notify, c.ports.notifyHealth)
}

// StartSource starts source-controller, again if it was killed.
func (c *Cluster) StartSource(ctx context.Context) error {
	return started(ctx, c.Source, c.ports.sourceHealth)
}

// StartKustomize starts kustomize-controller, again if it was killed.
func (c *Cluster) StartKustomize(ctx context.Context) error {
	return started(ctx, c.Kustomize, c.ports.kustomizeHealth)
}

// StartHelm starts helm-controller, again if it was killed.
func (c *Cluster) StartHelm(ctx context.Context) error {
	return started(ctx, c.Helm, c.ports.helmHealth)
}

func started(ctx context.Context, p *process.Process, health int) error {
	if err := p.Start(); err != nil {
		return err
	}
	return p.Serves(ctx, http.DefaultClient, "http://"+address(health)+"/readyz")
}

func (c *Cluster) controller(name string, health, metrics int, args ...string) (*process.Process, error) {
	args = append([]string{
		"--health-addr", address(health), "--metrics-addr", address(metrics),
		"--enable-leader-election=false", // it is the only one
		"--log-level", "info", "--log-encoding", "json",
	}, args...)
	return c.program(name, []string{"RUNTIME_NAMESPACE=" + Namespace, "KUBECONFIG=" + c.kubeconfig}, args...)
}

// A Sync is a folder of a repository that Flux keeps the cluster like.
type Sync struct {
	Name     string // of the GitRepository and of the Kustomization, in Namespace
	URL      string
	Branch   string
	Path     string
	Username string // empty: nobody asks
	Password string
}

func (s *Sync) ref(apiVersion, kind string) Ref {
	return Ref{APIVersion: apiVersion, Kind: kind, Namespace: Namespace, Name: s.Name}
}

// Kustomization names the Flux object that applies the folder.
func (s *Sync) Kustomization() Ref { return s.ref("kustomize.toolkit.fluxcd.io/v1", "Kustomization") }

// Repository names the Flux object that fetches the repository.
func (s *Sync) Repository() Ref { return s.ref("source.toolkit.fluxcd.io/v1", "GitRepository") }

// Follow has Flux apply a folder and prune what leaves it, at a pace for tests.
func (c *Cluster) Follow(ctx context.Context, s *Sync) error {
	secret, ref := "", ""
	if s.Username != "" {
		ref = "\n  secretRef: {name: NAME}"
		secret = fmt.Sprintf(`---
apiVersion: v1
kind: Secret
metadata: {name: NAME, namespace: NAMESPACE}
stringData: {username: %q, password: %q}
`, s.Username, s.Password)
	}
	return c.Apply(ctx, strings.NewReplacer("NAMESPACE", Namespace, "NAME", s.Name, "URL", s.URL, "BRANCH", s.Branch, "PATH", s.Path).Replace(secret+`---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  interval: 1s
  timeout: 20s
  url: URL
  ref: {branch: BRANCH}`+strings.ReplaceAll(ref, "NAME", s.Name)+`
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  interval: 5s
  retryInterval: 1s
  timeout: 20s
  path: PATH
  prune: true
  sourceRef: {kind: GitRepository, name: NAME}
`))
}

// Reconcile has Flux look at one of its objects now, as `flux reconcile` does.
func (c *Cluster) Reconcile(ctx context.Context, ref Ref) error {
	return c.Annotate(ctx, ref, "reconcile.fluxcd.io/requestedAt", time.Now().Format(time.RFC3339Nano))
}

// HasApplied says that a Kustomization, as it is now, has applied a commit, and is ready.
func HasApplied(o *unstructured.Unstructured, commit string) bool {
	status, _ := o.Object["status"].(map[string]any)
	applied, _ := status["lastAppliedRevision"].(string)
	generation, _ := status["observedGeneration"].(int64)
	return strings.HasSuffix(applied, "@sha1:"+commit) && generation == o.GetGeneration() && Ready(o) == "True"
}

// Unfollow ends it: Flux deletes what it applied.
func (c *Cluster) Unfollow(ctx context.Context, s *Sync) error {
	if err := c.Delete(ctx, s.Kustomization()); err != nil {
		return err
	}
	return c.Delete(ctx, s.Repository())
}

// Applied waits until Flux has applied a commit of the branch.
func (c *Cluster) Applied(ctx context.Context, s *Sync, commit string) error {
	state := ""
	err := until(ctx, fmt.Sprintf("Flux applies %s to %s", commit, s.Name), func() (bool, error) {
		o, err := c.Get(ctx, s.Kustomization())
		if err != nil || o == nil {
			return false, err
		}
		status, _ := o.Object["status"].(map[string]any)
		state = fmt.Sprint(status["conditions"])
		applied, _ := status["lastAppliedRevision"].(string)
		return strings.HasSuffix(applied, "@sha1:"+commit), nil
	})
	if err != nil {
		return fmt.Errorf("%w; its conditions: %s", err, state)
	}
	return nil
}
