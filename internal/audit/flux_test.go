// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"strings"
	"testing"

	"resourceset.example/renderer/internal/config"
)

// Commits that hand ResourceSets to Flux, take them back and let them go are proved
// as others are; what is recorded of Kustomizations cannot be bent.
func TestVerifyFlux(t *testing.T) {
	t.Parallel()
	const flux = "target: {path: ./" + target + ", flux: {sourceRef: {name: fleet, namespace: flux-system}, handover: 90m}}"
	w := newWorld(t, flux)
	w.define(map[string]string{appSet: appFile + "    - apiVersion: v1\n      kind: ConfigMap\n      metadata: {name: more, namespace: apps}\n      data: {text: \"$${x} ${y}\"}\n"})
	on := w.cfg.Target.Flux
	w.cfg.Target.Flux = nil
	w.rendered()
	w.stop()
	w.cfg.Target.Flux = on
	w.rendered() // protected
	w.tenants("red=2")
	w.rendered() // blue is kept
	w.rendered() // handed over
	w.rendered() // blue goes
	stepped := strings.Replace(appFile, "  resources:\n", "  steps:\n    - name: one\n      resources:\n", 1)
	stepped = strings.ReplaceAll(stepped, "    - apiVersion", "        - apiVersion")
	stepped = strings.ReplaceAll(stepped, "      kind:", "          kind:")
	stepped = strings.ReplaceAll(stepped, "      metadata:", "          metadata:")
	stepped = strings.ReplaceAll(stepped, "      data:", "          data:")
	w.define(map[string]string{appSet: stepped})
	w.rendered()
	w.proved(6)

	// A record that leaves a manifest without Kustomization would have Flux prune it.
	forge := func(old, with string) {
		t.Helper()
		head := w.repo.Head("main")
		lock := w.read(folder + "/inputs.lock")
		if !strings.Contains(lock, old) {
			t.Fatalf("no %q in\n%s", old, lock)
		}
		message := w.message(head)
		forged := w.person(message, map[string]string{folder + "/inputs.lock": strings.Replace(lock, old, with, 1)})
		w.finding(w.verify(Verification{Commit: forged}), forged, Altered, "inputs.lock")
		w.repo.Git("update-ref", "refs/heads/main", head)
	}
	forge(`step: "one"`, `step: "two"`)
	forge("number: 1", "number: 2")

	w.define(map[string]string{appSet: ""})
	w.rendered() // lists without manifests
	for range 40 {
		w.pass()
	}
	if strings.Contains(w.read(target+"/kustomization.yaml"), "apps/app") {
		t.Error("the folder is still there")
	}
	w.proved(9)
	w.stop()
	w.cfg.Target.Flux = nil
	w.define(map[string]string{appSet: appFile})
	w.rendered()
	w.proved(10)

	// Nobody edited anything, and the history does not say so.
	events, _ := w.history(Filter{})
	told := map[string]bool{}
	for _, e := range events {
		if e.Kind == Restored {
			t.Errorf("%q is told as an edit that was undone: %+v", e.Subject, e.Files)
		}
		if e.Kind == Flux {
			told[strings.TrimPrefix(e.Subject, "apps/app: ")] = e.Input == "" && len(e.Inputs) == 0 && len(e.Files) > 0
		}
	}
	for _, subject := range []string{"protect until Flux Kustomizations take over", "hand over to Flux Kustomizations"} {
		if !told[subject] {
			t.Errorf("%q is not told as flux: %v", subject, told)
		}
	}
}

// A ResourceSet that goes half-way to Flux gets there first.
func TestVerifyFluxGoneHalfWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rendered()
	w.stop()
	w.cfg.Target.Flux = &config.Flux{SourceRef: config.SourceRef{Kind: "GitRepository", Name: "fleet"}, Interval: 1e9, Handover: 5400e9}
	w.rendered()
	w.define(map[string]string{appSet: ""})
	w.pass()
	w.rendered()
	if list := w.read(folder + "/_flux/resourceset-app/kustomization.yaml"); !strings.Contains(list, "app-red") {
		t.Error(list)
	}
	w.rendered()
	w.pass()
	w.rendered()
	w.proved(5)
}
