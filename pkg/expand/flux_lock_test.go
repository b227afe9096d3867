// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func fluxLock() *Lock {
	lock := exampleLock()
	lock.Sets[0].Part, lock.Sets[0].Steps = 2, map[string]string{"podinfo-preview_podinfo-12_helm.toolkit.fluxcd.io_HelmRelease.yaml": "app"}
	lock.Shared["_podinfo-preview__Namespace.yaml"] = SharedFile{Blob: someBlob, All: true, Part: 3, Step: "app"}
	lock.Flux = &LockedFlux{
		Source: FluxSource{Kind: "GitRepository", Name: "fleet"}, Interval: "10m0s", ServiceAccount: "deployer", Generation: 4, Protected: "2026-03-01T12:00:00Z",
		After:   []FluxDependency{{Namespace: "apps", Name: "resourceset-base", ReadyExpr: "true"}},
		Parts:   []FluxPart{{Name: "resourceset-podinfo", Number: 1}, {Name: "resourceset-podinfo-app-2-0123abcd", Step: "app", Number: 2}},
		Retired: []RetiredPart{{Name: "resourceset-podinfo-g1-0123abcd", Objects: []string{"v1 ConfigMap apps/a", "v1 Namespace b"}, Since: "2026-03-01T12:00:00Z"}},
		Files: map[string]string{
			"_flux/protect/kustomization.yaml":                                              someBlob,
			"_flux/resourceset-podinfo/objects.yaml":                                        someBlob,
			"_flux/apps_resourceset-podinfo_kustomize.toolkit.fluxcd.io_Kustomization.yaml": someBlob,
			"_flux/resourceset-podinfo-app-2-0123abcd/kustomization.yaml":                   someBlob,
		},
	}
	return lock
}

func TestFluxLockRoundTrip(t *testing.T) {
	lock := fluxLock()
	data := lock.Encode()
	if !strings.Contains(string(data), "\nversion: 2\n") {
		t.Errorf("a version that knows nothing of Flux would rewrite it:\n%s", data)
	}
	back, err := ParseLock(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if diff := cmp.Diff(lock, back); diff != "" {
		t.Errorf("(-written +read):\n%s\n%s", diff, data)
	}
	if files := back.Files(); files["_flux/protect/kustomization.yaml"] != someBlob {
		t.Errorf("Files leaves out what is there for Flux: %v", files)
	}
}

// What a damaged or forged record says is deleted is never outside the folder.
func TestDamagedFluxLocks(t *testing.T) {
	good := string(fluxLock().Encode())
	for name, tt := range map[string]struct{ old, with, want string }{
		"a path":             {`_flux/protect/kustomization.yaml:`, `_flux/p/../../x.yaml:`, "no file of ours"},
		"another folder":     {`_flux/protect/kustomization.yaml:`, `_flux/protect/../x.yaml:`, "no file of ours"},
		"somebody's file":    {`_flux/protect/kustomization.yaml:`, `_flux/notes.txt:`, "no file of ours"},
		"no hash":            {`objects.yaml: "e69`, `objects.yaml: "x69`, "no Git blob"},
		"a foreign name":     {`name: "resourceset-podinfo"`, `name: "flux-system"`, "no name of a Kustomization"},
		"a name with a path": {`name: "resourceset-podinfo"`, `name: "resourceset-../x"`, "no name of a Kustomization"},
		"the same name":      {`name: "resourceset-podinfo-g1-0123abcd"`, `name: "resourceset-podinfo"`, "a second Kustomization"},
		"no object":          {`"v1 Namespace b"`, `"v1 Namespace"`, "no object"},
		"no number":          {"number: 2", "number: 0", "no number"},
		"unknown":            {"generation: 4", "generator: 4", "unknown field"},
		"wrong type":         {"generation: 4", `generation: "4"`, "not a whole number"},
		"format 1":           {"version: 2", "version: 1", "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, tt.old) {
				t.Fatalf("nothing to edit: %s\n%s", tt.old, good)
			}
			_, err := ParseLock([]byte(strings.Replace(good, tt.old, tt.with, 1)))
			var damaged *DamagedLockError
			if !errors.As(err, &damaged) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to mention %q", err, tt.want)
			}
		})
	}
}
