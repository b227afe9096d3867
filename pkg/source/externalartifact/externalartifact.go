// SPDX-License-Identifier: Apache-2.0

package externalartifact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

const (
	kind          = "ExternalArtifact"
	allNamespaces = "*"
	pageSize      = 500
	maxPages      = 200
)

// instead names what there is for somebody without a cluster.
const instead = "run in a Pod with a service account that may list ExternalArtifacts, or set KUBECONFIG; without a cluster, " +
	"OCIArtifactTag and GitRepositoryPath list the same things where they come from"

// A selector picks objects of one namespace, or of all.
type selector struct {
	namespace, name string
	labels          labels.Selector
}

// Artifacts lists ExternalArtifact objects of a cluster.
type Artifacts struct {
	object    *api.ResourceSetInputProvider
	selectors []selector
	client    dynamic.Interface
}

// New returns the provider of a definition of type ExternalArtifact. It does not use
// the network.
func New(cfg provider.Config) (*Artifacts, error) {
	selectors, err := newSelectors(cfg.Object)
	if err != nil {
		return nil, err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, &provider.Error{Reason: provider.Misconfigured, Msg: "there is no Kubernetes cluster to read from", Hint: instead}
	}
	config = rest.CopyConfig(config)
	config.UserAgent = cfg.UserAgent
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, &provider.Error{Reason: provider.Misconfigured, Msg: "the Kubernetes client", Hint: "check the service account or KUBECONFIG", Err: err}
	}
	return &Artifacts{cfg.Object, selectors, client}, nil
}

func newSelectors(object *api.ResourceSetInputProvider) ([]selector, error) {
	if len(object.Spec.Selectors) == 0 {
		return nil, &provider.Error{
			Reason: provider.Misconfigured, Msg: "spec.selectors is missing", Hint: "say which objects by name, or by matchLabels",
		}
	}
	var all []selector
	for i, spec := range object.Spec.Selectors {
		kubernetes := &metav1.LabelSelector{MatchLabels: spec.MatchLabels}
		for _, r := range spec.MatchExpressions {
			kubernetes.MatchExpressions = append(kubernetes.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: r.Key, Operator: metav1.LabelSelectorOperator(r.Operator), Values: r.Values,
			})
		}
		byLabels, err := metav1.LabelSelectorAsSelector(kubernetes)
		if err != nil {
			return nil, &provider.Error{
				Reason: provider.Misconfigured, Msg: fmt.Sprintf("spec.selectors[%d]", i), Hint: "it is a label selector as in Kubernetes", Err: err,
			}
		}
		if spec.Name != "" {
			byLabels = labels.Everything() // as in the operator, the name is enough
		}
		all = append(all, selector{cmp.Or(spec.Namespace, object.Namespace), spec.Name, byLabels})
	}
	return all, nil
}

func (s selector) picks(object *unstructured.Unstructured) bool {
	return (s.namespace == allNamespaces || s.namespace == object.GetNamespace()) &&
		(s.name == "" || s.name == object.GetName()) && s.labels.Matches(labels.Set(object.GetLabels()))
}

// Fetch lists what the selectors pick, by namespace and name.
func (a *Artifacts) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	found := map[string]provider.Item{}
	for _, s := range a.selectors {
		objects, err := a.list(ctx, s)
		if err != nil {
			return provider.Result{}, err
		}
		for i := range objects {
			if object := &objects[i]; s.picks(object) {
				key := object.GetNamespace() + "/" + object.GetName()
				found[key] = provider.Item{Key: key, Input: inputOf(object)}
			}
		}
	}
	items := slices.SortedFunc(maps.Values(found), func(x, y provider.Item) int { return strings.Compare(x.Key, y.Key) })
	return provider.Export(a.object, "", items, previous) // no one field has the key: previous ones are found by their id
}

func inputOf(object *unstructured.Unstructured) api.Input {
	input := api.Input{}
	for key, value := range object.GetLabels() {
		input[key] = value
	}
	delete(input, "provider")
	delete(input, "revision")
	input["id"] = provider.Checksum(object.GetNamespace() + "+" + object.GetName())
	input["name"], input["namespace"] = object.GetName(), object.GetNamespace()
	if revision, ok, err := unstructured.NestedString(object.Object, "status", "artifact", "revision"); err == nil && ok && revision != "" {
		input["revision"] = revision
	}
	return input
}

// list reads all objects that a selector may pick, page by page. The pages are of
// one moment: the server keeps it for the client, or says that it has not.
func (a *Artifacts) list(ctx context.Context, s selector) ([]unstructured.Unstructured, error) {
	namespace := s.namespace
	if namespace == allNamespaces {
		namespace = metav1.NamespaceAll
	}
	options := metav1.ListOptions{LabelSelector: s.labels.String(), Limit: pageSize}
	if s.name != "" {
		options.FieldSelector = "metadata.name=" + s.name
	}
	resource := schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "externalartifacts"}
	var all []unstructured.Unstructured
	for page := 1; page <= maxPages; page++ {
		list, err := a.client.Resource(resource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, describe(ctx, err, s.namespace)
		}
		if err := plausible(list); err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return all, nil
		}
		if len(list.Items) == 0 {
			break
		}
	}
	return nil, implausible("the list of ExternalArtifacts does not end")
}

func plausible(list *unstructured.UnstructuredList) error {
	if list.GetKind() != kind+"List" {
		return implausible("the answer is not a list of ExternalArtifacts")
	}
	for _, object := range list.Items {
		if object.GetKind() != kind || object.GetName() == "" || object.GetNamespace() == "" {
			return implausible("an item in the list of ExternalArtifacts is none")
		}
	}
	return nil
}

func implausible(msg string) error {
	return &provider.Error{Reason: provider.Implausible, Msg: msg, Hint: "check what answers as the Kubernetes API; the last good list stands"}
}

func describe(ctx context.Context, err error, namespace string) error {
	if cause := ctx.Err(); cause != nil {
		return transport.Describe(cause)
	}
	described := &provider.Error{Msg: "ExternalArtifacts in namespace " + namespace}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		described.Status = int(status.Status().Code)
	}
	switch {
	case apierrors.IsForbidden(err):
		described.Reason, described.Err = provider.Auth, errors.New("the API server forbids to list them")
		described.Hint = "bind a Role there with: apiGroups [source.toolkit.fluxcd.io], resources [externalartifacts], verbs [list]"
		if namespace == allNamespaces {
			described.Hint = "bind a ClusterRole with: apiGroups [source.toolkit.fluxcd.io], resources [externalartifacts], verbs [list]"
		}
	case apierrors.IsUnauthorized(err):
		described.Reason, described.Err = provider.Auth, errors.New("the API server does not know us")
		described.Hint = "check that the Pod's service account token is mounted and valid"
	case apierrors.IsNotFound(err):
		described.Reason, described.Err = provider.NotFound, errors.New("the cluster does not have this kind of object")
		described.Hint = "install Flux 2.7 or later, or its source-watcher"
	case apierrors.IsTooManyRequests(err):
		described.Reason, described.Err, described.Hint = provider.Unavailable, errors.New("the API server is busy"), "it is tried again"
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		described.Reason, described.Err, described.Hint = provider.Unavailable, errors.New("the list changed while it was read"), "it is tried again"
	case described.Status >= http.StatusInternalServerError:
		described.Reason, described.Err = provider.Unavailable, errors.New("the API server is in trouble")
		described.Hint = "the last good list stands; it is tried again"
	default:
		var known *provider.Error
		if errors.As(transport.Describe(err), &known) && known.Reason != provider.Unavailable {
			described.Reason, described.Err, described.Hint = known.Reason, known.Err, known.Hint
			break
		}
		described.Reason, described.Err = provider.Unavailable, err
		described.Hint = "check that the API server can be reached from here; the last good list stands"
	}
	return described
}
