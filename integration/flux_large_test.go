// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

// A crowd is the input sets of a ResourceSet, each with a number of ConfigMaps.
type crowd struct {
	names []string
	sizes map[string]int
}

func (c *crowd) add(name string, size int) {
	c.names = append(c.names, name)
	c.sizes[name] = size
}

func (c *crowd) objects() int {
	n := 0
	for _, size := range c.sizes {
		n += size
	}
	return n
}

// text is the ResourceSet. The version is in one input set's objects only.
func (c *crowd) text(version string) string {
	var text strings.Builder
	text.WriteString("apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: crowd, namespace: NAMESPACE, annotations: {renderer/allow-structure: \"true\"}}\nspec:\n  inputs:\n")
	for i, name := range c.names {
		fmt.Fprintf(&text, "    - {tenant: %s, size: %d, version: %q}\n", name, c.sizes[name], map[bool]string{true: version, false: "1"}[i == 0])
	}
	text.WriteString(`  resourcesTemplate: |
    <<- range $i := until (int inputs.size) >>
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: << inputs.tenant >>-<< $i >>
      namespace: NAMESPACE
    data:
      version: << inputs.version | quote >>
    <<- end >>
`)
	return text.String()
}

// large is a ResourceSet of 3,000 objects: its Kustomizations have at most 500 each, an
// input set stays in the one that it came to, and one that comes touches one only.
func (f *fleet) large(t *testing.T) {
	h := f.hand(t, "large")
	c := &crowd{sizes: map[string]int{}}
	c.add("first", 499)
	define := func(version string) { h.define(map[string]string{"crowd": c.text(version)}) }
	define("1")
	h.start()
	h.settles()
	if got := h.crowd(); !maps.Equal(got, map[string]int{"resourceset-crowd": 499}) {
		t.Fatal(got)
	}
	h.kept()

	t.Log("past the limit: 501")
	c.add("second", 2)
	define("1")
	h.pass()
	if got := h.crowd(); len(got) != 2 || got["resourceset-crowd"] != 499 {
		t.Fatal(got)
	}
	h.kept()

	t.Log("3,001 objects")
	for n := range 25 {
		c.add(fmt.Sprintf("tenant%02d", n), 100)
	}
	define("1")
	began := time.Now()
	h.setup.once(0)
	rendered := time.Since(began)
	h.settles()
	t.Logf("%d objects: rendered and pushed in %s, applied %s later", c.objects(), rendered.Round(10*time.Millisecond), (time.Since(began) - rendered).Round(10*time.Millisecond))
	parts := h.crowd()
	total := 0
	for name, n := range parts {
		if total += n; n > 500 {
			t.Errorf("%s has %d objects", name, n)
		}
	}
	if total != c.objects() || len(parts) != 7 {
		t.Fatalf("%d objects in %v", total, parts)
	}
	h.kept()
	before := h.versions()

	t.Log("one input set comes, another changes")
	c.add("last", 90)
	define("2")
	began = time.Now()
	h.setup.once(0)
	rendered = time.Since(began)
	lists := h.changed("_flux/")
	h.settles()
	t.Logf("one set more, one changed: rendered and pushed in %s, applied %s later", rendered.Round(10*time.Millisecond), (time.Since(began) - rendered).Round(10*time.Millisecond))
	if len(lists) != 1 {
		t.Errorf("changed for one input set more: %v", lists)
	}
	after := h.crowd()
	for name, n := range after {
		grown := len(lists) == 1 && strings.Contains(lists[0], "/"+name+"/")
		if want := parts[name] + map[bool]int{true: 90}[grown]; n != want {
			t.Errorf("%s has %d objects, want %d", name, n, want)
		}
	}
	h.kept()
	written := 0
	for name, version := range h.versions() {
		if old, known := before[name]; known && old != version {
			written++
		}
	}
	if written != 499 {
		t.Errorf("%d objects were written, want the 499 of the input set that changed", written)
	}
}

// crowd is how many objects each Kustomization of the namespace has in its inventory.
func (h *handed) crowd() map[string]int {
	h.t.Helper()
	all, err := h.List(h.t.Context(), kustomizeAPI, "Kustomization", h.namespace)
	must(h.t, err)
	sizes := map[string]int{}
	for name, k := range all {
		status, _ := k.Object["status"].(map[string]any)
		inventory, _ := status["inventory"].(map[string]any)
		entries, _ := inventory["entries"].([]any)
		sizes[name] = len(entries)
	}
	return sizes
}

// kept checks that the ConfigMaps are the objects that they were at the last look, and
// that each is applied by the Kustomization that it was applied by.
func (h *handed) kept() {
	h.t.Helper()
	all, err := h.List(h.t.Context(), "v1", "ConfigMap", h.namespace)
	must(h.t, err)
	for name, o := range all {
		owner := o.GetLabels()[ownerName]
		if uid, known := h.uids[name]; known && uid != o.GetUID() {
			h.t.Errorf("%s was deleted and made again", name)
		}
		if before, known := h.owner[name]; known && before != owner {
			h.t.Errorf("%s went from %s to %s", name, before, owner)
		}
		h.uids[name], h.owner[name] = o.GetUID(), owner
	}
}

// versions are those of the ConfigMaps: each write makes another.
func (h *handed) versions() map[string]string {
	h.t.Helper()
	all, err := h.List(h.t.Context(), "v1", "ConfigMap", h.namespace)
	must(h.t, err)
	versions := make(map[string]string, len(all))
	for name, o := range all {
		versions[name] = o.GetResourceVersion()
	}
	return versions
}

// changed are the files of the last commit with a text in their path.
func (h *handed) changed(part string) []string {
	h.t.Helper()
	var files []string
	for file := range strings.Lines(h.w.repo.Git("show", "--name-only", "--format=", "main")) {
		if file = strings.TrimSpace(file); strings.Contains(file, part) {
			files = append(files, file)
		}
	}
	return files
}
