// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
)

func blob(text string) plumbing.Hash { return plumbing.ComputeHash(plumbing.BlobObject, []byte(text)) }

// treeOf builds a tree from scratch.
func treeOf(t testing.TB, objects *newObjects, files map[string]string) plumbing.Hash {
	t.Helper()
	editor, err := newTreeEditor(plumbing.ZeroHash, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := editor.put(name, blob(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	return editor.write(objects)
}

func readFrom(t testing.TB, objects *newObjects) func(plumbing.Hash) ([]byte, error) {
	return func(hash plumbing.Hash) ([]byte, error) {
		data, ok := objects.get(hash)
		if !ok {
			return nil, plumbing.ErrObjectNotFound
		}
		return data, nil
	}
}

// listTree reads a tree back into paths.
func listTree(t testing.TB, objects *newObjects, root plumbing.Hash, dir string, into map[string]plumbing.Hash) {
	t.Helper()
	data, ok := objects.get(root)
	if !ok {
		t.Fatalf("tree %s of %q is missing", root, dir)
	}
	entries, err := decodeTree(data)
	if err != nil {
		t.Fatal(err)
	}
	if dir != "" && len(entries) == 0 {
		t.Errorf("%q is empty", dir)
	}
	for _, e := range entries {
		if e.isDir() {
			listTree(t, objects, e.hash, path.Join(dir, e.name), into)
		} else {
			into[path.Join(dir, e.name)] = e.hash
		}
	}
}

// A tree that was edited equals the tree made from the files that should be there: the
// order of Git with its folders as if they ended in a slash, no empty folders, no rests.
func TestEditedTreeEqualsTreeFromScratch(t *testing.T) {
	base := map[string]string{"a": "1", "a.b/x": "1", "a0/x": "1", "b/c/d": "1", "b/c-d": "1", "z": "1"}
	for _, test := range []struct {
		name   string
		put    map[string]string
		remove []string
	}{
		{name: "nothing"},
		{name: "same", put: map[string]string{"b/c/d": "1"}},
		{name: "change", put: map[string]string{"b/c/d": "2"}},
		{name: "add", put: map[string]string{"b/c.d": "2", "b/c/e/f": "3", "new/x/y": "4", "a-": "5", "A": "6"}},
		{name: "folder empties", remove: []string{"b/c/d"}},
		{name: "folders empty", remove: []string{"b/c/d", "b/c-d"}},
		{name: "all empty", remove: []string{"a", "a.b/x", "a0/x", "b/c/d", "b/c-d", "z"}},
		{name: "file becomes folder", remove: []string{"a"}, put: map[string]string{"a/x": "2"}},
		{name: "not there", remove: []string{"q", "b/q", "a/b/c", "q/r/s"}},
		{name: "folder comes back", remove: []string{"b/c/d"}, put: map[string]string{"b/c/e": "1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var objects newObjects
			root := treeOf(t, &objects, base)
			editor, err := newTreeEditor(root, readFrom(t, &objects))
			if err != nil {
				t.Fatal(err)
			}
			want := maps.Clone(base)
			for _, name := range test.remove {
				delete(want, name)
				if err := editor.remove(name); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range test.put {
				want[name] = text
				if err := editor.put(name, blob(text)); err != nil {
					t.Fatal(err)
				}
			}
			got := root
			if editor.root.isChanged() {
				got = editor.write(&objects)
			}
			if scratch := treeOf(t, &newObjects{}, want); len(want) > 0 && got != scratch {
				t.Errorf("tree %s, from scratch %s", got, scratch)
			}
			if len(want) == 0 && got != emptyTree {
				t.Errorf("tree %s is not the empty one", got)
			}
			files, wantFiles := map[string]plumbing.Hash{}, map[string]plumbing.Hash{}
			listTree(t, &objects, got, "", files)
			for name, text := range want {
				wantFiles[name] = blob(text)
			}
			if diff := cmp.Diff(wantFiles, files); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What others wrote in old ways is written back as it was.
func TestForeignModesAreKept(t *testing.T) {
	var objects newObjects
	data := encodeTree([]treeEntry{
		{mode: "100664", name: "old", hash: blob("1")}, {mode: "100755", name: "run.sh", hash: blob("2")},
		{mode: modeSymlink, name: "link", hash: blob("x")},
	})
	root := plumbing.ComputeHash(plumbing.TreeObject, data)
	objects.add(plumbing.TreeObject, root, data)
	editor, err := newTreeEditor(root, readFrom(t, &objects))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(editor.put("z", blob("3")), editor.put("run.sh", blob("2"))); err != nil {
		t.Fatal(err)
	}
	written, _ := objects.get(editor.write(&objects))
	if !bytes.HasPrefix(written, data) {
		t.Errorf("%q", written)
	}
}

func TestCommitObject(t *testing.T) {
	m := &Mirror{cfg: Config{Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)) }}}
	spec := Commit{Message: "subject\n\nbody\x00", Author: Signature{Name: " A <b>\nc ", Email: "a@b>\n"}}
	got, err := m.encodeCommit(t.Context(), &spec, emptyTree, blob("parent"))
	if err != nil {
		t.Fatal(err)
	}
	who := "A bc <a@b> 1767319445 +0100\n"
	want := "tree " + emptyTree.String() + "\nparent " + blob("parent").String() + "\nauthor " + who + "committer " + who + "\nsubject\n\nbody\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	m.cfg.Signer = signerFunc(func(payload []byte) ([]byte, error) {
		if string(payload) != want {
			t.Errorf("signed %q", payload)
		}
		return []byte("-----BEGIN X-----\n\nabc\n-----END X-----\n"), nil
	})
	signed, err := m.encodeCommit(t.Context(), &spec, emptyTree, blob("parent"))
	if err != nil {
		t.Fatal(err)
	}
	head, message, _ := strings.Cut(want, "\n\n")
	want = head + "\ngpgsig -----BEGIN X-----\n \n abc\n -----END X-----\n\n" + message
	if diff := cmp.Diff(want, string(signed)); diff != "" {
		t.Error(diff)
	}
	m.cfg.Signer = signerFunc(func([]byte) ([]byte, error) { return nil, errors.New("key expired") })
	if _, err := m.encodeCommit(t.Context(), &spec, emptyTree, plumbing.ZeroHash); err == nil {
		t.Error("an unsigned commit was made although signing was asked for")
	}
}

type signerFunc func([]byte) ([]byte, error)

func (f signerFunc) Sign(_ context.Context, payload []byte) ([]byte, error) { return f(payload) }

// What parses as a tree writes back byte for byte.
func FuzzDecodeTree(f *testing.F) {
	f.Add([]byte{})
	f.Add(encodeTree([]treeEntry{{mode: modeFile, name: "a", hash: blob("1")}, {mode: modeDir, name: "b", hash: emptyTree}}))
	f.Add([]byte("100644 a\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := decodeTree(data)
		if err == nil && !bytes.Equal(encodeTree(entries), data) {
			t.Errorf("%q", data)
		}
	})
}

// A path that is accepted can be checked out anywhere and stays where it is.
func FuzzCheckPath(f *testing.F) {
	for _, seed := range []string{"a/b", "../x", ".git/config", "a/.GIT /x", "git~1", ".g\u200cit", "a//b", "-rf", "a\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if checkPath(name) != nil {
			return
		}
		if path.Clean("/"+name) != "/"+name || strings.ContainsAny(name, "\x00\\") {
			t.Errorf("%q is accepted", name)
		}
		for _, part := range strings.Split(name, "/") {
			if folded := strings.ToLower(strings.TrimRight(part, " .")); folded == ".git" || folded == "git~1" || len(part) > 255 {
				t.Errorf("%q is accepted", name)
			}
		}
	})
}

// No URL shows its password, whatever it looks like.
func FuzzParseEndpoint(f *testing.F) {
	for _, seed := range []string{"https://u:pa55w0rd@h/x", "http://u:pa55w0rd@h:80/x?q#f", "ssh://u:pa55w0rd@h/x", "u:pa55w0rd@h:x", "https://u:pa55w0rd@%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		e, err := parseEndpoint(raw)
		if err != nil {
			return
		}
		if len(e.password) > 7 && !strings.Contains(e.host+e.path+e.user+e.port, e.password) && strings.Contains(e.display, e.password) {
			t.Errorf("%q is shown as %q", raw, e.display)
		}
		if e.scheme == schemeSSH && (strings.HasPrefix(e.host, "-") || strings.HasPrefix(e.path, "-")) {
			t.Errorf("%q gives an option to ssh", fmt.Sprint(e))
		}
	})
}
