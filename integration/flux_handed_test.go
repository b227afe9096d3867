// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"resourceset.example/renderer/integration/cluster"
)

const (
	kustomizeAPI = "kustomize.toolkit.fluxcd.io/v1"
	ownerName    = "kustomize.toolkit.fluxcd.io/name" // label: the Kustomization that applied an object last
)

// A handed is a fleet with one renderer whose ResourceSets get Kustomizations of their
// own. All of them are in one namespace, and their objects are ConfigMaps.
type handed struct {
	*fleet
	t         *testing.T
	w         *world
	setup     *setup
	sync      *cluster.Sync
	namespace string
	uids      map[string]types.UID // of the ConfigMaps that were there at the last look
	owner     map[string]string    // the Kustomization that applied each, for kept
}

// hand is a fleet with target.flux, that Flux does not follow yet.
func (f *fleet) hand(t *testing.T, name string) *handed {
	t.Helper()
	h := &handed{fleet: f, t: t, w: newWorld(t), namespace: name, uids: map[string]types.UID{}, owner: map[string]string{}}
	h.setup = h.w.renderer("renderer")
	h.sync = &cluster.Sync{Name: name, URL: h.setup.url, Branch: "main", Path: generated}
	h.setup.flux = h.flux("1s")
	h.setup.branch = "definitions" // so that a change of these is none to Flux
	must(t, f.CreateNamespace(t.Context(), name))
	return h
}

// flux is the value of target.flux, with the time for a handover. Flux looks at what is
// new as soon as it sees it, so the interval may be long.
func (h *handed) flux(handover string) string {
	return fmt.Sprintf("{sourceRef: {kind: GitRepository, name: %s, namespace: %s}, interval: 1m, handover: %s}", h.sync.Name, cluster.Namespace, handover)
}

// define commits a file of definitions for each name; empty text removes it.
func (h *handed) define(sets map[string]string) {
	h.t.Helper()
	files := map[string]string{}
	for name, text := range sets {
		files[definitions+"/"+name+".yaml"] = strings.ReplaceAll(text, "NAMESPACE", h.namespace)
	}
	h.w.repo.Commit(h.setup.branch, "Define "+strings.Join(slices.Sorted(maps.Keys(sets)), ", "), files)
}

// start renders for the first time and has Flux follow.
func (h *handed) start() {
	h.t.Helper()
	h.setup.once(0)
	h.follow(h.t, h.sync)
}

// pass renders what is defined, and waits until Flux has done everything about it.
func (h *handed) pass() {
	h.t.Helper()
	h.setup.once(0)
	h.settles()
}

// settles waits until every Kustomization has applied the newest commit.
func (h *handed) settles() {
	h.t.Helper()
	must(h.t, h.Reconcile(h.t.Context(), h.sync.Repository()))
	head := h.w.repo.Head("main")
	h.applied(h.t, h.sync, head)
	eventually(h.t, "all Kustomizations of "+h.namespace+" have applied "+head, func() bool {
		all, err := h.List(h.t.Context(), kustomizeAPI, "Kustomization", h.namespace)
		if err != nil {
			return false
		}
		for _, k := range all {
			if k.GetDeletionTimestamp() != nil || !cluster.HasApplied(k, head) {
				return false
			}
		}
		return true
	})
}

// lives checks that exactly these ConfigMaps are there, and that those that were there
// at the last look are the same objects. It returns them by name.
func (h *handed) lives(names ...string) map[string]kubeObject {
	h.t.Helper()
	all, err := h.List(h.t.Context(), "v1", "ConfigMap", h.namespace)
	must(h.t, err)
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, slices.Sorted(slices.Values(names))) {
		h.t.Fatalf("ConfigMaps %v, want %v", got, names)
	}
	uids := make(map[string]types.UID, len(all))
	for name, o := range all {
		uids[name] = o.GetUID()
		if before, known := h.uids[name]; known && before != o.GetUID() {
			h.t.Errorf("%s was deleted and made again", name)
		}
	}
	h.uids = uids
	return all
}

func (h *handed) ref(name string) cluster.Ref {
	return cluster.Ref{APIVersion: kustomizeAPI, Kind: "Kustomization", Namespace: h.namespace, Name: name}
}

// fails waits until a Kustomization is not ready for a reason, at the newest commit.
func (h *handed) fails(name, reason, message string) {
	h.t.Helper()
	head, last := h.w.repo.Head("main"), ""
	defer func() {
		if h.t.Failed() {
			h.t.Log(last)
		}
	}()
	eventually(h.t, fmt.Sprintf("Kustomization %s is not ready: %s, %s", name, reason, message), func() bool {
		k, err := h.Get(h.t.Context(), h.ref(name))
		if err != nil || k == nil {
			return false
		}
		status, why, what := cluster.ReadyWhy(k)
		last = status + " " + why + " " + what
		attempted := text(k, "status", "lastAttemptedRevision")
		return status == "False" && why == reason && strings.Contains(what, message) &&
			(reason == "DependencyNotReady" || strings.HasSuffix(attempted, head))
	})
}

// becomesReady waits until a Kustomization has applied the newest commit. It is told to
// try again, because what it failed for may be repaired by now.
func (h *handed) becomesReady(name string) {
	h.t.Helper()
	head, told := h.w.repo.Head("main"), false
	must(h.t, h.Reconcile(h.t.Context(), h.sync.Repository()))
	eventually(h.t, "Kustomization "+name+" is ready", func() bool {
		k, err := h.Get(h.t.Context(), h.ref(name))
		if err != nil || k == nil {
			return false
		}
		if !told {
			told = h.Reconcile(h.t.Context(), h.ref(name)) == nil
		}
		return cluster.HasApplied(k, head)
	})
}

// configMaps is the text of ConfigMaps of these names, as a list at that indentation.
func configMaps(indent, names string) string {
	text := ""
	for name := range strings.FieldsSeq(names) {
		text += indent + "- {apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: NAMESPACE}, data: {name: " + name + "}}\n"
	}
	return text
}

// fixed is a ResourceSet that makes ConfigMaps: "a b c", or in steps "one: a b", "two: c".
// Lines of its spec come first.
func fixed(name, spec string, steps ...string) string {
	text := "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: " + name + ", namespace: NAMESPACE}\nspec:\n" + spec
	if len(steps) == 1 && !strings.Contains(steps[0], ":") {
		return text + "  resources:\n" + configMaps("    ", steps[0])
	}
	text += "  steps:\n"
	for _, step := range steps {
		name, maps, _ := strings.Cut(step, ":")
		text += "    - name: " + name + "\n      resources:\n" + configMaps("        ", maps)
	}
	return text
}

// marked is a ResourceSet with annotations: the text of a flow mapping's content.
func marked(set, annotations string) string {
	return strings.Replace(set, "namespace: NAMESPACE}", "namespace: NAMESPACE, annotations: {"+annotations+"}}", 1)
}

// comes has renderer run until it has made a commit with that end of its subject. The
// wait until then is what target.flux.handover says.
func (h *handed) comes(subject string) {
	h.t.Helper()
	before := h.w.repo.Head("main")
	eventually(h.t, "a commit: "+subject, func() bool {
		h.setup.once(0)
		for line := range strings.Lines(h.w.repo.Git("log", "--format=%s", before+"..main")) {
			if strings.HasSuffix(strings.TrimSpace(line), subject) {
				return true
			}
		}
		return false
	})
}

// owned checks who applied the ConfigMaps last, and that they are those that they were.
// Kustomizations are named by the ResourceSet and the step: what follows in their names
// changes from one to the next.
func (h *handed) owned(want ...string) {
	h.t.Helper()
	var names []string
	for _, one := range want {
		name, _, _ := strings.Cut(one, "=")
		names = append(names, name)
	}
	all := h.lives(names...)
	for _, one := range want {
		name, owner, _ := strings.Cut(one, "=")
		o := all[name]
		if got := o.GetLabels()[ownerName]; got != owner && !strings.HasPrefix(got, "resourceset-"+owner+"-") && got != "resourceset-"+owner {
			h.t.Errorf("%s belongs to %s, want %s", name, got, owner)
		}
		if o.GetAnnotations()["kustomize.toolkit.fluxcd.io/prune"] != "" {
			h.t.Errorf("%s is still protected", name)
		}
	}
}
