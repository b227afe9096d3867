// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"strconv"
	"testing"

	"resourceset.example/renderer/pkg/api"
)

// manySets are n sets of two objects each, as the founding example has them.
func manySets(n int) LayoutParams {
	p := LayoutParams{ResourceSet: resourceSet("podinfo-preview", "podinfo"), Rendering: &Rendering{}}
	for i := range n {
		id := strconv.Itoa(i)
		in := api.Input{"id": id, "sha": fmt.Sprintf("%040x", i), "branch": "feat/some-" + id, "author": "somebody"}
		p.Sets = append(p.Sets, Set{Name: "podinfo-pull-requests-" + id, ID: id, Provider: "podinfo-pull-requests", Inputs: in,
			Parts: []Part{{Kind: api.KindInputProvider, Provider: "podinfo-pull-requests", Type: api.TypeGitHubPullRequest, Inputs: in}}})
		for _, kind := range []string{"GitRepository", "HelmRelease"} {
			object := Object{ID: ObjectID{"helm.toolkit.fluxcd.io", kind, "podinfo-preview", "podinfo-" + id}, Sets: []int{i}}
			object.Content = map[string]any{
				"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": kind,
				"metadata": map[string]any{"name": "podinfo-" + id, "namespace": "podinfo-preview",
					"labels": map[string]any{api.LabelOwnerName: "podinfo", api.LabelOwnerNamespace: "podinfo-preview"}},
				"spec": map[string]any{"interval": "1h", "url": "https://github.com/stefanprodan/podinfo",
					"ref": map[string]any{"commit": in["sha"]}, "values": map[string]any{"hosts": []any{"podinfo-" + id + ".example.com"}}},
			}
			p.Rendering.Objects = append(p.Rendering.Objects, object)
		}
	}
	return p
}

// BenchmarkLayout is a full layout of 10,000 sets after one of them changed.
func BenchmarkLayout(b *testing.B) {
	p := manySets(10000)
	first, err := Layout(p)
	if err != nil {
		b.Fatal(err)
	}
	p.Previous = first.Lock
	p.Rendering.Objects[7].Content["spec"] = map[string]any{"interval": "2h"}
	b.Run("encoding all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if out, err := Layout(p); err != nil || len(out.Write) != 2 {
				b.Fatalf("%v: writes %d files", err, len(out.Write))
			}
		}
	})
	encoded := map[ObjectID][]byte{}
	for _, object := range p.Rendering.Objects {
		encoded[object.ID], _ = Encode(object.Content)
	}
	p.Encode = func(object Object) ([]byte, error) { return encoded[object.ID], nil }
	b.Run("encoded before", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Layout(p); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkLock(b *testing.B) {
	out, err := Layout(manySets(10000))
	if err != nil {
		b.Fatal(err)
	}
	data := out.Write[LockFile]
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			out.Lock.Encode()
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ParseLock(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
