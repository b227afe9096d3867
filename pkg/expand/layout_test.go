// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"resourceset.example/renderer/pkg/api"
)

// A folder is a ResourceSet's folder in Git, with what is needed to lay it out again.
type folder struct {
	t     *testing.T
	rs    *api.ResourceSet
	files map[string]string // path to content
	lock  *Lock
	fast  bool // leave out the kustomize build
}

func newFolder(t *testing.T) *folder {
	return &folder{t: t, rs: resourceSet("apps", "app"), files: map[string]string{}}
}

// apply lays out what p holds and commits it. The folder must build and agree with
// the lock afterwards, whatever was done.
func (f *folder) apply(p LayoutParams) *Output {
	f.t.Helper()
	p.ResourceSet, p.Previous = f.rs, f.lock
	out, err := Layout(p)
	if err != nil {
		f.t.Fatal(err)
	}
	for file, content := range out.Write {
		f.files[file] = string(content)
	}
	for _, file := range out.Delete {
		if _, ok := f.files[file]; !ok {
			f.t.Errorf("deletes %s, which is not there", file)
		}
		delete(f.files, file)
	}
	if data, ok := f.files[LockFile]; ok {
		lock, err := ParseLock([]byte(data))
		if err != nil {
			f.t.Fatalf("%v\n%s", err, data)
		}
		f.lock = lock
	}
	f.check(out)
	if p.entering() {
		return out // what was kept for the handover follows in the next pass
	}
	again := p
	again.Previous = f.lock
	if second, err := Layout(again); err != nil || second.Changed() {
		f.t.Errorf("a second pass changes %v and deletes %v (%v)", slices.Sorted(maps.Keys(second.Write)), second.Delete, err)
	}
	return out
}

// check compares files, lock and output, and builds with kustomize.
func (f *folder) check(out *Output) {
	f.t.Helper()
	blobs := map[string]string{}
	for file, content := range f.files {
		if file != LockFile {
			blobs[file] = BlobHash([]byte(content))
		}
	}
	if diff := cmp.Diff(blobs, f.lock.Files()); diff != "" {
		f.t.Errorf("the lock lists other files (-files +lock):\n%s", diff)
	}
	listed := map[string]string{}
	for file, entry := range out.Files {
		listed[file] = entry.Blob
	}
	if diff := cmp.Diff(blobs, listed); diff != "" {
		f.t.Errorf("Output.Files is something else (-files +Output):\n%s", diff)
	}
	if !f.fast {
		build(f.t, f.files)
	}
}

// build runs kustomize over a folder and returns the objects as "Kind namespace/name".
func build(t *testing.T, files map[string]string) []string {
	t.Helper()
	return buildAt(t, files, "")
}

// buildAt builds a folder below.
func buildAt(t *testing.T, files map[string]string, folder string) []string {
	t.Helper()
	disk := filesys.MakeFsInMemory()
	for file, content := range files {
		if err := disk.WriteFile(path.Join("/app", file), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone // as Flux builds
	result, err := krusty.MakeKustomizer(options).Run(disk, path.Join("/app", folder))
	if err != nil {
		t.Errorf("kustomize: %v\n%s", err, files[kustomizationFile])
		return nil
	}
	var names []string
	for _, r := range result.Resources() {
		names = append(names, fmt.Sprintf("%s %s/%s", r.GetKind(), r.GetNamespace(), r.GetName()))
	}
	slices.Sort(names)
	return names
}

// names are the paths of a folder, without the two that are always there.
func (f *folder) names() []string {
	var names []string
	for file := range f.files {
		if file != LockFile && file != kustomizationFile {
			names = append(names, file)
		}
	}
	slices.Sort(names)
	return names
}

// content is the text of the one file whose path ends so.
func (f *folder) content(ending string) string {
	for file, content := range f.files {
		if strings.HasSuffix(file, ending) {
			return content
		}
	}
	f.t.Errorf("no %s among %v", ending, f.names())
	return ""
}

// prs are sets of one provider, by their ids.
func prs(ids ...string) []Set {
	var sets []Set
	for _, id := range ids {
		in := api.Input{"id": id, "sha": "sha-" + id, "title": "unread"}
		sets = append(sets, Set{Name: "prs-" + id, ID: id, Provider: "prs", Origin: "input set prs-" + id, Inputs: in,
			Parts: []Part{{Kind: api.KindInputProvider, Provider: "prs", Type: api.TypeGitHubPullRequest, Inputs: in}}})
	}
	return sets
}

// configMap is an object with one text in it.
func configMap(name, text string, sets ...int) Object {
	return Object{
		ID:         ObjectID{Kind: "ConfigMap", Namespace: "apps", Name: name},
		APIVersion: "v1",
		Sets:       sets,
		Content: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": name, "namespace": "apps"}, "data": map[string]any{"text": text}},
	}
}

func static(object Object) Object {
	object.Static = true
	return object
}

func rendering(objects ...Object) *Rendering { return &Rendering{Objects: objects} }

func readNothing(api.Input) api.Input { return api.Input{} }

// changes are "kind set" of every change.
func changes(out *Output) []string {
	var texts []string
	for _, c := range out.Changes {
		texts = append(texts, string(c.Kind)+" "+c.Set)
	}
	return texts
}

func equal[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestLayoutAddsUpdatesAndRemoves(t *testing.T) {
	f := newFolder(t)
	out := f.apply(LayoutParams{Read: readNothing, Sets: prs("1", "2", "3"),
		Rendering: rendering(configMap("a-1", "x", 0), configMap("b-1", "x", 0), configMap("a-2", "x", 1), configMap("a-3", "x", 2))})
	equal(t, "files", []string{"prs-1/apps_a-1__ConfigMap.yaml", "prs-1/apps_b-1__ConfigMap.yaml",
		"prs-2/apps_a-2__ConfigMap.yaml", "prs-3/apps_a-3__ConfigMap.yaml"}, f.names())
	equal(t, "changes", []string{"added prs-1", "added prs-2", "added prs-3"}, changes(out))

	sets := prs("1", "3")
	sets[0].Parts[0].Inputs = api.Input{"id": "1", "sha": "new"}
	out = f.apply(LayoutParams{Read: readNothing, Sets: sets,
		Rendering: rendering(configMap("a-1", "y", 0), configMap("b-1", "x", 0), configMap("a-3", "x", 1))})
	equal(t, "written", []string{LockFile, kustomizationFile, "prs-1/apps_a-1__ConfigMap.yaml"}, slices.Sorted(maps.Keys(out.Write)))
	equal(t, "deleted", []string{"prs-2/apps_a-2__ConfigMap.yaml"}, out.Delete)
	equal(t, "changes", []string{"updated prs-1", "removed prs-2"}, changes(out))
	update, removal := out.Changes[0], out.Changes[1]
	equal(t, "commits", []string{"sha-1", "new", "sha-2", ""},
		[]string{update.OldSHA(), update.NewSHA(), removal.OldSHA(), removal.NewSHA()})
	equal(t, "fields", []string{"sha"}, update.Fields)
	equal(t, "who", []string{"2", "prs"}, []string{removal.ID, removal.Provider})
}

// What no template reads neither reaches the lock nor makes a commit.
func TestUnreadInputsChangeNothing(t *testing.T) {
	f := newFolder(t)
	p := LayoutParams{Read: readNothing, Sets: prs("1"), Rendering: rendering(configMap("a", "x", 0))}
	f.apply(p)
	if lock := f.files[LockFile]; strings.Contains(lock, "unread") || !strings.Contains(lock, "sha-1") {
		t.Errorf("the lock should hold id and sha, and no title:\n%s", lock)
	}
	p.Sets = prs("1")
	p.Sets[0].Parts[0].Inputs["title"] = "another"
	p.Sets[0].Parts[0].Inputs["sha"] = "another"
	if out := f.apply(p); out.Changed() || len(out.Changes) > 0 || out.Lock.Sets[0].Inputs["sha"] != "sha-1" {
		t.Errorf("changed %v", out.Changes)
	}
}

// FR-50, FR-51: the last set goes, the folder stays and builds to nothing.
func TestFR50FR51NoSetsStillBuild(t *testing.T) {
	f := newFolder(t)
	f.apply(LayoutParams{Sets: prs("1"), Rendering: rendering(configMap("a", "x", 0))})
	out := f.apply(LayoutParams{Rendering: rendering()})
	equal(t, "changes", []string{"removed prs-1"}, changes(out))
	if !strings.Contains(f.files[kustomizationFile], "\nresources: []\n") {
		t.Errorf("no literal empty list:\n%s", f.files[kustomizationFile])
	}
	equal(t, "built", nil, build(t, f.files))
	if root := string(RootKustomization(nil)); !strings.Contains(root, "\nresources: []\n") {
		t.Error(root)
	}
	// and from the start
	f = newFolder(t)
	if out := f.apply(LayoutParams{Rendering: rendering()}); !out.Changed() {
		t.Error("a new ResourceSet without sets has no folder")
	}
}

// FR-52: without a kustomization.yaml, Flux takes every *.yaml for a manifest.
func TestFR52BuildsWithoutKustomization(t *testing.T) {
	f := newFolder(t)
	f.apply(LayoutParams{Sets: prs("1"), Rendering: rendering(static(configMap("s", "x", 0)), configMap("a", "x", 0))})
	generated := map[string]string{}
	var entries []string
	for file, content := range f.files {
		if file == kustomizationFile {
			continue
		}
		generated[file] = content
		if ending := path.Ext(file); ending == ".yaml" || ending == ".yml" {
			entries = append(entries, file)
		}
	}
	generated[kustomizationFile] = string(Kustomization(entries))
	equal(t, "built", []string{"ConfigMap apps/a", "ConfigMap apps/s"}, build(t, generated))
}

func TestKustomizationEntriesAreQuoted(t *testing.T) {
	want := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- \"12\"\n- \"a/b\"\n"
	equal(t, "kustomization", want, string(RootKustomization([]string{"a/b", "12"})))
}

func TestSharedFolder(t *testing.T) {
	f := newFolder(t)
	out := f.apply(LayoutParams{Sets: prs("1", "2"), Rendering: rendering(
		static(configMap("static", "x", 0, 1)), configMap("both", "x", 0, 1), configMap("one", "x", 0))})
	equal(t, "files", []string{"prs-1/apps_one__ConfigMap.yaml", "shared/apps_both__ConfigMap.yaml", "shared/apps_static__ConfigMap.yaml"}, f.names())
	equal(t, "changes", []string{"added prs-1", "added prs-2", "added shared"}, changes(out))

	// Once there, it stays: one of two producers goes.
	out = f.apply(LayoutParams{Sets: prs("1"), Rendering: rendering(
		static(configMap("static", "x", 0)), configMap("both", "x", 0), configMap("one", "x", 0))})
	equal(t, "files", []string{"prs-1/apps_one__ConfigMap.yaml", "shared/apps_both__ConfigMap.yaml", "shared/apps_static__ConfigMap.yaml"}, f.names())
	equal(t, "changed", false, out.Changed()) // the set that went had no file of its own

	// The last producer goes.
	out = f.apply(LayoutParams{Sets: prs("1"), Rendering: rendering(static(configMap("static", "y", 0)), configMap("one", "x", 0))})
	equal(t, "files", []string{"prs-1/apps_one__ConfigMap.yaml", "shared/apps_static__ConfigMap.yaml"}, f.names())
	equal(t, "changes", []string{"updated shared", "removed prs-2"}, changes(out))

	// All producers go.
	f.apply(LayoutParams{Rendering: rendering()})
	equal(t, "files", nil, f.names())
}

func TestResourceSetWithoutInputsIsShared(t *testing.T) {
	f := newFolder(t)
	f.apply(LayoutParams{Rendering: rendering(configMap("a", "x"))})
	equal(t, "files", []string{"shared/apps_a__ConfigMap.yaml"}, f.names())
	out := f.apply(LayoutParams{Rendering: rendering(configMap("b", "x"))})
	equal(t, "files", []string{"shared/apps_b__ConfigMap.yaml"}, f.names())
	equal(t, "changes", []string{"updated shared"}, changes(out))
}

// Rule 4: a set that fails keeps its files; its siblings go on.
func TestRule04FailedSetKeepsItsFiles(t *testing.T) {
	f := newFolder(t)
	f.apply(LayoutParams{Sets: prs("1", "2"), Rendering: rendering(configMap("a-1", "x", 0), configMap("a-2", "x", 1))})
	broken := &Rendering{Objects: []Object{configMap("a-2", "y", 1)},
		Failed: []SetError{{Set: 0, Err: errors.New("no tenant")}, {Set: 2, Err: errors.New("new and broken")}}}
	sets := prs("1", "2", "3")
	sets[0].Parts[0].Inputs["sha"] = "broken"
	out := f.apply(LayoutParams{Sets: sets, Rendering: broken})
	equal(t, "files", []string{"prs-1/apps_a-1__ConfigMap.yaml", "prs-2/apps_a-2__ConfigMap.yaml"}, f.names())
	equal(t, "changes", []string{"kept prs-1", "updated prs-2"}, changes(out))
	equal(t, "reason", "no tenant", out.Changes[0].Reason)
	equal(t, "failed", 2, len(out.Failed))
	kept := f.lock.Set("prs-1")
	if !kept.Kept || kept.Inputs["sha"] != "sha-1" || f.lock.Set("prs-3") != nil {
		t.Errorf("the lock must say what the kept files were made from: %+v", f.lock.Sets)
	}
	out = f.apply(LayoutParams{Sets: sets, Rendering: rendering(configMap("a-1", "z", 0), configMap("a-2", "y", 1))})
	equal(t, "changes", []string{"updated prs-1", "added prs-3"}, changes(out))
	equal(t, "kept", false, f.lock.Set("prs-1").Kept)
}

// Rule 4 for shared objects: their content does not flip to that of another set
// while the first one fails, and they do not go with a failure.
func TestRule04SharedObjectsOutliveFailures(t *testing.T) {
	f := newFolder(t)
	f.apply(LayoutParams{Sets: prs("1", "2"), Rendering: rendering(
		configMap("both", "of 1", 0, 1), configMap("team", "of 1", 0), static(configMap("static", "x", 0, 1)))})
	failing := []SetError{{Set: 0, Err: errors.New("broken")}}

	out := f.apply(LayoutParams{Sets: prs("1", "2"), Rendering: &Rendering{Failed: failing,
		Objects: []Object{configMap("both", "of 2", 1), static(configMap("static", "x", 1))}}})
	equal(t, "changed", false, out.Changed())

	// With a change elsewhere, so that there is a commit: still all sets.
	f.apply(LayoutParams{Sets: prs("1", "2"), Rendering: &Rendering{Failed: failing,
		Objects: []Object{configMap("both", "of 2", 1), static(configMap("static", "x", 1)), configMap("b-2", "x", 1)}}})
	equal(t, "producers", SharedFile{Blob: f.lock.Shared["apps_both__ConfigMap.yaml"].Blob, All: true}, f.lock.Shared["apps_both__ConfigMap.yaml"])
	if got := f.content("shared/apps_both__ConfigMap.yaml"); !strings.Contains(got, "of 1") {
		t.Error(got)
	}

	// Set 2 stops producing it as well, and changes something else so that there is a commit.
	f.apply(LayoutParams{Sets: prs("1", "2"), Rendering: &Rendering{Failed: failing, Objects: []Object{configMap("a-2", "x", 1)}}})
	equal(t, "files", []string{"prs-1/apps_team__ConfigMap.yaml", "prs-2/apps_a-2__ConfigMap.yaml",
		"shared/apps_both__ConfigMap.yaml", "shared/apps_static__ConfigMap.yaml"}, f.names())
	equal(t, "producers", []string{"prs-1"}, f.lock.Shared["apps_both__ConfigMap.yaml"].Sets)

	// Set 2 now makes what only the failing set made: no second copy beside the kept one.
	f.apply(LayoutParams{Sets: prs("1", "2"), Rendering: &Rendering{Failed: failing,
		Objects: []Object{configMap("a-2", "y", 1), configMap("team", "of 2", 1), static(configMap("static", "x", 1))}}})
	if got := f.content("prs-1/apps_team__ConfigMap.yaml"); !strings.Contains(got, "of 1") {
		t.Error(got)
	}

	// It recovers: the first one's content again, and now both make the team.
	f.apply(LayoutParams{Sets: prs("1", "2"), Rendering: rendering(configMap("both", "new of 1", 0), configMap("team", "of 1", 0, 1))})
	equal(t, "files", []string{"shared/apps_both__ConfigMap.yaml", "shared/apps_team__ConfigMap.yaml"}, f.names())
	if got := f.content("shared/apps_both__ConfigMap.yaml"); !strings.Contains(got, "new of 1") {
		t.Error(got)
	}
}

// A removal that is held back, and a hand edit that is respected, look like this.
func TestKeepLeavesSetsAsCommitted(t *testing.T) {
	f := newFolder(t)
	f.apply(LayoutParams{Sets: prs("1", "2", "3"), Rendering: rendering(
		configMap("a-1", "x", 0), configMap("a-2", "x", 1), configMap("a-3", "x", 2), configMap("both", "x", 0, 1))})
	keep := map[string]string{"prs-1": "removal held back", "prs-2": "edited by hand", "prs-4": "taken back by hand"}
	out := f.apply(LayoutParams{Keep: keep, Sets: prs("2", "3", "4"), Rendering: rendering(
		configMap("a-2", "y", 0), configMap("a-3", "y", 1), configMap("a-4", "y", 2))})
	equal(t, "files", []string{"prs-1/apps_a-1__ConfigMap.yaml", "prs-2/apps_a-2__ConfigMap.yaml",
		"prs-3/apps_a-3__ConfigMap.yaml", "shared/apps_both__ConfigMap.yaml"}, f.names())
	equal(t, "changes", []string{"kept prs-2", "updated prs-3", "kept prs-1"}, changes(out))
	equal(t, "reason", "removal held back", out.Changes[2].Reason)
	equal(t, "failures", 0, len(out.Failed))
	out = f.apply(LayoutParams{Sets: prs("2", "3"), Rendering: rendering(configMap("a-2", "y", 0), configMap("a-3", "y", 1))})
	equal(t, "released", []string{"updated prs-2", "removed shared", "removed prs-1"}, changes(out))
}

// Rule 7, FR-33: what the lock does not list is never deleted.
func TestRule07FR33OnlyOursAreDeleted(t *testing.T) {
	f := newFolder(t)
	f.apply(LayoutParams{Sets: prs("1"), Rendering: rendering(configMap("a-1", "x", 0))})
	out, err := Layout(LayoutParams{ResourceSet: f.rs, Previous: f.lock, Rendering: rendering()})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "deleted", []string{"prs-1/apps_a-1__ConfigMap.yaml"}, out.Delete)
	out, err = Layout(LayoutParams{ResourceSet: f.rs, Rendering: rendering()}) // the lock is lost
	if err != nil || len(out.Delete) > 0 {
		t.Errorf("deletes %v without a record (%v)", out.Delete, err)
	}
}

func TestWholeFailuresChangeNothing(t *testing.T) {
	p := LayoutParams{ResourceSet: resourceSet("apps", "app"), Sets: prs("1"),
		Rendering: &Rendering{Failed: []SetError{{Set: -1, Err: errors.New("in two steps")}}}}
	if _, err := Layout(p); err == nil || !strings.Contains(err.Error(), "in two steps") {
		t.Errorf("got %v", err)
	}
	p = LayoutParams{ResourceSet: resourceSet("apps", "app"), Sets: prs("1", "1"), Rendering: rendering()}
	if _, err := Layout(p); err == nil || !strings.Contains(err.Error(), "same folder") {
		t.Errorf("got %v", err)
	}
	p.Sets = prs("1")
	p.Sets[0].Name = "../x"
	if _, err := Layout(p); err == nil || !strings.Contains(err.Error(), "no folder name") {
		t.Errorf("got %v", err)
	}
}

// Kinds that differ only in the case of letters must not meet on a disk that folds it.
func TestKindsThatFold(t *testing.T) {
	f := newFolder(t)
	odd := configMap("a", "x", 0)
	odd.ID.Kind, odd.ID.Group = "Configmap", "odd.example"
	odd.Content["kind"], odd.Content["apiVersion"] = "Configmap", "odd.example/v1"
	other := configMap("a", "x", 0)
	other.ID.Kind, other.ID.Group = "ConfigMap", "odd.example"
	other.Content["apiVersion"] = "odd.example/v1"
	f.apply(LayoutParams{Sets: prs("1"), Rendering: rendering(odd, other)})
	seen := map[string]bool{}
	for _, name := range f.names() {
		seen[strings.ToLower(name)] = true
	}
	equal(t, "files on a disk that folds case", 2, len(seen))
}

// FR-55: what looks like a variable to Flux must stay as it is.
func TestFR55SubstitutionIsSwitchedOff(t *testing.T) {
	title := configMap("title", "release ${DB_PASSWORD}", 0)
	sql := configMap("sql", "do $$ begin end $$", 0)
	harmless := configMap("harmless", "costs $5", 0)
	decided := configMap("decided", "${HOME}", 0)
	decided.Content["metadata"].(map[string]any)["annotations"] = map[string]any{annotationFluxSubstitute: "enabled"}
	f := newFolder(t)
	p := LayoutParams{Sets: prs("1"), Rendering: rendering(title, sql, harmless, decided)}
	f.apply(p)
	const off = annotationFluxSubstitute + ": disabled"
	for name, want := range map[string]bool{"title": true, "sql": true, "harmless": false, "decided": false} {
		if got := strings.Contains(f.content("apps_"+name+"__ConfigMap.yaml"), off); got != want {
			t.Errorf("%s: switched off = %v, want %v", name, got, want)
		}
	}
	if _, changed := title.Content["metadata"].(map[string]any)["annotations"]; changed {
		t.Error("the rendered object was changed")
	}
	f = newFolder(t)
	f.rs.Annotations = map[string]string{api.AnnotationSubstitute: "true"}
	f.apply(p)
	if strings.Contains(f.content("apps_title__ConfigMap.yaml"), off) {
		t.Error("switched off although the ResourceSet wants it")
	}
}
