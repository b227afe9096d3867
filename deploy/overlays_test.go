// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/yaml"

	"resourceset.example/renderer/internal/config"
)

// all reads the objects of a kind.
func all[T any](t *testing.T, built resmap.ResMap, kind string) map[string]T {
	t.Helper()
	found := map[string]T{}
	for _, r := range built.Resources() {
		if r.GetKind() != kind {
			continue
		}
		var object T
		if err := yaml.Unmarshal([]byte(r.MustYaml()), &object); err != nil {
			t.Fatal(err)
		}
		found[r.GetName()] = object
	}
	return found
}

type configMap struct{ Data map[string]string }

// Every overlay builds, stays in its namespace, mounts its own configuration, which
// loads without a warning, and has every secret that this names where it looks.
func TestOverlays(t *testing.T) {
	entries, err := os.ReadDir("overlays")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			built := buildFolder(t, path.Join("overlays", entry.Name()))
			configs, deployments := all[configMap](t, built, "ConfigMap"), all[deployment](t, built, "Deployment")
			if len(deployments) == 0 || len(configs) != len(deployments) {
				t.Fatalf("%d Deployments, %d ConfigMaps", len(deployments), len(configs))
			}
			for _, r := range built.Resources() {
				if r.GetKind() != "Namespace" && r.GetNamespace() != "renderer" {
					t.Errorf("%s %s is in namespace %q", r.GetKind(), r.GetName(), r.GetNamespace())
				}
			}
			selectors := map[string]bool{}
			for name, d := range deployments {
				selectors[fmt.Sprint(d.Spec.Selector.MatchLabels)] = true
				text := ""
				for _, v := range d.Spec.Template.Spec.Volumes {
					if v.ConfigMap != nil {
						text = configs[v.ConfigMap.Name].Data["config.yaml"]
					}
				}
				cfg, warnings, err := config.Load("config.yaml", []byte(text))
				if err != nil || len(warnings) > 0 {
					t.Fatalf("%s: %v %v", name, err, warnings)
				}
				token := *d.Spec.Template.Spec.AutomountServiceAccountToken
				if token != cfg.Secrets.Kubernetes {
					t.Errorf("%s: token mounted: %t, secrets of the cluster: %t", name, token, cfg.Secrets.Kubernetes)
				}
				ref := cfg.Source.Auth.Secret
				want := path.Join(cfg.Secrets.Directory, ref.Namespace, ref.Name)
				mounted := slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].VolumeMounts, func(m struct {
					Name, MountPath string
					ReadOnly        bool
				}) bool {
					return m.MountPath == want
				})
				if !cfg.Secrets.Kubernetes && !mounted {
					t.Errorf("%s: %s is not mounted", name, want)
				}
			}
			if len(selectors) != len(deployments) {
				t.Errorf("Deployments select each other's Pods: %v", selectors)
			}
		})
	}
}

// Shards have folders of their own.
func TestShardsAreApart(t *testing.T) {
	seen := map[string]string{}
	for name, cm := range all[configMap](t, buildFolder(t, "overlays/sharded"), "ConfigMap") {
		cfg, _, err := config.Load("config.yaml", []byte(cm.Data["config.yaml"]))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{"source " + cfg.Source.Path, "target " + cfg.Target.Path} {
			if other := seen[dir]; other != "" {
				t.Errorf("%s and %s share %s", name, other, dir)
			}
			seen[dir] = name
		}
	}
	if len(seen) != 4 {
		t.Errorf("folders: %v", seen)
	}
}

// What the cluster is asked for is one Secret by name, and nothing else.
func TestClusterSecretsRole(t *testing.T) {
	type role struct {
		Rules []struct{ APIGroups, Resources, ResourceNames, Verbs []string }
	}
	built := buildFolder(t, "overlays/cluster-secrets")
	for name, r := range all[role](t, built, "Role") {
		for _, rule := range r.Rules {
			if !slices.Equal(rule.Resources, []string{"secrets"}) || !slices.Equal(rule.Verbs, []string{"get"}) || len(rule.ResourceNames) == 0 {
				t.Errorf("%s: %+v", name, rule)
			}
		}
	}
	for _, r := range built.Resources() {
		if strings.HasPrefix(r.GetKind(), "ClusterRole") {
			t.Errorf("%s %s", r.GetKind(), r.GetName())
		}
	}
}

// Only webhooks, and the page and its JSON, are published; the page with a sign-in.
func TestIngresses(t *testing.T) {
	type ingress struct {
		Metadata struct{ Annotations map[string]string }
		Spec     struct {
			TLS   []any
			Rules []struct {
				HTTP struct {
					Paths []struct{ Path, PathType string }
				}
			}
		}
	}
	published := map[string][]string{}
	for name, i := range all[ingress](t, buildFolder(t, "overlays/single"), "Ingress") {
		if len(i.Spec.TLS) == 0 {
			t.Errorf("%s has no TLS", name)
		}
		for _, p := range i.Spec.Rules[0].HTTP.Paths {
			published[name] = append(published[name], p.PathType+" "+p.Path)
		}
		if name == "renderer-status" && i.Metadata.Annotations["nginx.ingress.kubernetes.io/auth-url"] == "" {
			t.Errorf("%s asks nobody to sign in", name)
		}
	}
	want := map[string][]string{
		"renderer-webhooks": {"Prefix /hook/"},
		"renderer-status":   {"Exact /", "Prefix /api/v1/"},
	}
	if fmt.Sprint(published) != fmt.Sprint(want) {
		t.Errorf("published %v, want %v", published, want)
	}
}
