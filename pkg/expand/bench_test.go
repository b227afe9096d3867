// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"

	"resourceset.example/renderer/pkg/api"
)

// previewResources are the two objects of the preview environments that this
// program was first asked for.
func previewResources() []any {
	metadata := func(annotations map[string]any) map[string]any {
		m := map[string]any{"name": "podinfo-<< inputs.id >>", "namespace": "podinfo-preview"}
		if annotations != nil {
			m["annotations"] = annotations
		}
		return m
	}
	return []any{
		map[string]any{
			"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": metadata(nil),
			"spec": map[string]any{
				"interval": "1h", "url": "https://github.com/stefanprodan/podinfo",
				"ref":       map[string]any{"commit": "<< inputs.sha >>"},
				"secretRef": map[string]any{"name": "github-token-readonly"},
			},
		},
		map[string]any{
			"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
			"metadata": metadata(map[string]any{
				"event.toolkit.fluxcd.io/preview-url": "https://podinfo-<< inputs.id >>.example.com",
				"event.toolkit.fluxcd.io/branch":      "<< inputs.branch | slugify >>",
				"event.toolkit.fluxcd.io/author":      "<< inputs.author | quote >>",
			}),
			"spec": map[string]any{
				"interval": "1h", "releaseName": "podinfo-<< inputs.id >>", "serviceAccountName": "flux-restricted",
				"chart": map[string]any{"spec": map[string]any{
					"chart": "./charts/podinfo", "reconcileStrategy": "Revision",
					"sourceRef": map[string]any{"kind": "GitRepository", "name": "podinfo-<< inputs.id >>"},
				}},
				"values": map[string]any{
					"image":   map[string]any{"tag": "<< inputs.sha >>"},
					"ingress": map[string]any{"hosts": []any{map[string]any{"host": "podinfo-<< inputs.id >>.example.com"}}},
				},
			},
		},
	}
}

// pullRequests are n exported input sets.
func pullRequests(n int) []api.Input {
	inputs := make([]api.Input, n)
	for i := range inputs {
		inputs[i] = api.Input{
			"id": fmt.Sprint(i), "sha": fmt.Sprintf("%08x%032x", i*2654435761&0xffffffff, i), "branch": fmt.Sprintf("feat/some-branch-%d", i),
			"author": fmt.Sprintf("dev-%d", i%100), "title": fmt.Sprintf("Fix: the thing #%d", i),
		}
	}
	return inputs
}

func previewResourceSet() *api.ResourceSet {
	rs := &api.ResourceSet{Meta: api.Meta{Name: "podinfo", Namespace: "podinfo-preview"}}
	rs.Spec.InputStrategy = api.StrategyFlatten
	rs.Spec.InputsFrom = []api.InputProviderReference{{Name: "podinfo-pull-requests"}}
	rs.Spec.Resources = previewResources()
	return rs
}

// BenchmarkBuild is all that `renderer build` does between reading and printing,
// for 1,000 input sets of 2 objects each.
func BenchmarkBuild(b *testing.B) {
	rs := previewResourceSet()
	export := Export{Kind: api.KindInputProvider, Namespace: rs.Namespace, Name: "podinfo-pull-requests",
		Type: api.TypeGitHubPullRequest, Inputs: pullRequests(1000)}
	for _, bench := range []struct {
		name  string
		guard StructureGuard
	}{{"off", StructureOff}, {"enforce", StructureEnforce}} {
		b.Run("ours/guard="+bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, err := Compile(rs)
				if err != nil {
					b.Fatal(err)
				}
				sets, err := p.Sets([]Export{export})
				if err != nil {
					b.Fatal(err)
				}
				r := p.Render(context.Background(), sets, Options{Structure: bench.guard})
				if len(r.Objects) != 2000 {
					b.Fatalf("%d objects, failed: %v", len(r.Objects), r.Failed)
				}
				if err := EncodeStream(io.Discard, r.Objects); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("naive", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if n := naive(b, rs, export.Inputs); n != 2000 {
				b.Fatalf("%d objects", n)
			}
		}
	})
}

// naive is the obvious program: for every input set, parse the template, execute it,
// read the YAML, write the YAML.
func naive(b *testing.B, rs *api.ResourceSet, inputs []api.Input) (objects int) {
	for _, item := range rs.Spec.Resources {
		for _, in := range inputs {
			text, err := templateText(item)
			if err != nil {
				b.Fatal(err)
			}
			funcs := functions()
			funcs["inputs"] = func() map[string]any { return in }
			tmpl, err := template.New("").Delims(leftDelim, rightDelim).Option("missingkey=error").Funcs(funcs).Parse(string(text))
			if err != nil {
				b.Fatal(err)
			}
			var buf bytes.Buffer
			if err := tmpl.Execute(&buf, nil); err != nil {
				b.Fatal(err)
			}
			docs, err := decodeDocuments(buf.Bytes())
			if err != nil {
				b.Fatal(err)
			}
			content := docs[0].(map[string]any)
			decorate(rs, content)
			if _, err := yaml.Marshal(content); err != nil {
				b.Fatal(err)
			}
			objects++
		}
	}
	return objects
}
