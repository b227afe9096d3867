// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/pkg/expand"
)

// flux turns target.flux on. A pass moves the clock by an hour, so a handover takes
// two passes.
func (w *world) flux() {
	w.cfg.Target.Flux = &config.Flux{
		SourceRef: config.SourceRef{Kind: "GitRepository", Name: "fleet", Namespace: "flux-system"},
		Interval:  5 * time.Minute, Handover: 90 * time.Minute,
	}
	w.restart()
}

func (w *world) read(file string) string { return w.repo.Read("main", "clusters/generated/"+file) }

// list is the resources of a kustomization.yaml.
func (w *world) list(dir string) []string {
	w.t.Helper()
	var entries []string
	for line := range strings.SplitSeq(w.read(path.Join(dir, "kustomization.yaml")), "\n") {
		if entry, ok := strings.CutPrefix(line, "- "); ok && strings.HasPrefix(entry, `"`) {
			entries = append(entries, strings.Trim(entry, `"`))
		}
	}
	return entries
}

func (w *world) lists(dir string, want ...string) {
	w.t.Helper()
	if got := w.list(dir); !slices.Equal(got, want) {
		w.t.Fatalf("%s lists %q, want %q", dir, got, want)
	}
}

func (w *world) lock(dir string) *expand.Lock {
	w.t.Helper()
	lock, err := expand.ParseLock([]byte(w.read(dir + "/inputs.lock")))
	if err != nil {
		w.t.Fatal(err)
	}
	return lock
}

const (
	appKustomization = "_flux/apps_resourceset-app_kustomize.toolkit.fluxcd.io_Kustomization.yaml"
	redManifest      = "tenants-red/apps_app-red__ConfigMap.yaml"
	blueManifest     = "tenants-blue/apps_app-blue__ConfigMap.yaml"
)

// A new ResourceSet is handed to Flux at once; one that goes leaves empty lists for
// Flux to prune by, and its folder goes only when that is done.
func TestFluxFromFirstToLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flux()
	w.ok()
	w.lists(".", "apps/app")
	w.lists("apps/app", appKustomization)
	w.lists("apps/app/_flux/resourceset-app", "../../"+blueManifest, "../../"+redManifest)
	object := w.read("apps/app/" + appKustomization)
	for _, want := range []string{"path: ./clusters/generated/apps/app/_flux/resourceset-app\n", "prune: true", "interval: 5m0s", "name: fleet"} {
		if !strings.Contains(object, want) {
			t.Errorf("no %q in\n%s", want, object)
		}
	}
	w.unchanged(w.ok)

	w.define(map[string]string{"app.yaml": ""})
	w.ok()
	w.lists(".", "apps/app")
	w.lists("apps/app", appKustomization)
	w.lists("apps/app/_flux/resourceset-app")
	if subject := w.repo.Git("log", "-1", "--format=%s", "main"); subject != "apps/app: remove ResourceSet" {
		t.Errorf("subject: %s", subject)
	}
	w.unchanged(w.ok)
	w.ok()
	w.lists(".")
	if files := w.generated(); len(files) > 0 {
		t.Errorf("left: %v", files)
	}
	if subject := w.repo.Git("log", "-1", "--format=%s", "main"); subject != "apps/app: remove the empty folder" {
		t.Errorf("subject: %s", subject)
	}
	w.unchanged(w.ok)
}

// Rule 15: target.flux goes on and off again, across restarts; each time what had the
// objects keeps them until the other has them.
func TestRule15_FluxIsSwitched(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	w := newWorld(t)
	w.ok()
	w.flux()
	w.ok()
	w.lists("apps/app", "_flux/protect")
	if list := w.read("apps/app/_flux/protect/kustomization.yaml"); !strings.Contains(list, "kustomize.toolkit.fluxcd.io/prune: disabled") {
		t.Error(list)
	}
	w.forget() // the time is in Git
	w.tenants("red=2.0")
	w.ok() // blue stays until the handover is over; red goes on
	w.contains(redFile, "2.0")
	w.lists("apps/app/_flux/protect", "../../"+blueManifest, "../../"+redManifest)
	w.ok()
	w.lists("apps/app", appKustomization)
	w.lists("apps/app/_flux/resourceset-app", "../../"+blueManifest, "../../"+redManifest)
	w.ok()
	w.lists("apps/app/_flux/resourceset-app", "../../"+redManifest)

	w.cfg.Target.Flux = nil
	w.forget()
	w.ok()
	w.lists("apps/app", appKustomization, redManifest)
	w.lists("apps/app/_flux/resourceset-app", "objects.yaml")
	if object := w.read("apps/app/" + appKustomization); !strings.Contains(object, "deletionPolicy: Orphan") {
		t.Error(object)
	}
	w.clock.Advance(20 * time.Hour)
	w.unchanged(w.ok)
	w.clock.Advance(4 * time.Hour)
	w.ok()
	w.lists("apps/app", redManifest)
	if w.lock("apps/app").Flux != nil {
		t.Error("the record still speaks of Flux")
	}
	w.unchanged(w.ok)
}

// Rule 15: a ResourceSet is renamed. The old one's Kustomization keeps its hands off
// the objects that the new one makes, and prunes the others.
func TestRule15_ResourceSetIsRenamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flux()
	w.ok()
	renamed := strings.Replace(appSet, "name: app\n", "name: other\n", 1)
	w.tenants("red") // blue goes in the same pass
	w.define(map[string]string{"app.yaml": renamed})
	w.ok()
	w.lists("apps/other/_flux/resourceset-other", "../../"+redManifest)
	w.lists("apps/app/_flux/resourceset-app", "objects.yaml")
	stubs := w.read("apps/app/_flux/resourceset-app/objects.yaml")
	if !strings.Contains(stubs, "name: app-red") || strings.Contains(stubs, "app-blue") || !strings.Contains(stubs, "kustomize.toolkit.fluxcd.io/ssa: Ignore") {
		t.Error(stubs)
	}
	w.unchanged(w.ok)
	w.clock.Advance(36 * time.Hour)
	w.ok()
	w.lists(".", "apps/other")
	w.unchanged(w.ok)
}

// One object goes from one ResourceSet to another; both stay.
func TestRule15_ObjectChangesItsResourceSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flux()
	fixed := func(name string, maps ...string) string {
		text := "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: " + name + ", namespace: apps}\nspec:\n  resources:\n"
		for _, m := range maps {
			text += "    - {apiVersion: v1, kind: ConfigMap, metadata: {name: " + m + ", namespace: apps}}\n"
		}
		return text
	}
	w.define(map[string]string{"app.yaml": fixed("one", "a", "b"), "two.yaml": fixed("two", "c")})
	w.ok()
	w.define(map[string]string{"app.yaml": fixed("one", "a"), "two.yaml": fixed("two", "b", "c")})
	w.ok()
	parts := w.lock("apps/one").Flux
	if len(parts.Retired) != 1 || !slices.Equal(parts.Retired[0].Objects, []string{"v1 ConfigMap apps/a", "v1 ConfigMap apps/b"}) {
		t.Fatalf("retired: %+v", parts.Retired)
	}
	w.lists("apps/one/_flux/"+parts.Parts[0].Name, "../../shared/apps_a__ConfigMap.yaml")
	w.lists("apps/two/_flux/resourceset-two", "../../shared/apps_b__ConfigMap.yaml", "../../shared/apps_c__ConfigMap.yaml")
	w.unchanged(w.ok)
}

func dependent(name, dependsOn string) string {
	return "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: " + name + ", namespace: apps}\nspec:\n  dependsOn:\n    - " + dependsOn +
		"\n  resources:\n    - {apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: apps}}\n"
}

// A ResourceSet waits for the Kustomizations of another one, whichever is read first,
// and a gate waits for any other object.
func TestFluxDependsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flux()
	const onApp = "{apiVersion: fluxcd.controlplane.io/v1, kind: ResourceSet, name: app, "
	w.define(map[string]string{
		"a.yaml": dependent("a", onApp+"ready: true}"),
		"b.yaml": dependent("b", onApp+`namespace: apps}`),
		"c.yaml": dependent("c", onApp+`ready: true, readyExpr: "status.conditions.exists(c, c.type == 'Ready')"}`),
		"d.yaml": dependent("d", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: things.example.com, ready: true, readyExpr: "status.x == 1"}`),
		"e.yaml": dependent("e", `{apiVersion: v1, kind: Secret, name: key, namespace: vault}`),
	})
	w.ok()
	for name, want := range map[string]string{
		"a": "dependsOn:\n  - name: resourceset-app\n  interval",
		"b": "dependsOn:\n  - name: resourceset-app\n    readyExpr: \"true\"\n",
		"c": "readyExpr: dep.status.conditions.exists(c, c.type == 'Ready')\n",
		"d": "dependsOn:\n  - name: resourceset-d-after-",
		"e": "dependsOn:\n  - name: resourceset-e-after-",
	} {
		object := w.read("apps/" + name + "/_flux/apps_resourceset-" + name + "_kustomize.toolkit.fluxcd.io_Kustomization.yaml")
		if !strings.Contains(object, want) {
			t.Errorf("%s: no %q in\n%s", name, want, object)
		}
	}
	gate := func(name string) string {
		for _, entry := range w.list("apps/" + name) {
			if strings.Contains(entry, "-after-") {
				return w.read("apps/" + name + "/" + entry)
			}
		}
		t.Fatalf("%s has no gate: %v", name, w.list("apps/"+name))
		return ""
	}
	for name, want := range map[string]string{
		"d": "  healthCheckExprs:\n  - apiVersion: apiextensions.k8s.io/v1\n    current: status.x == 1\n    kind: CustomResourceDefinition\n  healthChecks:\n  - apiVersion: apiextensions.k8s.io/v1\n    kind: CustomResourceDefinition\n    name: things.example.com\n",
		"e": "    current: \"true\"\n",
	} {
		if object := gate(name); !strings.Contains(object, want) || !strings.Contains(object, "path: ./clusters/generated/apps/"+name+"/_flux/gate\n") {
			t.Errorf("%s: no %q in\n%s", name, want, object)
		}
	}
	// While a gate waits it holds a worker of kustomize-controller, so it never does for long.
	for _, want := range []string{"  timeout: 30s\n", "  retryInterval: 1m0s\n"} {
		if object := gate("e"); !strings.Contains(object, want) {
			t.Errorf("no %q in\n%s", want, object)
		}
	}
	w.lists("apps/e/_flux/gate")
}

// What cannot be waited for is reported, and changes nothing in Git.
func TestFluxDependsOnNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flux()
	const on = "{apiVersion: fluxcd.controlplane.io/v1, kind: ResourceSet, name: "
	w.define(map[string]string{"a.yaml": dependent("a", on+"gone}"), "b.yaml": dependent("b", on+"c}"), "c.yaml": dependent("c", on+"b}")})
	report := w.once()
	w.problem(report, "clusters/a.yaml:5", "ResourceSet apps/a", "apps/gone, which is not defined")
	w.problem(report, "depends on it in turn")
	w.lists(".", "apps/app")
}

// The name of the Kustomization is taken by an object of a template.
func TestFluxNameIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flux()
	w.define(map[string]string{"app.yaml": strings.Replace(strings.Replace(appSet, "apiVersion: v1\n      kind: ConfigMap", "apiVersion: kustomize.toolkit.fluxcd.io/v1\n      kind: Kustomization", 1),
		"name: app-<<", "name: resourceset-<<", 1)})
	w.tenants("app", "blue")
	w.problem(w.once(), "resourceset-app", "give it another name")
	w.unchanged(w.once)
}

func TestCELOf(t *testing.T) {
	for expr, want := range map[string]string{
		"status.ready":                           "dep.status.ready",
		"metadata.generation==status.observed":   "dep.metadata.generation==dep.status.observed",
		`status.text == "status.x" && kind=='a'`: `dep.status.text == "status.x" && dep.kind=='a'`,
		"status.items.all(status, status.ok)":    "status.items.all(status, status.ok)",
		"has(status.spec) && x.status . data":    "has(dep.status.spec) && x.status . data",
		`r"\" + status`:                          `r"\" + dep.status`,
		`'''it's status''' + spec.a[1u]`:         `'''it's status''' + dep.spec.a[1u]`,
		"statuses + my_status + 1e3":             "statuses + my_status + 1e3",
		`{"a": status}["a"] ? data : data.x`:     `{"a": dep.status}["a"] ? dep.data : dep.data.x`,
	} {
		if got, err := celOf("dep", expr); err != nil || got != want {
			t.Errorf("%s:\n got %s (%v)\nwant %s", expr, got, err, want)
		}
	}
	if _, err := celOf("dep", `status == "open`); err == nil {
		t.Error("no error for an open text")
	}
}

// What Flux could not build stays out of Git, with the reason; other sets go on.
func TestPreflightHoldsOneSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flux()
	// Flux refuses an object without a namespace, and with it all of its part.
	text := `apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: app, namespace: apps, annotations: {renderer/allow-structure: "true"}}
spec:
  inputsFrom: [{name: tenants}]
  resourcesTemplate: |
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: app-<< inputs.tenant >>
      <<- if ne inputs.version "bare" >>
      namespace: apps
      <<- end >>
    data: {version: << inputs.version | quote >>}
`
	w.define(map[string]string{"app.yaml": text})
	w.tenants("red=bare", "blue")
	w.problem(w.once(), "tenants-red", "names no namespace", "metadata.namespace")
	w.has("blue")
	w.tenants("red", "blue")
	w.ok()
	w.tenants("red=bare", "blue=2.0")
	w.problem(w.once(), "tenants-red", "names no namespace")
	w.contains(redFile, "1.0")
	w.contains(strings.Replace(redFile, "red", "blue", 2), "2.0")
	w.unchanged(w.once)
	w.tenants("red=3.0", "blue=2.0")
	w.ok()
	w.contains(redFile, "3.0")
}

// Whoever edits a Kustomization of ours is heard like anybody who edits a manifest.
func TestRule07_FluxObjectEdited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flux()
	w.ok()
	file := "clusters/generated/apps/app/" + appKustomization
	w.repo.Commit("main", "Suspend it", map[string]string{file: w.repo.Read("main", file) + "\n  suspend: true\n"})
	edit := w.repo.Head("main")
	for _, cold := range []bool{false, true} {
		if cold {
			w.forget()
		}
		w.problem(w.unchanged(w.once), "_flux is held as Somebody Else", edit[:12], "renderer release apps/app _flux")
	}
	// Input sets go on, in the lists of Flux as well.
	w.tenants("red", "blue", "green=2.0")
	w.problem(w.once(), "_flux is held")
	w.has("red", "blue", "green")
	w.lists("apps/app/_flux/resourceset-app", "../../"+blueManifest, "../../tenants-green/apps_app-green__ConfigMap.yaml", "../../"+redManifest)
	w.contains(file, "suspend: true")
	w.release("_flux")
	w.ok()
	w.lacks(file, "suspend: true")
	w.unchanged(w.ok)
}

// A change of Kustomizations that somebody reverted is not written again, until it is
// another one.
func TestRule07_FluxChangeReverted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flux()
	w.ok()
	w.define(map[string]string{"app.yaml": strings.Replace(appSet, "spec:\n", "spec:\n  wait: true\n", 1)})
	w.ok()
	file := "clusters/generated/apps/app/" + appKustomization
	w.contains(file, "wait: true")
	commit := w.revert()
	for _, cold := range []bool{false, true} {
		if cold {
			w.forget()
		}
		w.problem(w.unchanged(w.once), "_flux is held as", commit[:12])
		w.lacks(file, "wait: true")
	}
	w.tenants("red", "blue", "green") // which does not bring it back
	w.problem(w.unchanged(w.once), "_flux is held as", commit[:12])
	w.define(map[string]string{"app.yaml": strings.Replace(appSet, "spec:\n", "spec:\n  wait: true\n  serviceAccountName: app\n", 1)})
	w.ok()
	w.contains(file, "wait: true")
	w.contains(file, "serviceAccountName: app")
}

func TestRule07_FluxObjectRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flux()
	w.cfg.Drift = config.DriftRestore
	w.restart()
	w.ok()
	file := "clusters/generated/apps/app/" + appKustomization
	w.repo.Commit("main", "Suspend it", map[string]string{file: w.repo.Read("main", file) + "\n  suspend: true\n"})
	w.ok()
	w.lacks(file, "suspend: true")
	if message := w.repo.Git("log", "-1", "--format=%B", "main"); !strings.Contains(message, "Trigger: drift") {
		t.Errorf("message:\n%s", message)
	}
	w.unchanged(w.ok)
}

// Steps that somebody brought back by a revert are not taken away again, nor are their
// Kustomizations changed, whatever input sets do meanwhile.
func TestRule07_FluxStepsReverted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flux()
	set := func(steps ...string) string {
		text := "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: app, namespace: apps}\nspec:\n  inputsFrom: [{name: tenants}]\n  steps:\n"
		for _, step := range steps {
			text += "    - name: " + step + "\n      timeout: 3m\n      resources:\n        - apiVersion: v1\n          kind: ConfigMap\n" +
				"          metadata: {name: " + step + "-<< inputs.tenant >>, namespace: apps}\n"
		}
		return text
	}
	w.define(map[string]string{"app.yaml": set("one", "two")})
	w.ok()
	w.define(map[string]string{"app.yaml": set("one")})
	w.ok()
	commit := w.revert()
	for _, cold := range []bool{false, true} {
		if cold {
			w.forget()
			w.tenants("red", "blue", "green")
		}
		w.problem(w.unchanged(w.once), "_flux is held as", commit[:12])
	}
	w.release()
	w.ok()
	w.has("red", "blue", "green")
}

// A folder that somebody deleted does not come back as Kustomizations without anything.
func TestRule07_FluxFolderDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flux()
	w.ok()
	gone := map[string]string{}
	for _, file := range w.repo.Files("main") {
		if strings.HasPrefix(file, "clusters/generated/apps/app/") {
			gone[file] = ""
		}
	}
	w.repo.Commit("main", "No app any more", gone)
	w.once()
	w.lists(".")
	for range 2 {
		w.problem(w.unchanged(w.once), "is held as Somebody Else")
		w.forget()
	}
	for _, file := range w.repo.Files("main") {
		if strings.HasPrefix(file, "clusters/generated/apps/app/") {
			t.Errorf("%s is there again", file)
		}
	}
}

// Of ResourceSets that wait for each other none gets into Git as such, whoever comes last.
func TestFluxDependsOnCircle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.flux()
	after := func(name, other string) string {
		return strings.Replace(inlineSet(name), "spec:\n", "spec:\n  dependsOn:\n    - {apiVersion: fluxcd.controlplane.io/v1, kind: ResourceSet, name: "+other+"}\n", 1)
	}
	w.define(map[string]string{"p.yaml": inlineSet("p"), "q.yaml": after("q", "p"), "r.yaml": after("r", "q")})
	w.ok()
	w.define(map[string]string{"p.yaml": after("p", "r")})
	report := w.unchanged(w.once)
	for _, name := range []string{"p", "q", "r"} {
		w.problem(report, "ResourceSet apps/"+name, "depends on it in turn")
	}
	w.define(map[string]string{"p.yaml": inlineSet("p")})
	w.unchanged(w.ok)
}
