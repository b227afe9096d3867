// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// manager is who the tests are in the managed fields of objects.
const manager = "tests"

// A Client is an administrator who talks to the API server as kubectl does.
type Client struct {
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

func newClient(config *rest.Config) (*Client, error) {
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	known, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Client{dynamic: d, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(known))}, nil
}

// A Ref names an object.
type Ref struct{ APIVersion, Kind, Namespace, Name string }

// String is how messages name the object.
func (r Ref) String() string { return fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name) }

// Resource is the collection that the object is in.
func (c *Client) resource(apiVersion, kind, namespace string) (dynamic.ResourceInterface, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		c.mapper.Reset() // it may be known by now
		mapping, err = c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.dynamic.Resource(mapping.Resource), nil
	}
	return c.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

// Apply applies every document of a YAML text, server-side, as it stands: what the
// server does not know, or finds twice, is an error.
func (c *Client) Apply(ctx context.Context, text string) error {
	return c.ApplyIn(ctx, "default", text)
}

// ApplyIn is Apply with a namespace for the objects that name none.
func (c *Client) ApplyIn(ctx context.Context, namespace, text string) error {
	docs, err := Split(text)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		if err := c.apply(ctx, manager, namespace, []byte(doc)); err != nil {
			return err
		}
	}
	return nil
}

// ApplyAs applies one document as somebody else: an object that says nothing but who it
// is gives up all that they owned of it.
func (c *Client) ApplyAs(ctx context.Context, manager, doc string) error {
	return c.apply(ctx, manager, "default", []byte(doc))
}

// MergePatch changes a few fields of an object, or of a subresource, as somebody else.
func (c *Client) MergePatch(ctx context.Context, manager string, ref Ref, patch string, subresource ...string) error {
	of, err := c.resource(ref.APIVersion, ref.Kind, ref.Namespace)
	if err != nil {
		return err
	}
	_, err = of.Patch(ctx, ref.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, subresource...)
	return err
}

// Split is the documents of a YAML text that have an object in them.
func Split(text string) ([]string, error) {
	var docs []string
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		var o metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &o); err != nil {
			return nil, err
		}
		if o.Kind != "" {
			docs = append(docs, string(doc))
		}
	}
}

func (c *Client) apply(ctx context.Context, manager, namespace string, doc []byte) error {
	var o metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(doc, &o); err != nil {
		return err
	}
	ref := Ref{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: cmp.Or(o.Namespace, namespace), Name: o.Name}
	of, err := c.resource(ref.APIVersion, ref.Kind, ref.Namespace)
	if err != nil {
		return fmt.Errorf("%s: %w", ref, err)
	}
	force := true
	_, err = of.Patch(ctx, ref.Name, types.ApplyYAMLPatchType, doc,
		metav1.PatchOptions{FieldManager: manager, Force: &force, FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return fmt.Errorf("%s: %w", ref, err)
	}
	return nil
}

// Get is an object, or nil if there is none.
func (c *Client) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	of, err := c.resource(ref.APIVersion, ref.Kind, ref.Namespace)
	if err != nil {
		return nil, err
	}
	o, err := of.Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}

// List is all objects of a kind in a namespace, by name.
func (c *Client) List(ctx context.Context, apiVersion, kind, namespace string) (map[string]*unstructured.Unstructured, error) {
	of, err := c.resource(apiVersion, kind, namespace)
	if err != nil {
		return nil, err
	}
	list, err := of.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	objects := make(map[string]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		objects[list.Items[i].GetName()] = &list.Items[i]
	}
	return objects, nil
}

// Delete deletes an object, and waits until it is gone.
func (c *Client) Delete(ctx context.Context, ref Ref) error {
	of, err := c.resource(ref.APIVersion, ref.Kind, ref.Namespace)
	if err != nil {
		return err
	}
	if err := of.Delete(ctx, ref.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return until(ctx, ref.String()+" is gone", func() (bool, error) {
		o, err := c.Get(ctx, ref)
		return o == nil, err
	})
}

// Annotate sets an annotation of an object, whoever else writes to the object.
func (c *Client) Annotate(ctx context.Context, ref Ref, key, value string) error {
	return c.merge(ctx, ref, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
}

// SetStatus sets the fields of an object's status, as its controller would.
func (c *Client) SetStatus(ctx context.Context, ref Ref, status map[string]any) error {
	return c.merge(ctx, ref, map[string]any{"status": status}, "status")
}

func (c *Client) merge(ctx context.Context, ref Ref, content map[string]any, subresources ...string) error {
	of, err := c.resource(ref.APIVersion, ref.Kind, ref.Namespace)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(content)
	if err != nil {
		return err
	}
	_, err = of.Patch(ctx, ref.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager}, subresources...)
	return err
}

// CreateNamespace makes a namespace, unless it exists.
func (c *Client) CreateNamespace(ctx context.Context, name string) error {
	return c.Apply(ctx, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+name+"\n")
}

// until waits for a condition. An error is no end: it may be that of a server that is
// starting, and is told when the wait is over.
func until(ctx context.Context, what string, condition func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := condition()
		if ok && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s: %w", what, ctx.Err()), err)
		case <-tick.C:
		}
	}
}

// Ready is the status of an object's condition of that name: "True", "False",
// "Unknown", or empty.
func Ready(o *unstructured.Unstructured) string {
	status, _, _ := ReadyWhy(o)
	return status
}

// ReadyWhy is Ready with the reason and the message.
func ReadyWhy(o *unstructured.Unstructured) (status, reason, message string) {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range conditions {
		if c, ok := one.(map[string]any); ok && c["type"] == "Ready" {
			status, _ = c["status"].(string)
			reason, _ = c["reason"].(string)
			message, _ = c["message"].(string)
		}
	}
	return status, reason, message
}
