// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkReadAfterOneChange reads 1,000 files of which one changed, with a
// Reader that remembers the others, and with one that does not. Beside the
// definitions lie 30,000 generated files, which cost nothing.
func BenchmarkReadAfterOneChange(b *testing.B) {
	files := repo{}
	for i := range 1000 {
		files[fmt.Sprintf("fleet/team-%d/app-%d.yaml", i%50, i)] = set("apps", fmt.Sprintf("app-%d", i))
	}
	for i := range 30_000 {
		files[fmt.Sprintf("fleet/generated/%d/%d.yaml", i%300, i)] = "a: b\n"
	}
	opts := Options{Path: "fleet", Exclude: "fleet/generated"}
	before := files.tree(b)
	files["fleet/team-7/app-7.yaml"] = set("apps", "changed")
	after := files.tree(b)
	b.Run("reader", func(b *testing.B) {
		var r Reader
		for n := 0; b.Loop(); n++ {
			tree := before
			if n%2 == 1 {
				tree = after
			}
			if defs, err := r.Read(context.Background(), tree, opts); err != nil || len(defs.ResourceSets) != 1000 {
				b.Fatal(defs, err)
			}
		}
	})
	b.Run("anew", func(b *testing.B) {
		for b.Loop() {
			if _, err := Read(context.Background(), after, opts); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkKustomization builds a folder of 100 files, and finds it unchanged.
func BenchmarkKustomization(b *testing.B) {
	files := repo{}
	list := "resources:\n"
	for i := range 100 {
		name := fmt.Sprintf("app-%d.yaml", i)
		files[name] = set("apps", fmt.Sprintf("app-%d", i))
		list += "  - " + name + "\n"
	}
	files["kustomization.yaml"] = list
	tree := files.tree(b)
	b.Run("reader", func(b *testing.B) {
		var r Reader
		if _, err := r.Read(context.Background(), tree, Options{}); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := r.Read(context.Background(), tree, Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("anew", func(b *testing.B) {
		for b.Loop() {
			if defs, err := Read(context.Background(), tree, Options{}); err != nil || len(defs.ResourceSets) != 100 {
				b.Fatal(defs, err)
			}
		}
	})
}
