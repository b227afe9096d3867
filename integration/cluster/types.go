// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// standIns are definitions of types whose controllers do not run here.
//
//go:embed crds/*.yaml
var standIns embed.FS

// modules have the definitions of the types that they control.
var modules = []string{
	"github.com/fluxcd/source-controller", "github.com/fluxcd/kustomize-controller",
	"github.com/fluxcd/helm-controller", "github.com/fluxcd/notification-controller",
}

// types tells the API server of the types of Flux, and waits until it serves them.
func (c *Cluster) types(ctx context.Context) error {
	texts, err := c.definitions(ctx)
	if err != nil {
		return err
	}
	for _, text := range texts {
		if err := c.Apply(ctx, text); err != nil {
			return err
		}
	}
	return until(ctx, "the types of Flux are served", func() (bool, error) {
		all, err := c.List(ctx, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "")
		if err != nil {
			return false, err
		}
		for _, o := range all {
			if err := c.served(o); err != nil {
				return false, err
			}
		}
		return len(all) >= len(texts), nil
	})
}

// served finds the resources that a definition stands for.
func (c *Cluster) served(o *unstructured.Unstructured) error {
	var definition struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct{ Name string }
		}
	}
	text, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &definition); err != nil {
		return err
	}
	for _, version := range definition.Spec.Versions {
		if _, err := c.resource(definition.Spec.Group+"/"+version.Name, definition.Spec.Names.Kind, ""); err != nil {
			return err
		}
	}
	return nil
}

// definitions are those of the controllers' own releases, and the stand-ins.
func (c *Cluster) definitions(ctx context.Context) ([]string, error) {
	var texts []string
	for _, module := range modules {
		released, err := c.Definitions(ctx, module)
		if err != nil {
			return nil, err
		}
		for _, text := range released {
			served, err := asOlderFlux([]byte(text))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", module, err)
			}
			texts = append(texts, served)
		}
	}
	files, err := fs.Glob(standIns, "crds/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := standIns.ReadFile(file)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

// Definitions are the CustomResourceDefinitions that the module of a controller comes with.
func (c *Cluster) Definitions(ctx context.Context, module string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	cmd.Dir = c.options.Module
	dir, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m %s: %w", module, err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "bases", "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no definitions", module)
	}
	var texts []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

// asOlderFlux has OCIRepositories also served as v1beta2, which Flux did until 2.6, and
// which the example of the orchestrator is written in.
func asOlderFlux(definition []byte) (string, error) {
	o := map[string]any{}
	if err := yaml.Unmarshal(definition, &o); err != nil {
		return "", err
	}
	if kind, _, _ := unstructured.NestedString(o, "spec", "names", "kind"); kind == "OCIRepository" {
		versions, _, err := unstructured.NestedSlice(o, "spec", "versions")
		if err != nil {
			return "", err
		}
		older := (&unstructured.Unstructured{Object: versions[0].(map[string]any)}).DeepCopy().Object
		older["name"], older["storage"] = "v1beta2", false
		if err := unstructured.SetNestedSlice(o, append(versions, older), "spec", "versions"); err != nil {
			return "", err
		}
	}
	text, err := yaml.Marshal(o)
	return string(text), err
}
