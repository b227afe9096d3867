// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"

	"resourceset.example/renderer/integration/cluster"
)

// chart renders the Helm chart as Helm does, its schema included, with values that
// reach every template, and applies the result.
func (f *fleet) chart(t *testing.T) {
	must(t, f.CreateNamespace(t.Context(), "renderer"))
	must(t, f.CreateNamespace(t.Context(), previews)) // a Role goes there
	loaded, err := loader.Load("../deploy/chart")
	must(t, err)
	for name, values := range map[string]string{
		"defaults": "",
		"everything": `
image: {digest: "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
imagePullSecrets: [{name: registry}]
state: {existingClaim: renderer-state}
webhooks: {enabled: true, className: nginx, host: hooks.example.com, tlsSecret: hooks-tls}
statusPage: {enabled: true, className: nginx, host: renderer.example.com, tlsSecret: page-tls, annotations: {auth.example.com/sign-in: required}}
networkPolicy: {enabled: true, egressPorts: [8443]}
podLabels: {team: platform}
podAnnotations: {example.com/scrape: "true"}
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: infra, operator: Exists}]
`,
		"secrets from the API": `
secrets: {mounts: [], kubernetes: [{namespace: renderer, names: [git-credentials]}, {namespace: ` + previews + `, names: [github-auth]}]}
`,
	} {
		t.Run(name, func(t *testing.T) {
			manifests, err := render(loaded, values)
			must(t, err)
			if len(f.takes(t, "renderer", manifests)) != 1 {
				t.Error("not one Deployment")
			}
		})
	}
	if _, err := render(loaded, "webhooks: {enable: true}"); err == nil || !strings.Contains(err.Error(), "schema") {
		t.Errorf("a value that does not exist: %v", err)
	}
}

// render is `helm template`: one text for each object.
func render(c *chart.Chart, values string) ([]string, error) {
	set := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &set); err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(c, set, chartutil.ReleaseOptions{Name: "renderer", Namespace: "renderer", Revision: 1, IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	var manifests []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		docs, err := cluster.Split(files[name])
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, docs...)
	}
	return manifests, nil
}
