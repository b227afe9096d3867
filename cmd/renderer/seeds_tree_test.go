// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"resourceset.example/renderer/internal/gittest"
)

// manifest is a generated file, parsed; the test ends if it does not exist.
func (f *fleet) manifest(file string) map[string]any {
	f.t.Helper()
	var object map[string]any
	if err := yaml.UnmarshalStrict([]byte(f.repo.Read("main", path.Join(generated, file))), &object); err != nil {
		f.t.Fatalf("%s: %v", file, err)
	}
	return object
}

// generatedFiles lists what is below the target path, relative to it.
func (f *fleet) generatedFiles() []string {
	f.t.Helper()
	var files []string
	for _, file := range f.repo.Files("main") {
		if rest, ok := strings.CutPrefix(file, generated+"/"); ok {
			files = append(files, rest)
		}
	}
	return files
}

// wantFiles compares the list of generated files.
func (f *fleet) wantFiles(want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.generatedFiles()); diff != "" {
		f.t.Errorf("generated files (-want +got):\n%s", diff)
	}
}

// built is what Flux would apply: the target path, checked out and built with
// kustomize, as "Kind/namespace/name".
func (f *fleet) built() []string {
	f.t.Helper()
	dir := f.t.TempDir()
	archive := filepath.Join(dir, "tree.tar")
	f.repo.Git("archive", "--output="+archive, "main", generated)
	if out, err := exec.Command("tar", "-xf", archive, "-C", dir).CombinedOutput(); err != nil {
		f.t.Fatalf("tar: %v\n%s", err, out)
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, generated))
	if err != nil {
		f.t.Fatalf("kustomize: %v", err)
	}
	ids := []string{}
	for _, r := range resources.Resources() {
		ids = append(ids, r.GetKind()+"/"+r.GetNamespace()+"/"+r.GetName())
	}
	return ids
}

// wantField compares one value in a manifest, by its dotted path.
func wantField(t testing.TB, object map[string]any, field string, want any) {
	t.Helper()
	var value any = object
	for _, key := range strings.Split(field, "|") {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			if len(v) != 1 {
				t.Errorf("%s: a list of %d", field, len(v))
				return
			}
			value = v[0].(map[string]any)[key]
		}
	}
	if diff := cmp.Diff(want, value); diff != "" {
		t.Errorf("%s (-want +got):\n%s", field, diff)
	}
}

// message is the commit message at a revision.
func (f *fleet) message(revision string) string {
	f.t.Helper()
	return f.repo.Git("log", "-1", "--format=%B", revision)
}

// trailers is what git itself reads as the trailers of a commit.
func (f *fleet) trailers(revision string) []string {
	f.t.Helper()
	cmd := exec.Command("git", "interpret-trailers", "--parse")
	cmd.Dir, cmd.Env = f.repo.Dir, gittest.Env()
	cmd.Stdin = strings.NewReader(f.message(revision) + "\n")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		f.t.Fatalf("git interpret-trailers: %v", err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// changes lists the files that the last commit touched, with git's letter for how.
func (f *fleet) changes() []string {
	f.t.Helper()
	out := f.repo.Git("diff-tree", "-r", "--no-commit-id", "--name-status", "--no-renames", "main")
	lines := strings.Split(out, "\n")
	for i, line := range lines {
		letter, file, _ := strings.Cut(line, "\t")
		rest, ours := strings.CutPrefix(file, generated+"/")
		if !ours {
			f.t.Errorf("the commit touches %s", file)
		}
		lines[i] = letter + " " + rest
	}
	return lines
}
