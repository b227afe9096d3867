// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"resourceset.example/renderer/internal/config"
)

// build is what kubectl apply -k would apply of the base.
func build(t *testing.T) resmap.ResMap {
	t.Helper()
	return buildFolder(t, "kubernetes")
}

func buildFolder(t *testing.T, dir string) resmap.ResMap {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// one reads the only object of a kind into a value.
func one(t *testing.T, built resmap.ResMap, kind string, to any) {
	t.Helper()
	var found []string
	for _, r := range built.Resources() {
		if r.GetKind() != kind {
			continue
		}
		found = append(found, r.GetName())
		if err := yaml.UnmarshalStrict([]byte(r.MustYaml()), &map[string]any{}); err != nil {
			t.Errorf("%s %s: %v", kind, r.GetName(), err)
		}
		if err := yaml.Unmarshal([]byte(r.MustYaml()), to); err != nil {
			t.Fatalf("%s %s: %v", kind, r.GetName(), err)
		}
	}
	if len(found) != 1 {
		t.Fatalf("objects of kind %s: %v, want one", kind, found)
	}
}

// A deployment has of a Deployment what the tests look at.
type deployment struct {
	Spec struct {
		Selector struct{ MatchLabels map[string]string }
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				AutomountServiceAccountToken *bool
				SecurityContext              struct {
					RunAsNonRoot   bool
					SeccompProfile struct{ Type string }
				}
				Containers []struct {
					Args          []string
					Ports         []struct{ Name string }
					LivenessProbe struct {
						HTTPGet struct{ Path, Port string }
					}
					ReadinessProbe struct {
						HTTPGet struct{ Path, Port string }
					}
					Resources       struct{ Requests, Limits map[string]string }
					SecurityContext struct {
						AllowPrivilegeEscalation *bool
						ReadOnlyRootFilesystem   bool
						Capabilities             struct{ Drop []string }
					}
					VolumeMounts []struct {
						Name, MountPath string
						ReadOnly        bool
					}
				}
				Volumes []struct {
					Name      string
					ConfigMap *struct{ Name string }
				}
			}
		}
	}
}

func TestEverythingIsInOneNamespace(t *testing.T) {
	built := build(t)
	kinds := map[string]int{}
	for _, r := range built.Resources() {
		kinds[r.GetKind()]++
		if r.GetKind() != "Namespace" && r.GetNamespace() != "renderer" {
			t.Errorf("%s %s is in namespace %q", r.GetKind(), r.GetName(), r.GetNamespace())
		}
	}
	for _, kind := range []string{"Namespace", "ServiceAccount", "Deployment", "Service", "NetworkPolicy", "PodDisruptionBudget", "ConfigMap"} {
		if kinds[kind] != 1 {
			t.Errorf("%d objects of kind %s", kinds[kind], kind)
		}
	}
	if len(kinds) != 7 {
		t.Errorf("kinds: %v; a Role or a Secret has no business here", kinds)
	}
}

// The Pod passes the restricted standard, and can neither write to its image nor talk
// to the cluster.
func TestPodIsRestricted(t *testing.T) {
	var d deployment
	one(t, build(t), "Deployment", &d)
	pod := d.Spec.Template.Spec
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Error("a service account token is mounted")
	}
	if !pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("pod: %+v", pod.SecurityContext)
	}
	c := pod.Containers[0]
	if sc := c.SecurityContext; sc.AllowPrivilegeEscalation == nil || *sc.AllowPrivilegeEscalation || !sc.ReadOnlyRootFilesystem ||
		len(sc.Capabilities.Drop) != 1 || sc.Capabilities.Drop[0] != "ALL" {
		t.Errorf("container: %+v", sc)
	}
	if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Port != c.Ports[0].Name {
		t.Error("the probes ask for something that is not served")
	}
	if c.Resources.Requests["memory"] == "" || c.Resources.Limits["memory"] == "" {
		t.Errorf("resources: %+v", c.Resources)
	}
	if len(d.Spec.Selector.MatchLabels) == 0 || d.Spec.Template.Metadata.Labels["app.kubernetes.io/name"] != "renderer" {
		t.Error("the Deployment does not select its Pods")
	}
}

// The configuration loads without a warning, and what it names is mounted.
func TestConfigurationFitsThePod(t *testing.T) {
	built := build(t)
	var cm struct {
		Metadata struct{ Name string }
		Data     map[string]string
	}
	one(t, built, "ConfigMap", &cm)
	var d deployment
	one(t, built, "Deployment", &d)
	cfg, warnings, err := config.Load("config.yaml", []byte(cm.Data["config.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		t.Error(w)
	}
	pod := d.Spec.Template.Spec
	writable, secrets := map[string]bool{}, map[string]bool{}
	configAt := ""
	for _, m := range pod.Containers[0].VolumeMounts {
		writable[m.MountPath] = !m.ReadOnly
		if m.ReadOnly && strings.HasPrefix(m.MountPath, cfg.Secrets.Directory+"/") {
			secrets[m.MountPath] = true
		}
		if m.Name == "config" {
			configAt = m.MountPath
		}
	}
	if !writable[cfg.State.Directory] || !writable["/tmp"] {
		t.Errorf("the state folder or /tmp cannot be written: %v", writable)
	}
	ref := cfg.Source.Auth.Secret
	if want := path.Join(cfg.Secrets.Directory, ref.Namespace, ref.Name); !secrets[want] {
		t.Errorf("%s is not mounted: %v", want, secrets)
	}
	if args := strings.Join(pod.Containers[0].Args, " "); args != "run --config "+configAt+"/config.yaml" {
		t.Errorf("args: %s", args)
	}
	for _, v := range pod.Volumes {
		if v.ConfigMap != nil && v.ConfigMap.Name != cm.Metadata.Name {
			t.Errorf("the Pod mounts ConfigMap %s, not %s", v.ConfigMap.Name, cm.Metadata.Name)
		}
	}
}

func TestNetworkPolicy(t *testing.T) {
	var p struct {
		Spec struct {
			PodSelector struct{ MatchLabels map[string]string }
			PolicyTypes []string
			Ingress     []struct {
				From  []map[string]any
				Ports []map[string]any
			}
			Egress []struct{ Ports []map[string]any }
		}
	}
	one(t, build(t), "NetworkPolicy", &p)
	if p.Spec.PodSelector.MatchLabels["app.kubernetes.io/name"] != "renderer" || len(p.Spec.PolicyTypes) != 2 {
		t.Errorf("%+v", p.Spec)
	}
	if len(p.Spec.Ingress) != 1 || len(p.Spec.Ingress[0].From) == 0 || len(p.Spec.Egress) != 1 || len(p.Spec.Egress[0].Ports) == 0 {
		t.Error("everything may come in or go out")
	}
}

// The image is built with the Go of go.mod, has nothing but the program, and does not
// run as root.
func TestContainerfile(t *testing.T) {
	text, err := os.ReadFile("Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	if version == nil || !strings.Contains(string(text), "golang:"+string(version[1])+" ") {
		t.Errorf("the image is not built with the version of go.mod, %s", version)
	}
	_, final, ok := strings.Cut(string(text), "\nFROM scratch\n")
	if !ok || strings.Contains(final, "RUN ") || !strings.Contains(final, "ca-certificates.crt") {
		t.Errorf("the final stage: %s", final)
	}
	if user := regexp.MustCompile(`(?m)^USER (\d+)`).FindStringSubmatch(final); user == nil || user[1] == "0" {
		t.Errorf("user: %v", user)
	}
}
