// SPDX-License-Identifier: Apache-2.0

package externalartifact

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
)

// A cluster lists ExternalArtifacts in the words of the Kubernetes API, two at a time.
type cluster struct {
	objects []map[string]any
	fault   forgetest.Fault
	asked   []string
}

func (c *cluster) add(namespace, name, revision string, has map[string]any) {
	object := map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": kind,
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": has},
	}
	if revision != "" {
		object["status"] = map[string]any{"artifact": map[string]any{"revision": revision}}
	}
	c.objects = append(c.objects, object)
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.asked = append(c.asked, r.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	if c.fault != nil {
		c.fault(w, r, http.HandlerFunc(c.list))
		return
	}
	c.list(w, r)
}

func (c *cluster) list(w http.ResponseWriter, r *http.Request) {
	const root = "/apis/source.toolkit.fluxcd.io/v1/"
	namespace, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, root), "namespaces/"), "/")
	if namespace == "externalartifacts" {
		namespace = ""
	}
	wanted, _ := labels.Parse(r.URL.Query().Get("labelSelector"))
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	var found []any
	for _, o := range c.objects {
		object := unstructured.Unstructured{Object: o}
		if (namespace == "" || object.GetNamespace() == namespace) && (name == "" || name == object.GetName()) && wanted.Matches(labels.Set(object.GetLabels())) {
			found = append(found, o)
		}
	}
	from := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &from)
	meta, to := map[string]any{"resourceVersion": "7"}, min(from+2, len(found))
	if to < len(found) {
		meta["continue"] = fmt.Sprint(to)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": kind + "List", "metadata": meta, "items": append([]any{}, found[from:to]...),
	})
}

func start(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{}
	server := httptest.NewTLSServer(c)
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: {token: bearer-of-the-pod}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, server.URL, base64.StdEncoding.EncodeToString(authority))
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	return c
}

func config(selectors ...api.ArtifactSelector) provider.Config {
	return provider.Config{Object: &api.ResourceSetInputProvider{
		Meta: api.Meta{Name: "artifacts", Namespace: "apps"},
		Spec: api.InputProviderSpec{Type: api.TypeExternalArtifact, Selectors: selectors},
	}}
}

func byLabels(namespace string, match map[string]string) api.ArtifactSelector {
	return api.ArtifactSelector{Namespace: namespace, LabelSelector: api.LabelSelector{MatchLabels: match}}
}

func TestArtifacts(t *testing.T) {
	c := start(t)
	c.add("apps", "dev-web", "latest@sha256:bbb", map[string]any{"env": "dev", "app": "web", "name": "not this", "provider": "nor this"})
	c.add("apps", "dev-auth", "latest@sha256:aaa", map[string]any{"env": "dev", "app": "auth"})
	c.add("apps", "dev-new", "", map[string]any{"env": "dev", "revision": "nor this"})
	c.add("apps", "prod-web", "latest@sha256:ccc", map[string]any{"env": "prod"})
	c.add("other", "dev-web", "latest@sha256:ddd", map[string]any{"env": "dev"})
	sum := func(name string) string { return provider.Checksum(name) }
	auth := api.Input{"id": sum("apps+dev-auth"), "namespace": "apps", "name": "dev-auth", "revision": "latest@sha256:aaa", "env": "dev", "app": "auth"}
	fresh := api.Input{"id": sum("apps+dev-new"), "namespace": "apps", "name": "dev-new", "env": "dev"}
	web := api.Input{"id": sum("apps+dev-web"), "namespace": "apps", "name": "dev-web", "revision": "latest@sha256:bbb", "env": "dev", "app": "web"}
	prod := api.Input{"id": sum("apps+prod-web"), "namespace": "apps", "name": "prod-web", "revision": "latest@sha256:ccc", "env": "prod"}
	other := api.Input{"id": sum("other+dev-web"), "namespace": "other", "name": "dev-web", "revision": "latest@sha256:ddd", "env": "dev"}
	dev := map[string]string{"env": "dev"}
	for name, test := range map[string]struct {
		selectors []api.ArtifactSelector
		want      []api.Input
	}{
		"own namespace":  {[]api.ArtifactSelector{byLabels("", dev)}, []api.Input{auth, fresh, web}},
		"another":        {[]api.ArtifactSelector{byLabels("other", dev)}, []api.Input{other}},
		"all namespaces": {[]api.ArtifactSelector{byLabels("*", dev)}, []api.Input{auth, fresh, web, other}},
		"by name":        {[]api.ArtifactSelector{{Name: "prod-web"}}, []api.Input{prod}},
		"several":        {[]api.ArtifactSelector{{Name: "dev-auth"}, byLabels("apps", dev)}, []api.Input{auth, fresh, web}},
		"nothing":        {[]api.ArtifactSelector{byLabels("", map[string]string{"env": "test"})}, []api.Input{}},
		"expression": {[]api.ArtifactSelector{{LabelSelector: api.LabelSelector{MatchExpressions: []api.LabelSelectorRequirement{
			{Key: "env", Operator: "NotIn", Values: []string{"dev"}}}}}}, []api.Input{prod}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New(config(test.selectors...))
			if err != nil {
				t.Fatal(err)
			}
			result, err := p.Fetch(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, result.Inputs); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("Rule13_fair_limit", func(t *testing.T) {
		cfg := config(byLabels("", dev))
		cfg.Object.Spec.Filter.Limit = 1
		p, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		result, err := p.Fetch(t.Context(), []api.Input{web})
		if err != nil || result.Inputs[0]["name"] != "dev-web" || len(result.Warnings) != 1 {
			t.Errorf("got %v, %q, %v", result.Inputs, result.Warnings, err)
		}
	})
}

func status(code int, reason string) forgetest.Fault {
	return forgetest.Answer(code, "application/json", fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code))
}

// Rule 1: whatever is not the whole list is an error, also on a later page.
func TestRule01_NotTheList(t *testing.T) {
	onLater := func(fault forgetest.Fault) forgetest.Fault {
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.URL.Query().Get("continue") == "" {
				next.ServeHTTP(w, r)
				return
			}
			fault(w, r, next)
		}
	}
	for name, test := range map[string]struct {
		fault forgetest.Fault
		want  provider.Reason
	}{
		"forbidden":       {status(403, "Forbidden"), provider.Auth},
		"unknown":         {status(401, "Unauthorized"), provider.Auth},
		"no such kind":    {status(404, "NotFound"), provider.NotFound},
		"trouble":         {status(500, "InternalError"), provider.Unavailable},
		"page":            {forgetest.Page(), ""},
		"null":            {forgetest.JSON("null"), ""},
		"empty object":    {forgetest.JSON("{}"), ""},
		"another list":    {forgetest.JSON(`{"kind":"PodList","apiVersion":"v1","items":[]}`), provider.Implausible},
		"items are none":  {forgetest.JSON(`{"kind":"ExternalArtifactList","apiVersion":"source.toolkit.fluxcd.io/v1","items":[{"kind":"Pod","apiVersion":"v1"}]}`), provider.Implausible},
		"expired":         {onLater(status(410, "Expired")), provider.Unavailable},
		"later forbidden": {onLater(status(403, "Forbidden")), provider.Auth},
		"cut off":         {forgetest.Truncate(), ""},
		"never ends": {func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			forgetest.JSON(`{"kind":"ExternalArtifactList","apiVersion":"source.toolkit.fluxcd.io/v1","metadata":{"continue":"x"},"items":[]}`)(w, r, next)
		}, provider.Implausible},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			for n := range 3 {
				c.add("apps", fmt.Sprint("a", n), "r", nil)
			}
			c.fault = test.fault
			p, err := New(config(byLabels("", nil)))
			if err != nil {
				t.Fatal(err)
			}
			result, err := p.Fetch(t.Context(), nil)
			var known *provider.Error
			if !errors.As(err, &known) || result.Inputs != nil || known.Hint == "" || test.want != "" && known.Reason != test.want {
				t.Fatalf("got %v, %v: want %s", result.Inputs, err, test.want)
			}
			if strings.Contains(err.Error(), "bearer-of-the-pod") {
				t.Errorf("%v holds the token", err)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	start(t)
	p, err := New(config(byLabels("", nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Fetch(ctx, nil); provider.ReasonOf(err) != provider.Canceled {
		t.Errorf("got %v", err)
	}
}

func TestWithoutACluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", t.TempDir())
	_, err := New(config(byLabels("", nil)))
	var known *provider.Error
	if !errors.As(err, &known) || known.Reason != provider.Misconfigured || !strings.Contains(known.Hint, "GitRepositoryPath") {
		t.Errorf("got %v", err)
	}
	if _, err := New(config()); provider.ReasonOf(err) != provider.Misconfigured {
		t.Errorf("without selectors: %v", err)
	}
}

func FuzzInput(f *testing.F) {
	f.Add([]byte(`{"kind":"ExternalArtifact","apiVersion":"v1","metadata":{"name":"a","namespace":"b","labels":{"id":"c"}},"status":{"artifact":{"revision":1}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		object := &unstructured.Unstructured{}
		if json.Unmarshal(data, &object.Object) != nil || object.Object == nil {
			return
		}
		input := inputOf(object)
		if input["name"] != object.GetName() || input["id"] != provider.Checksum(object.GetNamespace()+"+"+object.GetName()) {
			t.Errorf("got %v", input)
		}
	})
}
