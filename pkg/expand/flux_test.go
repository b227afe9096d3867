// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/pkg/api"
)

// A fluxFolder is a folder that is handed to Flux, with a clock and a cluster.
type fluxFolder struct {
	*folder
	c   *cluster
	on  bool
	now int // minutes
}

const fluxHandover = 10

func newFluxFolder(t *testing.T) *fluxFolder {
	return &fluxFolder{folder: newFolder(t), c: newCluster(t), on: true}
}

func (f *fluxFolder) params() *FluxParams {
	over := func(since string) bool {
		at, err := strconv.Atoi(since)
		return err == nil && f.now-at >= fluxHandover
	}
	p := &FluxParams{
		Interval: "10m0s", TargetPath: "gen", Now: strconv.Itoa(f.now), Over: over, FadedOver: over,
		Committed: func(file string) ([]byte, error) { return []byte(f.files[file]), nil },
	}
	if f.on {
		p.Source = &FluxSource{Kind: "GitRepository", Name: "flux-system", Namespace: "flux-system"}
	}
	return p
}

// pass lays out, commits, and lets the cluster do all there is to do.
func (f *fluxFolder) pass(p LayoutParams) *Output {
	f.t.Helper()
	p.Flux = f.params()
	out := f.apply(p)
	if out.Changed() {
		f.c.commit(f.files)
	}
	f.c.settle()
	return out
}

// owners are the live objects' owners, shortened.
func (f *fluxFolder) owners() string {
	var texts []string
	for id, owner := range f.c.live() {
		texts = append(texts, id[strings.LastIndex(id, "/")+1:]+"="+owner)
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

func stepped(step string, object Object) Object {
	object.Step = step
	return object
}

func steps(names ...string) []api.Step {
	var list []api.Step
	for _, name := range names {
		list = append(list, api.Step{Name: name})
	}
	return list
}

// A new ResourceSet gets its Kustomization at once; the objects never pass through
// the Kustomization of the target path.
func TestFluxKustomizationOfANewResourceSet(t *testing.T) {
	f := newFluxFolder(t)
	f.rs.Annotations = map[string]string{api.AnnotationReconcileEvery: "30m", api.AnnotationReconcileTimeout: "90s"}
	f.rs.Spec.Wait, f.rs.Spec.ServiceAccountName = true, "deployer"
	f.pass(LayoutParams{Sets: prs("1"), Rendering: rendering(configMap("a", "x", 0))})
	equal(t, "files", []string{
		"_flux/apps_resourceset-app_kustomize.toolkit.fluxcd.io_Kustomization.yaml",
		"_flux/resourceset-app/kustomization.yaml", "prs-1/apps_a__ConfigMap.yaml",
	}, f.names())
	equal(t, "object", `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  labels:
    resourceset.fluxcd.controlplane.io/name: app
    resourceset.fluxcd.controlplane.io/namespace: apps
  name: resourceset-app
  namespace: apps
spec:
  interval: 30m0s
  path: ./gen/apps/app/_flux/resourceset-app
  prune: true
  serviceAccountName: deployer
  sourceRef:
    kind: GitRepository
    name: flux-system
    namespace: flux-system
  timeout: 1m30s
  wait: true
`, f.content("Kustomization.yaml"))
	equal(t, "owners", "a=resourceset-app", f.owners())
	equal(t, "built", []string{"Kustomization apps/resourceset-app"}, build(t, f.files))
	equal(t, "part", []string{"ConfigMap apps/a"}, buildAt(t, f.files, "_flux/resourceset-app"))

	// The last set goes: the list stays, empty, so that Flux prunes (FR-50).
	f.pass(LayoutParams{Rendering: rendering()})
	equal(t, "owners", "", f.owners())
	if list := f.content("resourceset-app/kustomization.yaml"); !strings.Contains(list, "resources: []\n") {
		t.Error(list)
	}
}

// One Kustomization a step, each after the one before, with its own timeout.
func TestFluxSteps(t *testing.T) {
	f := newFluxFolder(t)
	f.rs.Spec.Steps = steps("config", "Migrate DB", "app")
	f.rs.Spec.Steps[1].Timeout = 10 * time.Minute
	f.pass(LayoutParams{Sets: prs("1"), Rendering: rendering(
		stepped("config", configMap("a", "x", 0)), stepped("Migrate DB", configMap("b", "x", 0)), stepped("app", configMap("c", "x", 0)))})
	parts := f.lock.Flux.Parts
	if len(parts) != 3 || parts[1].Step != "Migrate DB" || !strings.HasPrefix(parts[1].Name, "resourceset-app-migrate-db-") {
		t.Fatalf("parts: %+v", parts)
	}
	equal(t, "owners", fmt.Sprintf("a=%s b=%s c=%s", parts[0].Name, parts[1].Name, parts[2].Name), f.owners())
	object := f.content("apps_" + parts[1].Name + "_kustomize.toolkit.fluxcd.io_Kustomization.yaml")
	for _, want := range []string{"dependsOn:\n  - name: " + parts[0].Name + "\n", "timeout: 10m0s", "wait: true"} {
		if !strings.Contains(object, want) {
			t.Errorf("no %q in\n%s", want, object)
		}
	}
	equal(t, "last", []string{parts[2].Name}, f.lock.Flux.Last())
}

// A large ResourceSet has several parts; an input set keeps its part for life, and a
// new one touches one part only.
func TestFluxPartsKeepTheirSets(t *testing.T) {
	f := newFluxFolder(t)
	f.fast = true
	make := func(from, to int) LayoutParams {
		var ids []string
		p := LayoutParams{Read: readNothing, Rendering: &Rendering{}}
		for n := from; n < to; n++ {
			for i := range 3 {
				p.Rendering.Objects = append(p.Rendering.Objects, configMap(fmt.Sprintf("o%d-%d", n, i), "x", len(ids)))
			}
			ids = append(ids, strconv.Itoa(n))
		}
		p.Sets = prs(ids...)
		return p
	}
	f.pass(make(0, 400)) // 1,200 objects
	equal(t, "parts", 3, len(f.lock.Flux.Parts))
	for _, part := range f.lock.Flux.Parts {
		if n := strings.Count(f.files["_flux/"+part.Name+"/kustomization.yaml"], "\n- "); n > MaxPartObjects || n == 0 {
			t.Errorf("part %d has %d objects", part.Number, n)
		}
	}
	before := map[string]int{}
	for _, set := range f.lock.Sets {
		before[set.Name] = set.Part
	}
	out := f.pass(make(0, 401))
	equal(t, "written", 1+1+3, len(out.Write)) // one list, the lock, three objects
	f.pass(make(100, 401))                     // most of the first part goes: nothing moves into the gap
	f.pass(make(100, 450))
	for _, set := range f.lock.Sets {
		if old, ok := before[set.Name]; ok && max(set.Part, 1) != max(old, 1) {
			t.Errorf("set %s moved from part %d to %d", set.Name, old, set.Part)
		}
	}
	if len(f.lock.Flux.Retired) > 0 {
		t.Errorf("retired %+v", f.lock.Flux.Retired)
	}
}

// Rule 15: turning target.flux on protects the objects first, turning it off leaves
// them to the Kustomization of the target path; nothing is deleted or made anew.
func TestRule15_TurningFluxOnAndOff(t *testing.T) {
	f := newFluxFolder(t)
	f.on = false
	p := LayoutParams{Sets: prs("1", "2"), Rendering: rendering(configMap("a", "x", 0), configMap("b", "x", 1))}
	f.pass(p)
	equal(t, "owners", "a=root b=root", f.owners())
	f.on = true
	f.pass(p)
	equal(t, "owners", "a=root protected b=root protected", f.owners())
	f.now += fluxHandover / 2
	if out := f.pass(p); out.Changed() {
		t.Error("changed before the time")
	}
	// A set that goes meanwhile stays until the handover is over.
	f.pass(LayoutParams{Sets: prs("1"), Rendering: rendering(configMap("a", "y", 0))})
	equal(t, "owners", "a=root protected b=root protected", f.owners())
	f.now += fluxHandover / 2
	f.pass(LayoutParams{Sets: prs("1"), Rendering: rendering(configMap("a", "y", 0))})
	equal(t, "owners", "a=resourceset-app b=resourceset-app", f.owners())
	f.pass(LayoutParams{Sets: prs("1"), Rendering: rendering(configMap("a", "y", 0))})
	equal(t, "owners", "a=resourceset-app", f.owners())

	f.on = false
	f.pass(LayoutParams{Sets: prs("1"), Rendering: rendering(configMap("a", "y", 0))})
	equal(t, "owners", "a=root", f.owners())
	f.now += fluxHandover
	f.pass(LayoutParams{Sets: prs("1"), Rendering: rendering(configMap("a", "y", 0))})
	equal(t, "owners", "a=root", f.owners())
	equal(t, "files", []string{"prs-1/apps_a__ConfigMap.yaml"}, f.names())
	if len(f.c.actors) != 1 {
		t.Errorf("Kustomizations are left: %v", f.c.actors)
	}
}

// Rule 15: steps come, go and are renamed.
func TestRule15_StepsChange(t *testing.T) {
	f := newFluxFolder(t)
	f.pass(LayoutParams{Sets: prs("1"), Rendering: rendering(configMap("a", "x", 0), configMap("b", "x", 0), configMap("gone", "x", 0))})
	for _, change := range [][]string{{"one", "two"}, {"two"}, {"renamed"}, {}} {
		f.rs.Spec.Steps = steps(change...)
		first, last := "", ""
		if len(change) > 0 {
			first, last = change[0], change[len(change)-1]
		}
		f.now++
		f.pass(LayoutParams{Sets: prs("1"), Rendering: rendering(stepped(first, configMap("a", "x", 0)), stepped(last, configMap("b", "x", 0)))})
		owner := func(step string) string {
			for _, part := range f.lock.Flux.Parts {
				if part.Step == step {
					return part.Name
				}
			}
			return ""
		}
		equal(t, fmt.Sprint(change), "a="+owner(first)+" b="+owner(last), f.owners())
	}
	f.now += fluxHandover
	f.pass(LayoutParams{Sets: prs("1"), Rendering: rendering(configMap("a", "x", 0), configMap("b", "x", 0))})
	equal(t, "Kustomizations", 2, len(f.c.actors))
	equal(t, "retired", 0, len(f.lock.Flux.Retired))
}

// Rule 15: a Kustomization that takes objects over may fail for as long as it likes.
func TestRule15_SuccessorThatNeverApplies(t *testing.T) {
	f := newFluxFolder(t)
	p := LayoutParams{Sets: prs("1"), Rendering: rendering(configMap("a", "x", 0))}
	f.pass(p)
	f.rs.Spec.Steps = steps("one")
	p.Rendering = rendering(stepped("one", configMap("a", "x", 0)))
	p.Flux = f.params()
	f.apply(p)
	f.c.commit(f.files)
	f.c.actors[f.lock.Flux.Parts[0].Name] = &actor{name: f.lock.Flux.Parts[0].Name, inventory: map[string]bool{}, revision: -1, deleted: -1, failing: true}
	f.c.settle()
	equal(t, "owners", "a=resourceset-app", f.owners())
	f.now += fluxHandover
	f.pass(p)
	equal(t, "owners", "a=resourceset-app", f.owners()) // nobody's, but alive
	if f.c.actors["resourceset-app"] != nil {
		t.Error("the old Kustomization is still there")
	}
	f.c.actors[f.lock.Flux.Parts[0].Name].failing = false
	f.c.settle()
	equal(t, "owners", "a="+f.lock.Flux.Parts[0].Name, f.owners())
}

// A retired Kustomization speaks of no object that is gone for good: Flux would wait for
// a Namespace, and fail.
func TestFluxRetiredForgetsWhatIsGone(t *testing.T) {
	f := newFluxFolder(t)
	f.pass(LayoutParams{Sets: prs("1"), Rendering: rendering(configMap("a", "x", 0), configMap("b", "x", 0))})
	f.rs.Spec.Steps = steps("one")
	one := func(names ...string) LayoutParams {
		var objects []Object
		for _, name := range names {
			objects = append(objects, stepped("one", configMap(name, "x", 0)))
		}
		return LayoutParams{Sets: prs("1"), Rendering: rendering(objects...)}
	}
	f.pass(one("a", "b"))
	equal(t, "retired", []string{"v1 ConfigMap apps/a", "v1 ConfigMap apps/b"}, f.lock.Flux.Retired[0].Objects)
	f.now++
	p := one("a")
	f.pass(p)
	equal(t, "retired", []string{"v1 ConfigMap apps/a"}, f.lock.Flux.Retired[0].Objects)
	equal(t, "owners", "a="+f.lock.Flux.Parts[0].Name, f.owners())
	f.pass(p)
	equal(t, "retired", []string{"v1 ConfigMap apps/a"}, f.lock.Flux.Retired[0].Objects)
}

// fluxScript turns the fuzz script of passes into one for Flux: besides all that can
// happen to sets and objects, Flux is switched, steps change and time goes by.
func fluxScript(t *testing.T, data []byte, patient bool) {
	f := newFluxFolder(t)
	f.fast = true
	s := &script{data: data}
	random := rand.New(rand.NewPCG(uint64(len(data)), uint64(s.next(256))))
	for range 8 {
		if len(s.data) == 0 {
			break
		}
		f.on = s.next(5) > 0
		f.rs.Spec.Steps = [][]api.Step{nil, nil, steps("one"), steps("one", "two"), steps("two", "one")}[s.next(5)]
		p := s.pass()
		p.Flux = f.params()
		for i := range p.Rendering.Objects {
			if n := len(f.rs.Spec.Steps); n > 0 {
				p.Rendering.Objects[i].Step = f.rs.Spec.Steps[s.next(n)].Name
			}
		}
		out := f.apply(p)
		if out.Changed() {
			f.c.commit(f.files)
		}
		if len(f.c.commits) == 0 {
			continue
		}
		for range s.next(40) { // anybody does anything, late or not
			names := slices.Sorted(maps.Keys(f.c.actors))
			f.c.step(f.c.actors[names[random.IntN(len(names))]], len(f.c.commits)-1-random.IntN(min(2, len(f.c.commits))))
		}
		if wait := s.next(4); patient || wait > 1 {
			f.c.settle()
			f.now += wait * fluxHandover / 2
		}
		if t.Failed() {
			t.Fatalf("revision %d: %s", len(f.c.commits)-1, f.c)
		}
	}
	if !patient || len(f.c.commits) == 0 {
		return
	}
	f.c.settle()
	live := f.c.live()
	for id := range f.c.wanted {
		if live[id] == "" {
			t.Errorf("%s is not there", id)
		}
		delete(live, id)
	}
	if len(live) > 0 {
		t.Errorf("left over: %v\n%+v", live, f.lock.Flux)
	}
}

// Rule 15, as a law: whatever happens to a ResourceSet, and in whatever order Flux
// gets to know of it, no object that stays wanted is ever deleted; and where Flux is
// given time, nothing is left over.
func FuzzRule15_NothingJumps(f *testing.F) {
	f.Add([]byte("\x04\x00\x04\x04\x04\x04\x0f\x00\x0f\x00\x01\x00\x02\x00\x04\x00\x10\x01"), true)
	f.Fuzz(fluxScript)
}

func TestRule15_NothingJumps(t *testing.T) {
	random := rand.NewChaCha8([32]byte{15})
	for n := range 60 {
		data := make([]byte, 150)
		if _, err := random.Read(data); err != nil {
			t.Fatal(err)
		}
		fluxScript(t, data, n%2 == 0)
		if t.Failed() {
			t.Fatalf("row %d: %q", n, data)
		}
	}
}
