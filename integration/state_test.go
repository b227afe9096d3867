// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// damages are what may have happened to a state folder between two runs. The next run
// must not need help, and must do its work in the same pass.
func damages() map[string]func(t *testing.T, r *setup) {
	each := func(pattern string, do func(t *testing.T, file string)) func(*testing.T, *setup) {
		seen := false
		return func(t *testing.T, r *setup) {
			files, err := filepath.Glob(filepath.Join(r.state, pattern))
			must(t, err)
			if len(files) == 0 && !seen {
				t.Fatalf("no %s in the state folder: another layout?", pattern)
			}
			seen = true // what is not needed may stay away for good
			for _, file := range files {
				must(t, os.Chmod(file, 0o600))
				do(t, file)
			}
		}
	}
	gone := func(t *testing.T, file string) { must(t, os.RemoveAll(file)) }
	empty := func(t *testing.T, file string) { must(t, os.Truncate(file, 0)) }
	half := func(t *testing.T, file string) {
		info, err := os.Stat(file)
		must(t, err)
		must(t, os.Truncate(file, info.Size()/2))
	}
	noise := func(t *testing.T, file string) {
		info, err := os.Stat(file)
		must(t, err)
		must(t, os.WriteFile(file, garbage(rand.New(rand.NewPCG(1, 2)), int(info.Size())), 0o600))
	}
	const packs = "target/mirror-*.git/objects/pack/"
	return map[string]func(*testing.T, *setup){
		"all gone":              func(t *testing.T, r *setup) { gone(t, r.state) },
		"marker gone":           each("target/mirror.json", gone),
		"marker empty":          each("target/mirror.json", empty),
		"marker garbled":        each("target/mirror.json", noise),
		"head empty":            each("target/mirror-*.git/refs/heads/mirror", empty),
		"head of nothing":       each("target/mirror-*.git/refs/heads/mirror", overwriteWith(strings.Repeat("1", 40)+"\n")),
		"configuration garbled": each("target/mirror-*.git/config", noise),
		"shallow garbled":       each("target/mirror-*.git/shallow", noise),
		"shallow gone":          each("target/mirror-*.git/shallow", gone),
		"packs gone":            each(packs+"*", gone),
		"pack cut off":          each(packs+"*.pack", half),
		"pack garbled":          each(packs+"*.pack", noise),
		"pack empty":            each(packs+"*.pack", empty),
		"index gone":            each(packs+"*.idx", gone),
		"index cut off":         each(packs+"*.idx", half),
		"index garbled":         each(packs+"*.idx", noise),
		"objects missing":       loseObjects,
		"killed in the first start": func(t *testing.T, r *setup) {
			gone(t, r.state)
			must(t, os.MkdirAll(filepath.Join(r.state, "target"), 0o700))
			for _, name := range []string{"lock", "mirror.json.tmp"} {
				must(t, os.WriteFile(filepath.Join(r.state, "target", name), nil, 0o600))
			}
		},
		"of another repository": func(t *testing.T, r *setup) {
			other := newWorld(t).renderer("other")
			other.define()
			other.once(0)
			gone(t, r.state)
			must(t, os.CopyFS(r.state, os.DirFS(other.state)))
		},
		"of another repository under our name": func(t *testing.T, r *setup) {
			other := newWorld(t).renderer("other")
			other.define()
			other.once(0)
			marker := readMarker(t, r)
			gone(t, r.state)
			must(t, os.CopyFS(r.state, os.DirFS(other.state)))
			theirs := readMarker(t, r)
			theirs["url"] = marker["url"]
			data, err := json.Marshal(theirs)
			must(t, err)
			must(t, os.WriteFile(filepath.Join(r.state, "target/mirror.json"), data, 0o600))
		},
	}
}

func overwriteWith(text string) func(t *testing.T, file string) {
	return func(t *testing.T, file string) { must(t, os.WriteFile(file, []byte(text), 0o600)) }
}

func readMarker(t *testing.T, r *setup) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.state, "target/mirror.json"))
	must(t, err)
	var marker map[string]any
	must(t, json.Unmarshal(data, &marker))
	return marker
}

// loseObjects leaves a mirror in which the head and its root folder are there, and
// nothing else: the damage that is not seen at the start.
func loseObjects(t *testing.T, r *setup) {
	packs, err := filepath.Glob(filepath.Join(r.state, "target/mirror-*.git/objects/pack/*"))
	must(t, err)
	mirror := filepath.Dir(filepath.Dir(filepath.Dir(packs[0])))
	r.w.repo.Git("cat-file", "-e", "main") // the server still has all
	for _, name := range []string{"main", "main^{tree}"} {
		kind := r.w.repo.Git("cat-file", "-t", name)
		text := filepath.Join(t.TempDir(), "object")
		cmd := exec.Command("sh", "-c", "git -C \"$1\" cat-file \"$2\" \"$3\" > \"$4\" && git --git-dir=\"$5\" hash-object -t \"$2\" -w \"$4\"",
			"sh", r.w.repo.Dir, kind, name, text, mirror)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, pack := range packs {
		must(t, os.Remove(pack))
	}
}

// TestRule09_DamagedState damages the state folder in each way; the next pass works.
func TestRule09_DamagedState(t *testing.T) {
	w := newWorld(t)
	r := w.renderer("renderer")
	r.define()
	audit := w.auditor(generated)
	rng := rand.New(rand.NewPCG(1, 1))
	for name, damage := range damages() {
		t.Run(name, func(t *testing.T) {
			r.once(0)
			damage(t, r)
			for _, change := range []string{"nothing changed", "something changed"} {
				if change == "something changed" {
					damage(t, r)
					w.desk.churn(rng)
				}
				if got := r.try(); got.code != 0 {
					t.Errorf("%s: exit code %d\n%s", change, got.code, got.said)
				}
				if shown := audit.shows(); shown != w.desk.latest() {
					t.Errorf("%s: the branch shows state %d, want %d", change, shown, w.desk.latest())
				}
			}
			if t.Failed() {
				must(t, os.RemoveAll(r.state)) // the next damage shall have a fair start
			}
		})
	}
	audit.commits()
	audit.pushes()
}

// TestForeignStateFolder: a folder with a stranger's files is no place for a mirror.
func TestForeignStateFolder(t *testing.T) {
	w := newWorld(t)
	r := w.renderer("renderer")
	r.define()
	head := w.repo.Head("main")
	w.write("renderer-state/target/thesis.tex", "ten years of work")
	w.write("renderer-state/target/figures/1.svg", "<svg/>")
	before := snapshot(t, r.state)
	got := r.once(2)
	mustContain(t, "refusal", got.said, "renderer: error: target: ", "renderer-state/target", "was not made by this program", "renderer: hint: ")
	if diff := cmp.Diff(before, snapshot(t, r.state)); diff != "" {
		t.Errorf("the folder changed (-before +after):\n%s", diff)
	}
	if w.repo.Head("main") != head {
		t.Error("something was pushed")
	}
}

// TestStateFolderBesideOthers: what else is in the state folder stays.
func TestStateFolderBesideOthers(t *testing.T) {
	w := newWorld(t)
	r := w.renderer("renderer")
	r.define()
	w.write("renderer-state/lost+found/x", "theirs")
	w.write("renderer-state/notes.txt", "theirs")
	r.once(0)
	for _, name := range []string{"lost+found/x", "notes.txt"} {
		if data, err := os.ReadFile(filepath.Join(r.state, name)); err != nil || string(data) != "theirs" {
			t.Errorf("%s: %v, %q", name, err, data)
		}
	}
}

// snapshot is every file below a folder with its content.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = string(data)
		return err
	}))
	return files
}

// TestSecondProcess: two processes cannot have one state folder. The second says so, and
// the first is not disturbed.
func TestSecondProcess(t *testing.T) {
	w := newWorld(t)
	r := w.renderer("renderer")
	r.define()
	run := r.start()
	run.ready()
	got := r.once(1)
	mustContain(t, "refusal", got.said, "renderer: error: ", "renderer-state/target", "in use by another process")
	audit := w.auditor(generated)
	w.desk.churn(rand.New(rand.NewPCG(3, 1)))
	run.hook()
	eventuallyIn(t, run, "the first process goes on", func() bool { return audit.shows() == w.desk.latest() })
	if code := run.stop(); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
	r.once(0) // the folder is free again
}

// TestReadOnlyState: without a place to write, the program does not start.
func TestReadOnlyState(t *testing.T) {
	w := newWorld(t)
	r := w.renderer("renderer")
	r.define()
	must(t, os.Mkdir(r.state, 0o555))
	file := r.config()
	cmd := r.command(t.Context(), "run", "--once", "--config", file)
	if os.Getuid() == 0 { // root may write everywhere
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		for dir := w.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			must(t, os.Chmod(dir, 0o755))
		}
		must(t, os.Chmod(file, 0o644))
		must(t, os.Chmod(filepath.Dir(program()), 0o755))
	}
	got := finish(t, cmd)
	if got.code != 2 {
		t.Errorf("exit code %d, want 2", got.code)
	}
	mustContain(t, "refusal", got.said, "renderer: error: ", "renderer-state", "permission denied")
}
