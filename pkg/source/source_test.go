// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"
	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/pkg/api"
)

// repo is a repository by path. A content that starts with "link:" is a symbolic
// link, one that is "submodule" a submodule.
type repo map[string]string

// tree stores the repository as Git objects.
func (r repo) tree(t testing.TB) *object.Tree {
	t.Helper()
	store := memory.NewStorage()
	hash := storeTree(t, store, r)
	tree, err := object.GetTree(store, hash)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func storeTree(t testing.TB, store *memory.Storage, r repo) plumbing.Hash {
	t.Helper()
	tree := &object.Tree{}
	folders := map[string]repo{}
	for name, content := range r {
		if folder, rest, nested := strings.Cut(name, "/"); nested {
			if folders[folder] == nil {
				folders[folder] = repo{}
			}
			folders[folder][rest] = content
			continue
		}
		entry := object.TreeEntry{Name: name, Mode: filemode.Regular}
		if target, ok := strings.CutPrefix(content, "link:"); ok {
			entry.Mode, content = filemode.Symlink, target
		}
		if content == "submodule" {
			entry.Mode, entry.Hash = filemode.Submodule, plumbing.NewHash("0123456789012345678901234567890123456789")
		} else {
			entry.Hash = storeObject(t, store, plumbing.BlobObject, func(o plumbing.EncodedObject) error {
				w, err := o.Writer()
				if err == nil {
					_, err = w.Write([]byte(content))
				}
				return err
			})
		}
		tree.Entries = append(tree.Entries, entry)
	}
	for name, files := range folders {
		tree.Entries = append(tree.Entries, object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: storeTree(t, store, files)})
	}
	slices.SortFunc(tree.Entries, func(a, b object.TreeEntry) int {
		return strings.Compare(gitName(a), gitName(b))
	})
	return storeObject(t, store, plumbing.TreeObject, tree.Encode)
}

func gitName(e object.TreeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
}

func storeObject(t testing.TB, store *memory.Storage, kind plumbing.ObjectType, encode func(plumbing.EncodedObject) error) plumbing.Hash {
	t.Helper()
	o := store.NewEncodedObject()
	o.SetType(kind)
	if err := encode(o); err != nil {
		t.Fatal(err)
	}
	hash, err := store.SetEncodedObject(o)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// disk writes the repository to a folder.
func (r repo) disk(t testing.TB) *os.Root {
	t.Helper()
	dir := t.TempDir()
	for name, content := range r {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(content, "link:"); ok {
			err = os.Symlink(target, at)
		} else if content != "submodule" {
			err = os.WriteFile(at, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func set(namespace, name string) string {
	return fmt.Sprintf(`apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata:
  name: %s
  namespace: %s
spec:
  inputsFrom:
    - selector: {matchLabels: {app: %s}}
  resources:
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: << inputs.id >>}
`, name, namespace, name)
}

func provider(namespace, name string) string {
	return fmt.Sprintf(`apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSetInputProvider
metadata:
  name: %s
  namespace: %s
  labels: {app: podinfo}
spec:
  type: Static
  defaultValues: {region: eu}
`, name, namespace)
}

// summary is what was read, in one line each.
func summary(defs *api.Definitions) []string {
	var lines []string
	for _, rs := range defs.ResourceSets {
		lines = append(lines, rs.String()+" "+rs.Pos.String())
	}
	for _, p := range defs.Providers {
		lines = append(lines, p.String()+" "+p.Pos.String())
	}
	for _, r := range defs.Receivers {
		lines = append(lines, r.String()+" "+r.Pos.String())
	}
	for _, f := range defs.Faults {
		lines = append(lines, "fault "+f.Error())
	}
	for _, f := range defs.Warnings {
		lines = append(lines, "warning "+f.Error())
	}
	return lines
}

// check reads the repository from Git and from disk, which must agree.
func check(t *testing.T, r repo, opts Options, want ...string) {
	t.Helper()
	fromGit, err := Read(context.Background(), r.tree(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, summary(fromGit)); diff != "" {
		t.Errorf("from Git (-want +got):\n%s", diff)
	}
	fromDisk, err := ReadFolder(context.Background(), r.disk(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, summary(fromDisk)); diff != "" {
		t.Errorf("from disk (-want +got):\n%s", diff)
	}
}

func TestReadIsRecursiveAndSorted(t *testing.T) {
	check(t, repo{
		"clusters/preview/zz/app.yaml":      set("apps", "b") + "---\n" + set("apps", "a"),
		"clusters/preview/prs.yml":          provider("apps", "prs"),
		"clusters/preview/notes.txt":        "{{ not yaml",
		"clusters/preview/deploy.yaml":      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n",
		"clusters/other/app.yaml":           set("other", "app"),
		"clusters/preview/.github/wf.yaml":  "on: {push: '{{'",
		"clusters/preview/vendor":           "submodule",
		"clusters/preview/generated/x.yaml": set("generated", "x"),
		"clusters/preview/generated-2.yaml": set("apps", "c"),
	}, Options{Path: "./clusters/preview", Exclude: "./clusters/preview/generated"},
		"ResourceSet apps/a clusters/preview/zz/app.yaml:14",
		"ResourceSet apps/b clusters/preview/zz/app.yaml:1",
		"ResourceSet apps/c clusters/preview/generated-2.yaml:1",
		"ResourceSetInputProvider apps/prs clusters/preview/prs.yml:1",
	)
}

// FR-16: a file that cannot be read is a fault beside the rest, never a shorter list.
func TestFR16BrokenFileHidesNoOther(t *testing.T) {
	check(t, repo{
		"a.yaml": set("apps", "a"),
		"b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [\n",
		"c.yaml": set("apps", "c"),
	}, Options{},
		"ResourceSet apps/a a.yaml:1",
		"ResourceSet apps/c c.yaml:1",
		"fault b.yaml:3: not valid YAML: did not find expected node content",
	)
}

// FR-17: a path that is gone or empty is a failed read, not an empty fleet.
func TestRule03_PathGoneOrEmptyIsAnError(t *testing.T) {
	full := repo{"clusters/preview/app.yaml": set("apps", "a"), "clusters/empty/readme.md": "", "file.yaml": "a: 1"}
	for _, c := range []struct {
		name string
		repo repo
		opts Options
		none bool
	}{
		{"renamed", full, Options{Path: "./clusters/pr"}, false},
		{"no definitions", full, Options{Path: "clusters/empty"}, true},
		{"a file", full, Options{Path: "file.yaml"}, false},
		{"outside", full, Options{Path: "clusters/../../etc"}, false},
		{"all excluded", full, Options{Path: "clusters/preview", Exclude: "clusters/preview"}, false},
		{"empty tree", repo{}, Options{}, true},
	} {
		for from, read := range map[string]func() (*api.Definitions, error){
			"git":  func() (*api.Definitions, error) { return Read(context.Background(), c.repo.tree(t), c.opts) },
			"disk": func() (*api.Definitions, error) { return ReadFolder(context.Background(), c.repo.disk(t), c.opts) },
		} {
			defs, err := read()
			var pathErr *PathError
			if defs != nil || !errors.As(err, &pathErr) || errors.Is(err, ErrNoDefinitions) != c.none {
				t.Errorf("%s from %s: got %v, %v", c.name, from, defs, err)
			}
		}
	}
	if _, err := Read(context.Background(), nil, Options{}); err == nil {
		t.Error("no tree at all is read as definitions")
	}
}

// FR-17, second part: files that move below the path change nothing but positions.
func TestFR17MovedFileGivesTheSameObject(t *testing.T) {
	before, err1 := Read(context.Background(), repo{"c/app.yaml": set("apps", "a"), "c/p.yaml": provider("apps", "p")}.tree(t), Options{Path: "c"})
	after, err2 := Read(context.Background(), repo{"c/sub/x/app.yaml": set("apps", "a"), "c/p.yaml": provider("apps", "p")}.tree(t), Options{Path: "c"})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.ResourceSets[0].Spec, after.ResourceSets[0].Spec); diff != "" || len(after.ResourceSets) != 1 {
		t.Error(diff)
	}
}

// FR-22: all is discovered before anything is used, whatever the files are called.
func TestFR22OrderOfFilesDoesNotMatter(t *testing.T) {
	for _, name := range []string{"a-provider.yaml", "zz-provider.yaml"} {
		defs, err := Read(context.Background(), repo{"rset.yaml": set("apps", "podinfo"), name: provider("apps", "prs")}.tree(t), Options{})
		if err != nil || len(defs.Providers) != 1 || len(defs.ResourceSets) != 1 {
			t.Errorf("%s: %v, %v", name, defs, err)
		}
	}
}

func TestDeclaredTwice(t *testing.T) {
	check(t, repo{"a.yaml": set("apps", "x"), "b/b.yaml": provider("apps", "x") + "---\n" + set("apps", "x")}, Options{},
		"ResourceSet apps/x a.yaml:1",
		"ResourceSetInputProvider apps/x b/b.yaml:1",
		"fault b/b.yaml:11: ResourceSet apps/x: declared twice, first at a.yaml:1",
	)
}

func TestRule12_LinksAreNotFollowedOut(t *testing.T) {
	check(t, repo{
		"fleet/a.yaml":        set("apps", "a"),
		"fleet/passwd.yaml":   "link:/etc/passwd",
		"fleet/up.yaml":       "link:../../outside.yaml",
		"fleet/gone.yaml":     "link:nowhere.yaml",
		"fleet/circle.yaml":   "link:circle.yaml",
		"fleet/data":          "link:/var",
		"fleet/self":          "link:../fleet",
		"fleet/inside.yaml":   "link:../shared/b.yaml",
		"fleet/more":          "link:../shared/more",
		"fleet/target":        "link:../generated",
		"shared/b.yaml":       set("apps", "b"),
		"shared/more/c.yaml":  set("apps", "c"),
		"generated/x/y.yaml":  set("apps", "generated"),
		"outside/ignored.yml": set("apps", "ignored"),
	}, Options{Path: "fleet", Exclude: "generated"},
		"ResourceSet apps/a fleet/a.yaml:1",
		"ResourceSet apps/b shared/b.yaml:1",
		"ResourceSet apps/c shared/more/c.yaml:1",
		"fault fleet/circle.yaml: symbolic link: leads in a circle",
		"fault fleet/gone.yaml: symbolic link: file does not exist",
		"fault fleet/passwd.yaml: symbolic link: leads out of the repository",
		"fault fleet/up.yaml: symbolic link: leads out of the repository",
	)
}

func TestLargeFileIsAFault(t *testing.T) {
	check(t, repo{"a.yaml": set("apps", "a"), "big.yaml": "# " + strings.Repeat("x", maxFileSize)}, Options{},
		"ResourceSet apps/a a.yaml:1",
		"fault big.yaml: the file is larger than 5 MiB",
	)
}

func TestCancelledReadIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	defs, err := Read(ctx, repo{"a.yaml": set("apps", "a")}.tree(t), Options{})
	if defs != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", defs, err)
	}
}

// A commit that changes one file of many parses that one.
func TestReaderParsesOnlyWhatChanged(t *testing.T) {
	files := repo{}
	for i := range 20 {
		files[fmt.Sprintf("apps/%d.yaml", i)] = set("apps", fmt.Sprintf("app-%d", i))
	}
	var r Reader
	first, err := r.Read(context.Background(), files.tree(t), Options{Path: "apps"})
	if err != nil {
		t.Fatal(err)
	}
	files["apps/7.yaml"] = set("apps", "changed")
	second, err := r.Read(context.Background(), files.tree(t), Options{Path: "apps"})
	if err != nil {
		t.Fatal(err)
	}
	old := map[*api.ResourceSet]bool{}
	for _, rs := range first.ResourceSets {
		old[rs] = true
	}
	for _, rs := range second.ResourceSets {
		if old[rs] == (rs.Name == "changed") {
			t.Errorf("%s: taken over: %v", rs, old[rs])
		}
	}
	if len(second.ResourceSets) != 20 {
		t.Errorf("%d ResourceSets", len(second.ResourceSets))
	}
}

// loggedFiles remembers which folders were listed.
type loggedFiles struct {
	Files
	listed []string
}

func (l *loggedFiles) List(folder string) ([]Entry, error) {
	l.listed = append(l.listed, folder)
	return l.Files.List(folder)
}

// The target path may hold many thousands of files: it is not even listed.
func TestTargetPathIsNotListed(t *testing.T) {
	files := repo{
		"fleet/app.yaml":               set("apps", "a"),
		"fleet/generated/x/a.yaml":     "a: b",
		"fleet/kustom/generated/a.yml": "a: b",
	}
	log := &loggedFiles{Files: gitFiles{files.tree(t)}}
	if _, err := new(Reader).readFiles(context.Background(), log, Options{Path: "fleet", Exclude: "/fleet/generated/"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", "fleet", "fleet/kustom", "fleet/kustom/generated"}, log.listed); diff != "" {
		t.Error(diff)
	}
}

// What Flux never sees because of .sourceignore is not read either.
func TestSourceIgnore(t *testing.T) {
	check(t, repo{
		".sourceignore":                "# charts are templates\r\n/fleet/charts/\n*.tmpl.yaml\n",
		"fleet/app.yaml":               set("apps", "a"),
		"fleet/charts/x/t/deploy.yaml": "a: {{ .Values.x }\n",
		"fleet/charts.yaml":            set("apps", "charts"),
		"fleet/x.tmpl.yaml":            "a: {{ .Values.x }\n",
		"fleet/sub/.sourceignore":      "b.yaml\n!keep.tmpl.yaml\n",
		"fleet/sub/b.yaml":             "a: [",
		"fleet/sub/keep.tmpl.yaml":     set("apps", "kept"),
		"fleet/b.yaml":                 set("apps", "b"),
	}, Options{Path: "fleet"},
		"ResourceSet apps/a fleet/app.yaml:1",
		"ResourceSet apps/b fleet/b.yaml:1",
		"ResourceSet apps/charts fleet/charts.yaml:1",
		"ResourceSet apps/kept fleet/sub/keep.tmpl.yaml:1",
	)
}

// One file that is read twice, by its name and in its folder, declares nothing twice.
func TestReadTwice(t *testing.T) {
	text := []byte(set("apps", "a"))
	defs := api.Parse("a.yaml", text)
	defs.Merge(api.Parse("a.yaml", text))
	defs.CheckDuplicates()
	if len(defs.Faults) > 0 || len(defs.ResourceSets) != 1 {
		t.Errorf("%d ResourceSets, faults %v", len(defs.ResourceSets), defs.Faults)
	}
}
