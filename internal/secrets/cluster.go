// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// How long what the API server said counts: without another look, and where the
// server cannot be reached. A Secret that it says is gone is gone at once.
const (
	freshFor       = 15 * time.Second
	usableFor      = time.Hour
	requestTimeout = 15 * time.Second
)

// A Cluster reads Secrets from the Kubernetes API. It asks for one Secret by its
// name, and nothing else: a Role that allows "get" on these names is all it needs.
//
// What it read is kept in memory, for a moment to spare the API server, and for an
// hour in case that cannot be reached: an upgrade of the control plane should not
// stop deliveries to it.
type Cluster struct {
	client dynamic.Interface
	now    func() time.Time

	mu    sync.Mutex
	known map[Name]reading
}

type reading struct {
	data map[string][]byte
	at   time.Time
}

// OpenCluster returns the Secrets of the cluster that the program runs in, or else
// of the one that KUBECONFIG, or the user's own configuration, names. It does not
// use the network.
func OpenCluster(userAgent string) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, &clusterError{"no Kubernetes cluster", "run in a Pod with a service account token, or set KUBECONFIG", err}
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent, cfg.Timeout = userAgent, requestTimeout
	cfg.QPS, cfg.Burst = 50, 100 // the default of 5 would make a start with many providers slow
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, &clusterError{"no Kubernetes client", "check the service account or KUBECONFIG", err}
	}
	return newCluster(client), nil
}

func newCluster(client dynamic.Interface) *Cluster {
	return &Cluster{client: client, now: time.Now, known: map[Name]reading{}}
}

// A clusterError is one with the Kubernetes API.
type clusterError struct {
	msg, hint string
	err       error
}

func (e *clusterError) Error() string      { return e.msg + ": " + e.err.Error() }
func (e *clusterError) Suggestion() string { return e.hint }
func (e *clusterError) Unwrap() error      { return e.err }

// Get returns the data of one Secret. The map is the caller's.
func (c *Cluster) Get(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	if err := checkName(namespace, name); err != nil {
		return nil, err
	}
	key := Name{namespace, name}
	c.mu.Lock()
	known, ok := c.known[key]
	c.mu.Unlock()
	if ok && c.now().Sub(known.at) < freshFor {
		return clone(known.data), nil
	}
	data, err := c.read(ctx, namespace, name)
	if ctx.Err() != nil && err != nil && !definite(err) {
		err = ctx.Err() // a cut answer is no news of the server
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.known[key] = reading{data, c.now()}
		return clone(data), nil
	case !definite(err) && ok && c.now().Sub(known.at) < usableFor && ctx.Err() == nil:
		return clone(known.data), nil
	case definite(err):
		delete(c.known, key)
	}
	return nil, describe(err, namespace, name)
}

func (c *Cluster) read(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resource := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	object, err := c.client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	encoded, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil {
		return nil, errors.New("its data is not a map of texts")
	}
	data := make(map[string][]byte, len(encoded))
	for key, value := range encoded {
		if data[key], err = base64.StdEncoding.DecodeString(value); err != nil {
			return nil, fmt.Errorf("key %q is not base64", key) // the cause would say what it holds
		}
	}
	return data, nil
}

// definite reports that the server itself has answered about this Secret, so that
// what was known of it before counts no more.
func definite(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsGone(err)
}

func describe(err error, namespace, name string) error {
	what := fmt.Sprintf("secret %s/%s", namespace, name)
	var status apierrors.APIStatus
	switch {
	case apierrors.IsNotFound(err):
		return &NotFoundError{Namespace: namespace, Name: name}
	case apierrors.IsForbidden(err):
		return &clusterError{what, fmt.Sprintf("bind a Role in namespace %s with: resources [secrets], resourceNames [%s], verbs [get]", namespace, name),
			errors.New("the API server forbids to read it")}
	case apierrors.IsUnauthorized(err):
		return &clusterError{what, "check that the Pod's service account token is mounted and valid", errors.New("the API server does not know us")}
	case errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError:
		return &clusterError{what, "the last good output stands; it is tried again", errors.New("the API server is in trouble")}
	}
	return &clusterError{what, "check that the API server can be reached from here; the last good output stands", err}
}

func clone(data map[string][]byte) map[string][]byte {
	out := make(map[string][]byte, len(data))
	for key, value := range data {
		out[key] = append([]byte(nil), value...)
	}
	return out
}
