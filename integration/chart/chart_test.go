// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"resourceset.example/renderer/internal/config"
)

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load("../../deploy/chart")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render is what helm template prints, by kind and name.
func render(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	c, given := load(t), map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "fleet", Namespace: "apps", IsInstall: true}
	all, err := chartutil.ToRenderValues(c, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	objects := map[string]string{}
	for file, text := range files {
		for document := range strings.SplitSeq("\n"+text, "\n---\n") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			var meta struct {
				Kind     string
				Metadata struct{ Namespace, Name string }
			}
			if err := yaml.Unmarshal([]byte(document), &meta); err != nil || meta.Kind == "" {
				t.Fatalf("%s: %v\n%s", file, err, document)
			}
			key := path.Join(meta.Kind, meta.Metadata.Namespace, meta.Metadata.Name)
			if objects[key] != "" {
				t.Errorf("%s is there twice", key)
			}
			objects[key] = document
			strict(t, key, meta.Kind, document)
		}
	}
	return objects, nil
}

// strict checks an object against its type: no unknown field, no wrong type.
func strict(t *testing.T, key, kind, document string) {
	t.Helper()
	types := map[string]any{
		"ConfigMap": &corev1.ConfigMap{}, "Service": &corev1.Service{}, "ServiceAccount": &corev1.ServiceAccount{},
		"Deployment": &appsv1.Deployment{}, "Ingress": &networkingv1.Ingress{}, "NetworkPolicy": &networkingv1.NetworkPolicy{},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudget{}, "Role": &rbacv1.Role{}, "RoleBinding": &rbacv1.RoleBinding{},
	}
	object, ok := types[kind]
	if !ok {
		t.Errorf("%s has no business here", key)
		return
	}
	if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
		t.Errorf("%s: %v\n%s", key, err, document)
	}
}

const inCluster = `
secrets:
  mounts: []
  kubernetes: [{namespace: previews, names: [github-auth, hook]}, {namespace: apps, names: [git]}]
`

func TestObjects(t *testing.T) {
	base := []string{
		"ConfigMap/fleet", "Deployment/fleet", "NetworkPolicy/fleet", "PodDisruptionBudget/fleet", "Service/fleet", "ServiceAccount/fleet",
	}
	for name, test := range map[string]struct {
		values string
		more   []string
		fewer  string
	}{
		"defaults":   {"", nil, ""},
		"webhooks":   {"webhooks: {enabled: true, tlsSecret: x, className: nginx, annotations: {a: b}}", []string{"Ingress/fleet-webhooks"}, ""},
		"status":     {"statusPage: {enabled: true, annotations: {auth: please}}", []string{"Ingress/fleet-status"}, ""},
		"no policy":  {"networkPolicy: {enabled: false}", nil, "NetworkPolicy/fleet"},
		"everything": {"podLabels: {a: b}\npodAnnotations: {c: d}\nnodeSelector: {e: f}\ntolerations: [{key: g, operator: Exists}]\naffinity: {nodeAffinity: {}}\nimagePullSecrets: [{name: h}]\nstate: {existingClaim: cache}\nnetworkPolicy: {egressPorts: [8443]}\nimage: {repository: r.example.com/x, digest: \"sha256:" + strings.Repeat("0", 64) + "\"}", nil, ""},
		"in cluster": {inCluster, []string{
			"Role/apps/fleet-secrets", "Role/previews/fleet-secrets", "RoleBinding/apps/fleet-secrets", "RoleBinding/previews/fleet-secrets",
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := render(t, test.values)
			if err != nil {
				t.Fatal(err)
			}
			want := slices.DeleteFunc(append(slices.Clone(base), test.more...), func(s string) bool { return s == test.fewer })
			slices.Sort(want)
			if got := slices.Sorted(maps.Keys(objects)); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// The program accepts the configuration, without a warning, and finds all that it
// names where the Pod has it.
func TestConfigurationFitsThePod(t *testing.T) {
	for name, values := range map[string]string{
		"mounted": "config: {source: {auth: {secret: renderer/git-credentials}}, log: {level: debug}, secrets: {allowPlainOutput: true}}",
		"cluster": "config: {source: {auth: {secret: apps/git}}}" + inCluster,
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := render(t, values)
			if err != nil {
				t.Fatal(err)
			}
			var cm corev1.ConfigMap
			var d appsv1.Deployment
			read(t, objects["ConfigMap/fleet"], &cm)
			read(t, objects["Deployment/fleet"], &d)
			cfg, warnings, err := config.Load("config.yaml", []byte(cm.Data["config.yaml"]))
			if err != nil || len(warnings) > 0 {
				t.Fatalf("%v %v\n%s", err, warnings, cm.Data["config.yaml"])
			}
			pod := d.Spec.Template.Spec
			mounts := map[string]bool{}
			for _, m := range pod.Containers[0].VolumeMounts {
				mounts[m.MountPath] = true
			}
			if !mounts[cfg.State.Directory] || !mounts["/etc/renderer"] {
				t.Errorf("mounts: %v", mounts)
			}
			token := *pod.AutomountServiceAccountToken
			if cfg.Secrets.Kubernetes != (name == "cluster") || token != cfg.Secrets.Kubernetes {
				t.Errorf("secrets of the cluster: %t, token: %t", cfg.Secrets.Kubernetes, token)
			}
			ref := cfg.Source.Auth.Secret
			if !cfg.Secrets.Kubernetes && !mounts[path.Join(cfg.Secrets.Directory, ref.Namespace, ref.Name)] {
				t.Errorf("%v is not mounted: %v", ref, mounts)
			}
			if args := strings.Join(pod.Containers[0].Args, " "); args != "run --config /etc/renderer/config.yaml" {
				t.Errorf("args: %s", args)
			}
			sc := pod.Containers[0].SecurityContext
			if !*pod.SecurityContext.RunAsNonRoot || *sc.AllowPrivilegeEscalation || !*sc.ReadOnlyRootFilesystem || sc.Capabilities.Drop[0] != "ALL" {
				t.Errorf("%+v %+v", pod.SecurityContext, sc)
			}
		})
	}
}

// A changed configuration rolls the Pod.
func TestConfigurationRollsThePod(t *testing.T) {
	digest := func(values string) string {
		objects, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		var d appsv1.Deployment
		read(t, objects["Deployment/fleet"], &d)
		return d.Spec.Template.Annotations["renderer/config-digest"]
	}
	if a, b := digest(""), digest("config: {drift: restore}"); a == "" || a == b {
		t.Errorf("digests %q and %q", a, b)
	}
}

// A Role names each Secret, and allows to get it.
func TestRoles(t *testing.T) {
	objects, err := render(t, inCluster)
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.Role
	read(t, objects["Role/previews/fleet-secrets"], &role)
	if len(role.Rules) != 1 {
		t.Fatalf("%+v", role.Rules)
	}
	rule := role.Rules[0]
	if !slices.Equal(rule.ResourceNames, []string{"github-auth", "hook"}) || !slices.Equal(rule.Verbs, []string{"get"}) || !slices.Equal(rule.Resources, []string{"secrets"}) {
		t.Errorf("%+v", rule)
	}
}

// The schema refuses what would not work.
func TestSchema(t *testing.T) {
	for _, values := range []string{
		"configuration: {}",
		"config: {source: {url: \"\"}}",
		"config: {server: {listen: \":9090\"}}",
		"config: {state: {directory: /x}}",
		"config: {secrets: {directory: /x}}",
		"secrets: {mounts: [{secret: a, namespace: b}], kubernetes: [{namespace: c, names: [d]}]}",
		"secrets: {mounts: [], kubernetes: [{namespace: c, names: []}]}",
		"secrets: {mounts: [{secret: a}]}",
		"statusPage: {enabled: true}",
		"image: {digest: latest}",
		"service: {port: http}",
		"networkPolicy: {egressPorts: [0]}",
		"replicas: 2",
	} {
		if _, err := render(t, values); err == nil {
			t.Errorf("accepted %s", values)
		}
	}
}

func read(t *testing.T, document string, to any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(document), to); err != nil {
		t.Fatal(err)
	}
}
