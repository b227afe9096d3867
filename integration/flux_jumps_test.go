// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"resourceset.example/renderer/integration/cluster"
)

// jumps is rule 15: whatever changes about who applies an object, the object in the
// cluster is never deleted for it.
func (f *fleet) jumps(t *testing.T) {
	h := f.hand(t, "jumps")
	on := h.setup.flux
	h.setup.flux = ""
	h.define(map[string]string{"app": fixed("app", "", "a b c")})
	h.start()
	h.settles()
	h.owned("a=jumps", "b=jumps", "c=jumps")

	t.Log("target.flux goes on")
	h.setup.flux = on
	h.pass()
	for name, o := range h.lives("a", "b", "c") {
		if o.GetAnnotations()["kustomize.toolkit.fluxcd.io/prune"] != "disabled" {
			t.Errorf("%s is not protected", name)
		}
	}
	h.comes("hand over to Flux Kustomizations")
	h.settles()
	h.owned("a=app", "b=app", "c=app")
	h.setup.quiet()

	for _, change := range []struct {
		what string
		sets map[string]string
		want string
	}{
		{"steps come", map[string]string{"app": fixed("app", "", "one: a b", "two: c")}, "a=app-one b=app-one c=app-two"},
		{"a step is renamed", map[string]string{"app": fixed("app", "", "uno: a b", "two: c")}, "a=app-uno b=app-uno c=app-two"},
		{"an object goes to another step", map[string]string{"app": fixed("app", "", "uno: a", "two: b c")}, "a=app-uno b=app-two c=app-two"},
		{"steps change their order", map[string]string{"app": fixed("app", "", "two: b c", "uno: a")}, "a=app-uno b=app-two c=app-two"},
		{"a step goes with its object, another object comes", map[string]string{"app": fixed("app", "", "two: b c d")}, "b=app-two c=app-two d=app-two"},
		{"the last step goes", map[string]string{"app": fixed("app", "", "b c d")}, "b=app c=app d=app"},
		{"an object goes to another ResourceSet", map[string]string{"app": fixed("app", "", "b c"), "other": fixed("other", "", "d e")}, "b=app c=app d=other e=other"},
		{"a ResourceSet is renamed", map[string]string{"app": fixed("prog", "", "b c")}, "b=prog c=prog d=other e=other"},
		{"renamed, with steps, and an object goes", map[string]string{"app": fixed("tool", "", "one: f", "two: b")}, "b=tool-two d=other e=other f=tool-one"},
	} {
		t.Log(change.what)
		h.define(change.sets)
		h.pass()
		h.owned(strings.Fields(change.want)...)
	}

	t.Log("target.flux goes off")
	h.setup.flux = ""
	h.pass()
	h.owned("b=jumps", "d=jumps", "e=jumps", "f=jumps")
	t.Log("an object goes meanwhile, another comes")
	h.define(map[string]string{"other": fixed("other", "", "e g")})
	h.pass()
	h.owned("b=jumps", "e=jumps", "f=jumps", "g=jumps")
	t.Log("target.flux goes on again")
	h.setup.flux = on
	h.pass()
	h.comes("hand over to Flux Kustomizations")
	h.settles()
	h.owned("b=tool-two", "e=other", "f=tool-one", "g=other")
}

// upsets is rule 15 when Flux misses commits, or is killed in the middle of them, and
// when another version of renderer takes over.
func (f *fleet) upsets(t *testing.T) {
	h := f.hand(t, "upsets")
	h.define(map[string]string{"app": fixed("app", "", "a b c"), "two": fixed("two", "", "d")})
	h.start()
	h.settles()
	h.owned("a=app", "b=app", "c=app", "d=two")

	t.Log("of five commits Flux sees the last, and everybody is new")
	f.Source.Kill()
	for _, sets := range []map[string]string{
		{"app": fixed("app", "", "one: a b", "two: c")},
		{"app": fixed("prog", "", "uno: a", "two: b c")},
		{"app": fixed("prog", "", "uno: a", "two: b"), "two": fixed("two", "", "c d")},
		{"app": fixed("prog", "", "b a"), "two": fixed("two", "", "last: c d")},
	} {
		h.define(sets)
		h.setup.once(0)
	}
	on := h.setup.flux
	h.setup.flux = ""
	h.setup.once(0)
	f.Kustomize.Kill()
	must(t, f.StartSource(soon(t)))
	must(t, f.StartKustomize(soon(t)))
	h.settles()
	h.owned("a=upsets", "b=upsets", "c=upsets", "d=upsets")

	t.Log("target.flux goes on, and nobody is there at the second commit")
	h.setup.flux = on
	h.pass()
	f.Kustomize.Kill()
	h.comes("hand over to Flux Kustomizations")
	must(t, f.StartKustomize(soon(t)))
	h.settles()
	h.owned("a=prog", "b=prog", "c=two-last", "d=two-last")

	t.Log("kustomize-controller is killed as soon as it has changed its Kustomizations")
	h.define(map[string]string{"app": fixed("prog", "", "one: a", "two: b"), "two": fixed("three", "", "c d")})
	h.setup.once(0)
	h.applied(t, h.sync, h.w.repo.Head("main"))
	f.Kustomize.Kill()
	must(t, f.StartKustomize(soon(t)))
	h.settles()
	h.owned("a=prog-one", "b=prog-two", "c=three", "d=three")

	t.Log("another version of renderer finds a record as older ones wrote it")
	names := func() string { return owners(h.lives("a", "b", "c", "d")) }
	before := names()
	h.setup.program = filepath.Join(t.TempDir(), "renderer")
	must(t, buildProgram(h.setup.program, "99.0.0"))
	must(t, os.RemoveAll(h.setup.state))
	h.setup.once(0)
	lock := generated + "/upsets/three/inputs.lock"
	var older []string
	for line := range strings.Lines(h.w.repo.Read("main", lock)) {
		if !strings.HasPrefix(line, "checksum: ") {
			older = append(older, line)
		}
	}
	h.w.repo.Commit("main", "Write a record as before checksums", map[string]string{lock: strings.Join(older, "")})
	must(t, os.RemoveAll(h.setup.state))
	h.pass()
	if after := names(); after != before {
		t.Errorf("%s, before: %s", after, before)
	}

	t.Log("what is retired goes in the end")
	eventually(t, "nothing is retired", func() bool {
		h.setup.once(0)
		for _, file := range h.w.repo.Files("main") {
			if strings.HasSuffix(file, "/inputs.lock") && strings.Contains(h.w.repo.Read("main", file), "\n  retired:") {
				return false
			}
		}
		return true
	})
	h.settles()
	if after := names(); after != before {
		t.Errorf("%s, before: %s", after, before)
	}
	f.names(t, kustomizeAPI, "Kustomization", h.namespace, h.part("prog", "one"), h.part("prog", "two"), "resourceset-three")
}

// retired: a Kustomization that others have taken over from stays ready when an object
// that it once had goes, also one of the kinds that Flux waits for whoever has them.
func (f *fleet) retired(t *testing.T) {
	h := f.hand(t, "retired")
	role := "        - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader-of-NAMESPACE}, rules: []}\n"
	h.define(map[string]string{"app": fixed("app", "", "one: a") + role})
	h.start()
	h.settles()
	h.define(map[string]string{"app": fixed("app", "", "two: a") + role})
	h.pass()
	h.owned("a=app-two")
	h.define(map[string]string{"app": fixed("app", "", "two: a")})
	h.pass()
	h.owned("a=app-two")
	if o, err := f.Get(t.Context(), cluster.Ref{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "reader-of-retired"}); err != nil || o != nil {
		t.Errorf("the ClusterRole is still there: %v", err)
	}
	if retired := h.part("app", "one"); retired == "" {
		t.Error("nothing is retired")
	}
}

// owners are the Kustomizations that applied objects last.
func owners(objects map[string]kubeObject) string {
	var texts []string
	for name, o := range objects {
		texts = append(texts, name+"="+o.GetLabels()[ownerName])
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}
