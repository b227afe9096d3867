// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

// publish does what the kubelet does: it writes a version into a folder of its
// own and swaps the link to it, in one step; then the old version goes.
func publish(t *testing.T, folder, version string, data map[string]string) {
	t.Helper()
	fresh := filepath.Join(folder, "..2026_11_29_"+version)
	for key, value := range data {
		write(t, filepath.Join(fresh, key), value)
	}
	old, _ := os.Readlink(filepath.Join(folder, dataLink))
	link(t, filepath.Base(fresh), filepath.Join(folder, "..data_tmp"))
	if err := os.Rename(filepath.Join(folder, "..data_tmp"), filepath.Join(folder, dataLink)); err != nil {
		t.Fatal(err)
	}
	for key := range data {
		if old == "" {
			link(t, filepath.Join(dataLink, key), filepath.Join(folder, key))
		}
	}
	if old != "" {
		if err := os.RemoveAll(filepath.Join(folder, old)); err != nil {
			t.Fatal(err)
		}
	}
}

func get(t *testing.T, dir, namespace, name string) map[string]string {
	t.Helper()
	data, err := NewStore(dir).Get(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for key, value := range data {
		texts[key] = string(value)
	}
	return texts
}

func TestPlainFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "apps/auth/username"), "bot")
	write(t, filepath.Join(dir, "apps/auth/password"), "p\n")
	write(t, filepath.Join(dir, "apps/auth/.dockerconfigjson"), "{}")
	write(t, filepath.Join(dir, "apps/auth/folder/ignored"), "x")
	want := map[string]string{"username": "bot", "password": "p\n", ".dockerconfigjson": "{}"}
	if diff := cmp.Diff(want, get(t, dir, "apps", "auth")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMountedSecretAndRotation(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "apps", "auth")
	store := NewStore(dir)
	for i := range 3 {
		value := fmt.Sprintf("value%d", i)
		publish(t, folder, fmt.Sprint(i), map[string]string{"token": value, "username": value})
		data, err := store.Get(t.Context(), "apps", "auth")
		if err != nil {
			t.Fatal(err)
		}
		if len(data) != 2 || string(data["token"]) != value || string(data["username"]) != value {
			t.Errorf("version %d: got %q", i, data)
		}
	}
}

// All keys come from one version, while versions are swapped all the time.
func TestReadWhileSwapped(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "apps", "auth")
	version := func(i int) map[string]string {
		value := fmt.Sprintf("value%d", i)
		return map[string]string{"a": value, "b": value, "c": value}
	}
	publish(t, folder, "0", version(0))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			publish(t, folder, fmt.Sprint(i+1), version(i+1))
		}
	}()
	store, reads := NewStore(dir), 0
	for {
		select {
		case <-done:
			if reads == 0 {
				t.Error("no read succeeded")
			}
			return
		default:
		}
		data, err := store.Get(t.Context(), "apps", "auth")
		if err != nil {
			continue // swapped more often than we read again: an error is fine, a mix is not
		}
		reads++
		if len(data) != 3 || string(data["a"]) != string(data["b"]) || string(data["b"]) != string(data["c"]) {
			t.Fatalf("keys of different versions: %q", data)
		}
	}
}

// One volume that projects several Secrets has its link above their folders.
func TestProjectedVolume(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "..2026_a/apps/auth/token"), "t")
	link(t, "..2026_a", filepath.Join(dir, dataLink))
	link(t, "..data/apps", filepath.Join(dir, "apps"))
	if got := get(t, dir, "apps", "auth"); got["token"] != "t" {
		t.Errorf("got %q", got)
	}
	names, err := NewStore(dir).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Name{{"apps", "auth"}}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNotFound(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "apps/other/token"), "t")
	for _, store := range []*Store{NewStore(dir), NewStore(filepath.Join(dir, "nowhere"))} {
		_, err := store.Get(t.Context(), "apps", "auth")
		var missing *NotFoundError
		if !errors.Is(err, ErrNotFound) || !errors.As(err, &missing) {
			t.Fatalf("got %v", err)
		}
		if want := filepath.Join(store.dir, "apps", "auth"); !strings.Contains(missing.Suggestion(), want) {
			t.Errorf("hint %q does not say %s", missing.Suggestion(), want)
		}
	}
}

// Names and links do not lead out of the directory (rule 12).
func TestRule12_NothingOutside(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "auth/token"), "outside")
	write(t, filepath.Join(dir, "apps/good/token"), "t")
	if err := os.MkdirAll(filepath.Join(dir, "apps/file"), 0o700); err != nil {
		t.Fatal(err)
	}
	link(t, filepath.Join(outside, "auth"), filepath.Join(dir, "apps/folder"))
	link(t, filepath.Join(outside, "auth/token"), filepath.Join(dir, "apps/file/token"))
	relative, err := filepath.Rel(filepath.Join(dir, "apps"), outside)
	if err != nil {
		t.Fatal(err)
	}
	link(t, relative, filepath.Join(dir, "up"))

	store := NewStore(dir)
	for _, name := range [][2]string{
		{"apps", "folder"}, {"apps", "file"}, {"up", "auth"}, {"..", "apps"}, {"apps", ".."}, {"apps", "../apps/good"},
		{"apps", "good/../good"}, {"", "apps"}, {"apps", ""}, {".", "apps"}, {"apps", "."}, {"apps", "Good"}, {"a.b", "c"},
		{"apps", "good\x00"}, {"apps", strings.Repeat("a", 254)},
	} {
		if data, err := store.Get(t.Context(), name[0], name[1]); err == nil {
			t.Errorf("%q: got %q", name, data)
		}
	}
	if _, err := store.Get(t.Context(), "apps", "good"); err != nil {
		t.Error(err)
	}
}

func TestLimits(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "apps/large/a"), strings.Repeat("x", maxSecretSize/2))
	write(t, filepath.Join(dir, "apps/large/b"), strings.Repeat("x", maxSecretSize/2))
	if _, err := NewStore(dir).Get(t.Context(), "apps", "large"); err != nil {
		t.Error(err)
	}
	write(t, filepath.Join(dir, "apps/large/c"), "x")
	if _, err := NewStore(dir).Get(t.Context(), "apps", "large"); err == nil {
		t.Error("more than a Secret can have was read")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewStore(dir).Get(ctx, "apps", "large"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
