// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"resourceset.example/renderer/internal/config"
)

const (
	appList  = "clusters/generated/apps/app/kustomization.yaml"
	topList  = "clusters/generated/kustomization.yaml"
	blueFile = "clusters/generated/apps/app/tenants-blue/apps_app-blue__ConfigMap.yaml"
)

// builds fails the test unless Flux could build what is committed.
func (w *world) builds() {
	w.t.Helper()
	disk := filesys.MakeFsInMemory()
	for _, file := range w.repo.Files("main") {
		if err := disk.WriteFile("/"+file, []byte(w.repo.Read("main", file))); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/clusters/generated"); err != nil {
		w.t.Fatalf("does not build: %v", err)
	}
}

func (w *world) lacks(path, text string) {
	w.t.Helper()
	if got := w.repo.Read("main", path); strings.Contains(got, text) {
		w.t.Fatalf("%s contains %q:\n%s", path, text, got)
	}
}

func (w *world) warning(report *Report, words ...string) {
	w.t.Helper()
	for _, p := range report.Warnings {
		found := true
		for _, word := range words {
			found = found && strings.Contains(p.Error(), word)
		}
		if found {
			return
		}
	}
	w.t.Fatalf("no warning has %q: %v", words, report.Warnings)
}

// What people put into the list of a ResourceSet's folder, or take off it, is reported
// and stays, also when the list changes.
func TestRule07_EditedListOfFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	for _, cold := range []bool{false, true} {
		w := newWorld(t)
		w.ok()
		list := strings.Replace(w.repo.Read("main", appList), "- \"tenants-blue/apps_app-blue__ConfigMap.yaml\"\n", "", 1)
		commit := w.repo.Commit("main", "Blue is not applied for now", map[string]string{
			appList: list + "- ../../../extra\n# why\ncommonAnnotations: {owner: us}\n", "clusters/extra/kustomization.yaml": "resources: []\n",
		})
		for range 2 {
			if cold {
				w.forget()
			}
			report := w.unchanged(w.once)
			w.problem(report, "tenants-blue/apps_app-blue__ConfigMap.yaml not listed", commit[:12], "Somebody Else", "renderer release apps/app kustomization.yaml")
			w.warning(report, appList, "../../../extra", "commonAnnotations")
			if report.Result() != ResultHeld {
				t.Errorf("result is %s", report.Result())
			}
		}
		w.tenants("red=2.0", "blue=2.0", "green") // the list changes
		w.problem(w.once(), "blue__ConfigMap.yaml not listed", commit[:12])
		w.contains(blueFile, "2.0")
		w.contains(appList, "tenants-green")
		w.contains(appList, "../../../extra\n")
		w.contains(appList, "# why\ncommonAnnotations: {owner: us}")
		w.lacks(appList, "tenants-blue")
		w.builds()
		w.restart()
		r := w.open(nil)
		if _, err := r.Release(t.Context(), "apps/app", []string{kustomizationFile}, "olga"); err != nil {
			t.Fatal(err)
		}
		r.Close()
		w.ok()
		w.contains(appList, "tenants-blue")
		w.unchanged(w.ok)
	}
}

// A manifest that a person deletes stays away; the list is made to build all the same.
func TestRule07_DeletedManifestIsNotListed(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	w := newWorld(t)
	w.ok()
	commit := w.repo.Commit("main", "Take blue away", map[string]string{blueFile: ""})
	w.problem(w.once(), "tenants-blue", commit[:12])
	w.lacks(appList, "tenants-blue")
	w.builds()
	w.problem(w.unchanged(w.once), "tenants-blue", commit[:12])
	w.forget()
	w.problem(w.unchanged(w.once), "tenants-blue", commit[:12])
	w.tenants("red=2.0", "blue", "green")
	w.problem(w.once(), "tenants-blue")
	w.builds()
	w.tenants("red=2.0", "blue=2.0", "green") // it is to be something else
	w.ok()
	w.contains(appList, "tenants-blue")
	w.builds()
}

// The same for the list of the target path.
func TestRule07_DeletedFolderIsNotListed(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	w := newWorld(t)
	w.define(map[string]string{"one.yaml": inlineSet("one")})
	w.ok()
	gone := map[string]string{}
	for _, file := range w.repo.Files("main") {
		if strings.HasPrefix(file, "clusters/generated/apps/app/") {
			gone[file] = ""
		}
	}
	commit := w.repo.Commit("main", "No app for now", gone)
	w.problem(w.once(), "apps/app", commit[:12])
	w.lacks(topList, "apps/app")
	w.contains(topList, "apps/one")
	w.builds()
	w.problem(w.unchanged(w.once), "apps/app", commit[:12])
	if message := w.repo.Git("log", "-1", "--format=%B"); !strings.Contains(message, "ResourceSet: apps/app\n") {
		t.Error(message)
	}
}

// A ResourceSet that a person takes off the list of the target path stays off it.
func TestRule07_UnlistedResourceSet(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	w := newWorld(t)
	w.define(map[string]string{"one.yaml": inlineSet("one")})
	w.ok()
	w.unchanged(w.ok)
	commit := w.repo.Commit("main", "Do not apply app", map[string]string{topList: strings.Replace(w.repo.Read("main", topList), "- \"apps/app\"\n", "- ../own\n", 1), "clusters/own/kustomization.yaml": "resources: []\n"})
	for range 3 {
		report := w.unchanged(w.once)
		if len(report.Problems) != 1 {
			t.Fatal(report.Err())
		}
		w.problem(report, "apps/app", "not listed in "+topList, commit[:12], "renderer release apps/app kustomization.yaml")
		w.warning(report, topList, "../own")
	}
	w.define(map[string]string{"two.yaml": inlineSet("two")})
	w.problem(w.once(), "apps/app", commit[:12]) // our own change of the list is not taken for theirs
	w.contains(topList, "apps/two")
	w.contains(topList, "../own")
	w.lacks(topList, "apps/app")
	w.cfg.Drift = config.DriftRestore
	w.ok()
	w.contains(topList, "apps/app")
	w.contains(topList, "../own")
	w.unchanged(w.ok)
}

// To list one of ours again, by a release or by drift: restore, takes nothing away that
// people added to the list.
func TestRule07_RelistingKeepsWhatIsTheirs(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	for _, again := range map[string]func(*world){
		"the list": func(w *world) { w.release("kustomization.yaml") },
		"all":      func(w *world) { w.release() },
		"drift":    func(w *world) { w.cfg.Drift = config.DriftRestore },
	} {
		w := newWorld(t)
		w.ok()
		list := strings.Replace(w.repo.Read("main", appList), "- \"tenants-blue/apps_app-blue__ConfigMap.yaml\"\n", "", 1)
		theirs := "- \"own.yaml\"\n# why\nimages:\n- name: x\n  newTag: \"2\"\n"
		w.repo.Commit("main", "Our own", map[string]string{
			appList: list + theirs, "clusters/generated/apps/app/own.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\n",
		})
		w.problem(w.unchanged(w.once), "tenants-blue/apps_app-blue__ConfigMap.yaml not listed")
		again(w)
		w.warning(w.ok(), appList, "own.yaml", "images")
		w.contains(appList, "tenants-blue")
		w.contains(appList, "- \"own.yaml\"\n")
		w.contains(appList, "# why\nimages:\n- name: x\n  newTag: \"2\"\n")
		w.builds()
		w.unchanged(w.ok)
	}
}
