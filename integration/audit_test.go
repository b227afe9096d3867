// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// An auditor reads a branch as somebody does who knows only the documents: the layout
// of the target path, and the format of inputs.lock.
type auditor struct {
	t      testing.TB
	w      *world
	repo   *git.Repository
	target string
	known  map[plumbing.Hash]bool // trees of the target path that are in order
}

func (w *world) auditor(target string) *auditor {
	w.t.Helper()
	repo, err := git.PlainOpen(w.repo.Dir)
	if err != nil {
		w.t.Fatal(err)
	}
	return &auditor{t: w.t, w: w, repo: repo, target: target, known: map[plumbing.Hash]bool{}}
}

// files is the content of the target path at a commit, by relative path.
func (a *auditor) files(commit *object.Commit) (map[string]string, plumbing.Hash) {
	a.t.Helper()
	tree, err := commit.Tree()
	if err == nil {
		tree, err = tree.Tree(a.target)
	}
	if errors.Is(err, object.ErrDirectoryNotFound) {
		return nil, plumbing.ZeroHash
	}
	if err != nil {
		a.t.Fatalf("%s: %v", commit.Hash, err)
	}
	files := map[string]string{}
	err = tree.Files().ForEach(func(f *object.File) error {
		text, err := f.Contents()
		files[f.Name] = text
		return err
	})
	if err != nil {
		a.t.Fatalf("%s: %v", commit.Hash, err)
	}
	return files, tree.Hash
}

// commits audits every commit of the branch by itself.
func (a *auditor) commits() int {
	a.t.Helper()
	checked := 0
	if merges := a.w.repo.Git("rev-list", "--merges", "main"); merges != "" {
		a.t.Errorf("history is not linear: %s", merges)
	}
	for _, hash := range strings.Fields(a.w.repo.Git("rev-list", "main")) {
		commit := a.commit(hash)
		files, tree := a.files(commit)
		if len(files) == 0 || a.known[tree] {
			continue
		}
		a.known[tree] = true
		checked++
		for _, problem := range append(buildProblems(files), lockProblems(files)...) {
			a.t.Errorf("commit %s (%q by %s): %s", hash, firstLine(commit.Message), commit.Author.Name, problem)
		}
	}
	return checked
}

func (a *auditor) commit(hash string) *object.Commit {
	a.t.Helper()
	commit, err := a.repo.CommitObject(plumbing.NewHash(hash))
	if err != nil {
		a.t.Fatalf("commit %s: %v", hash, err)
	}
	return commit
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// buildProblems builds the files as Flux does.
func buildProblems(files map[string]string) []string {
	fs := filesys.MakeFsInMemory()
	for name, text := range files {
		if err := fs.WriteFile("/"+name, []byte(text)); err != nil {
			return []string{err.Error()}
		}
	}
	if _, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "/"); err != nil {
		return []string{"kustomize: " + err.Error()}
	}
	return nil
}

// A lock is what inputs.lock is documented to hold, as far as files are concerned.
type lock struct {
	Kustomization string
	Sets          []struct {
		Name  string
		Files map[string]string
	}
	Shared map[string]struct{ Blob string }
}

// lockProblems compares every inputs.lock with the files beside it.
func lockProblems(files map[string]string) []string {
	var problems []string
	recorded := map[string]bool{"kustomization.yaml": true}
	for name, text := range files {
		if path.Base(name) != "inputs.lock" {
			continue
		}
		dir := path.Dir(name)
		recorded[name] = true
		var l lock
		if err := yaml.Unmarshal([]byte(text), &l); err != nil {
			problems = append(problems, name+": "+err.Error())
			continue
		}
		blobs := map[string]string{"kustomization.yaml": l.Kustomization}
		for _, set := range l.Sets {
			for file, blob := range set.Files {
				blobs[set.Name+"/"+file] = blob
			}
		}
		for file, s := range l.Shared {
			blobs["shared/"+file] = s.Blob
		}
		for file, blob := range blobs {
			recorded[path.Join(dir, file)] = true
			content, there := files[path.Join(dir, file)]
			if got := plumbing.ComputeHash(plumbing.BlobObject, []byte(content)).String(); !there || got != blob {
				problems = append(problems, fmt.Sprintf("%s records %s of %s, there is %s (%t)", name, blob, file, got, there))
			}
		}
	}
	for name := range files {
		if !recorded[name] {
			problems = append(problems, name+" is in no inputs.lock")
		}
	}
	slices.Sort(problems)
	return problems
}

// states reads which state of the desk the two ResourceSets show: version by tenant,
// and the number of the state, -1 if it is not one and the same.
func states(files map[string]string) (one, two map[string]string, revision int) {
	one, two, revision = map[string]string{}, map[string]string{}, -2
	for name, text := range files {
		if !strings.HasSuffix(name, "_ConfigMap.yaml") {
			continue
		}
		var cm struct {
			Data struct{ Tenant, Version, Revision string }
		}
		n := -1
		if err := yaml.Unmarshal([]byte(text), &cm); err == nil {
			n, _ = strconv.Atoi(cm.Data.Revision)
		}
		if revision != -2 && n != revision {
			n = -1
		}
		revision = n
		if strings.HasPrefix(name, "apps/one/") {
			one[cm.Data.Tenant] = cm.Data.Version
		} else {
			two[cm.Data.Tenant] = cm.Data.Version
		}
	}
	return one, two, revision
}

// shows is the number of the state that the branch shows, or -1.
func (a *auditor) shows() int {
	a.t.Helper()
	head := a.w.repo.Head("main")
	if head == "" {
		return -1
	}
	files, _ := a.files(a.commit(head))
	one, two, revision := states(files)
	if want := a.w.desk.at(revision); !maps.Equal(one, want) || !maps.Equal(two, want) {
		return -1
	}
	return revision
}

// pushes audits what every push of a renderer left on the branch: exactly one state of
// the desk, never an older one than before, and never half of one.
func (a *auditor) pushes() int {
	a.t.Helper()
	heads := strings.Fields(a.w.repo.Git("reflog", "show", "--format=%H", "main"))
	slices.Reverse(heads)
	last, n := 0, 0
	for i, hash := range heads {
		if i > 0 {
			if out := a.w.repo.Git("rev-list", "--count", hash+".."+heads[i-1]); out != "0" {
				a.t.Errorf("push %d, %s, is not on top of %s", i, hash, heads[i-1])
			}
		}
		commit := a.commit(hash)
		if commit.Committer.Name != "renderer" {
			continue
		}
		n++
		files, _ := a.files(commit)
		one, two, revision := states(files)
		want := a.w.desk.at(revision)
		if want == nil {
			a.t.Errorf("push %d, %s, shows no state of the orchestrator:\none: %v\ntwo: %v", i, hash, one, two)
			continue
		}
		if diff := cmp.Diff([]map[string]string{want, want}, []map[string]string{one, two}); diff != "" {
			a.t.Errorf("push %d, %s, shows half of state %d (-want +got):\n%s", i, hash, revision, diff)
		}
		if revision < last {
			a.t.Errorf("push %d, %s, goes back from state %d to %d", i, hash, last, revision)
		}
		last = revision
	}
	return n
}

// versionOf is the version of a tenant that a ResourceSet's manifests show.
func (a *auditor) versionOf(set, tenant string) string {
	a.t.Helper()
	files, _ := a.files(a.commit(a.w.repo.Head("main")))
	one, two, _ := states(files)
	return map[string]map[string]string{"one": one, "two": two}[set][tenant]
}
