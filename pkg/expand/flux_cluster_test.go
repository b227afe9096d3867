// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// A cluster does with a ResourceSet's folder what kustomize-controller v1.9.4 does,
// as far as it matters to who lives: it builds a folder at some revision, applies the
// objects with its owner's labels, keeps an inventory, and prunes what is in the old
// inventory and not in the new one, unless the live object's labels name somebody
// else or it says "prune: disabled". These three are separate steps, and any number
// of other Kustomizations' steps happen between them. Objects with "ssa: Ignore" are
// not applied and stay in the inventory. A deleted Kustomization prunes all of its
// inventory, unless its deletionPolicy is Orphan.
//
// The Kustomization "root" applies the folder itself; the others are objects in it.
type cluster struct {
	t       *testing.T
	commits []map[string]string // the folder at every revision
	wanted  map[string]int      // since which revision an object is wanted without a break
	objects map[string]*liveObject
	actors  map[string]*actor
	lastUID int
	parsed  map[string][]any // documents, by content
}

type liveObject struct {
	owner     string
	protected bool
	uid       int
	seen      int // the newest revision at which somebody applied it
}

type actor struct {
	name      string
	path      string // of the folder below the ResourceSet's
	orphan    bool   // deletionPolicy
	inventory map[string]bool
	revision  int // the last one that it has looked at
	deleted   int // revision at which it was deleted; -1 while it is not
	failing   bool
	stage     int // of the reconciliation under way
	built     []clusterObject
	stale     []string
}

type clusterObject struct {
	id                string
	ignored, unpruned bool
	kustomization     map[string]any // spec
	name              string
}

const clusterRoot = "gen/apps/app"

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, parsed: map[string][]any{}, wanted: map[string]int{}, objects: map[string]*liveObject{}, actors: map[string]*actor{}}
	c.actors["root"] = &actor{name: "root", inventory: map[string]bool{}, revision: -1, deleted: -1}
	return c
}

// commit makes the folder, as it is now, the newest revision.
func (c *cluster) commit(files map[string]string) {
	c.commits = append(c.commits, maps.Clone(files))
	now := map[string]bool{}
	for file := range files {
		if isManifestName(path.Base(file)) && path.Dir(file) != fluxDir {
			for _, o := range c.read(files, file) {
				now[o.id] = true
			}
		}
	}
	for id := range now {
		if _, known := c.wanted[id]; !known {
			c.wanted[id] = len(c.commits) - 1
		}
	}
	maps.DeleteFunc(c.wanted, func(id string, _ int) bool { return !now[id] })
}

// read are the objects in a file.
func (c *cluster) read(files map[string]string, file string) []clusterObject {
	var objects []clusterObject
	for _, doc := range c.parse(files[file]) {
		content := doc.(map[string]any)
		metadata := content["metadata"].(map[string]any)
		o := clusterObject{id: stubsOf(content)[0], name: metadata["name"].(string)}
		annotations, _ := metadata["annotations"].(map[string]any)
		o.ignored = annotations[annotationFluxSSA] == "Ignore"
		o.unpruned = annotations[annotationFluxPrune] == "disabled"
		if content["kind"] == fluxKind {
			o.kustomization = content["spec"].(map[string]any)
		}
		objects = append(objects, o)
	}
	return objects
}

func (c *cluster) parse(text string) []any {
	if docs, known := c.parsed[text]; known {
		return docs
	}
	docs, err := decodeDocuments([]byte(text))
	if err != nil {
		c.t.Fatalf("%v\n%s", err, text)
	}
	c.parsed[text] = docs
	return docs
}

// build is what a folder gives; false when it is not there.
func (c *cluster) build(files map[string]string, folder string) ([]clusterObject, bool) {
	text, ok := files[path.Join(folder, kustomizationFile)]
	if !ok {
		return nil, false
	}
	list := c.parse(text)[0].(map[string]any)
	var objects []clusterObject
	for _, entry := range list["resources"].([]any) {
		at := path.Join(folder, entry.(string))
		if _, isFile := files[at]; isFile {
			objects = append(objects, c.read(files, at)...)
			continue
		}
		below, ok := c.build(files, at)
		if !ok {
			c.t.Fatalf("%s lists %s, which is not there", folder, at)
		}
		objects = append(objects, below...)
	}
	seen := map[string]bool{}
	for i := range objects {
		if seen[objects[i].id] {
			c.t.Fatalf("%s lists %s twice", folder, objects[i].id)
		}
		seen[objects[i].id] = true
		objects[i].unpruned = objects[i].unpruned || list["patches"] != nil
	}
	return objects, true
}

// step does the next step of an actor, at a revision that it has not passed yet.
func (c *cluster) step(a *actor, revision int) {
	switch {
	case a.failing && a.deleted < 0:
	case a.stage == 0 && a.deleted >= 0:
		c.finalize(a)
	case a.stage == 0:
		a.revision = max(a.revision, revision)
		built, ok := c.build(c.commits[a.revision], a.path)
		if !ok {
			return // "kustomization path not found": an error, and nothing else happens
		}
		a.built, a.stage = built, 1
	case a.stage == 1:
		c.apply(a)
		a.stage = 2
	default:
		for _, id := range a.stale {
			c.delete(a, id, a.revision)
		}
		a.stage = 0
	}
}

func (c *cluster) apply(a *actor) {
	next := map[string]bool{}
	for _, o := range a.built {
		next[o.id] = true
		live := c.objects[o.id]
		if o.ignored {
			continue
		}
		if live == nil {
			c.lastUID++
			live = &liveObject{uid: c.lastUID}
			c.objects[o.id] = live
		}
		live.owner, live.protected, live.seen = a.name, o.unpruned, max(live.seen, a.revision)
		if o.kustomization != nil {
			c.configure(o)
		}
	}
	a.stale = nil
	for _, id := range slices.Sorted(maps.Keys(a.inventory)) {
		if !next[id] {
			a.stale = append(a.stale, id)
		}
	}
	a.inventory = next
}

// configure gives a Kustomization its spec.
func (c *cluster) configure(o clusterObject) {
	a := c.actors[o.name]
	if a == nil {
		a = &actor{name: o.name, inventory: map[string]bool{}, revision: -1, deleted: -1}
		c.actors[o.name] = a
	}
	a.path = strings.TrimPrefix(o.kustomization["path"].(string), "./"+clusterRoot+"/")
	a.orphan = o.kustomization["deletionPolicy"] == "Orphan"
	if o.kustomization["prune"] != true {
		c.t.Errorf("%s does not prune", o.name)
	}
}

// delete deletes an object if it is the actor's own.
func (c *cluster) delete(a *actor, id string, revision int) {
	live := c.objects[id]
	if live == nil || live.owner != a.name || live.protected {
		return
	}
	// What was unwanted for a while may go for that, however late.
	if since, wanted := c.wanted[id]; wanted && live.seen >= since {
		c.t.Errorf("%s, at revision %d, deletes %s, which is wanted since revision %d", a.name, revision, id, since)
	}
	if strings.HasPrefix(id, fluxAPIVersion+" ") {
		if k := c.actors[path.Base(id[strings.LastIndex(id, " "):])]; k != nil && k.deleted < 0 {
			k.deleted = revision
		}
		return // its finalizer comes first
	}
	delete(c.objects, id)
}

func (c *cluster) finalize(a *actor) {
	if !a.orphan {
		for _, id := range slices.Sorted(maps.Keys(a.inventory)) {
			c.delete(a, id, a.deleted)
		}
	}
	delete(c.actors, a.name)
	delete(c.objects, fluxAPIVersion+" "+fluxKind+" apps/"+a.name)
}

// settle has everybody reconcile the newest revision, several times.
func (c *cluster) settle() {
	for range 4 {
		for _, name := range slices.Sorted(maps.Keys(c.actors)) {
			a := c.actors[name]
			for n := 0; a != nil && (n < 3 || a.stage != 0 && !a.failing); n++ {
				if c.actors[name] != a {
					break
				}
				c.step(a, len(c.commits)-1)
			}
		}
	}
}

// live are the objects in the cluster with their owners, without the Kustomizations.
func (c *cluster) live() map[string]string {
	owners := map[string]string{}
	for id, o := range c.objects {
		if !strings.HasPrefix(id, fluxAPIVersion+" ") {
			owners[id] = o.owner
			if o.protected {
				owners[id] += " protected"
			}
		}
	}
	return owners
}

func (c *cluster) String() string { return fmt.Sprint(c.live()) }
