// SPDX-License-Identifier: Apache-2.0

//go:build linux

package integration

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFullDisk runs out of disk in the state folder at several points: at the start,
// with room for a part of the mirror, and later on. What failed is said, nothing reaches
// the remote that is not whole, and with room again the next pass does its work.
func TestFullDisk(t *testing.T) {
	w := newWorld(t)
	r := w.renderer("renderer")
	r.define()
	// Something that does not fit: incompressible, beside what is generated.
	ballast := make([]byte, 600<<10)
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range ballast {
		ballast[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/"[rng.IntN(64)]
	}
	w.repo.Commit("main", "Add ballast", map[string]string{"ballast.txt": string(ballast)})
	must(t, os.MkdirAll(r.state, 0o755))
	head := w.repo.Head("main")
	mounted := newMount(t, r)
	audit := w.auditor(generated)

	t.Log("not a byte left")
	got := mounted.run(`dd if=/dev/zero of="$STATE/fill" bs=1k count=1000 2>/dev/null; ` + onceThere)
	mustContain(t, "full from the start", got, "no space left on device", "exit 2")
	t.Log("room for a part of the mirror")
	got = mounted.run(`rm -f "$STATE/fill"; ` + onceThere)
	mustContain(t, "full in the first fetch", got, "no space left on device", "exit 1")
	if w.repo.Head("main") != head {
		t.Fatal("something was pushed")
	}
	t.Log("room again")
	got = mounted.run(`mount -o remount,size=4m "$STATE"; ` + onceThere)
	mustContain(t, "room again", got, "exit 0")
	if audit.shows() != w.desk.latest() {
		t.Fatalf("the branch shows state %d, want %d", audit.shows(), w.desk.latest())
	}

	t.Log("full again while there is something to push, and something to fetch")
	w.desk.churn(rng)
	mounted.run(`dd if=/dev/zero of="$STATE/fill" bs=1k count=9000 2>/dev/null`)
	got = mounted.run(onceThere)
	if audit.shows() != w.desk.latest() && !strings.Contains(got, "no space left on device") {
		t.Errorf("nothing landed, and the reason is not said:\n%s", got)
	}
	shown := audit.shows()
	w.desk.churn(rng)
	w.repo.Commit("main", "Somebody else", map[string]string{"more.txt": string(ballast[:100<<10])})
	head = w.repo.Head("main")
	got = mounted.run(onceThere)
	mustContain(t, "full in a later fetch", got, "no space left on device", "exit 1")
	if w.repo.Head("main") != head || shown < 0 {
		t.Errorf("with nothing that can be read, something was pushed; before: state %d", shown)
	}
	got = mounted.run(`rm -f "$STATE/fill"; ` + onceThere)
	mustContain(t, "room in the end", got, "exit 0")
	if audit.shows() != w.desk.latest() {
		t.Errorf("the branch shows state %d, want %d", audit.shows(), w.desk.latest())
	}
	audit.commits()
	audit.pushes()
}

const onceThere = `"$PROGRAM" run --once --config "$CONFIG" 2>&1; echo "exit $?"`

// A mount is a shell in a mount namespace of its own, in which the state folder is a
// small file system. Nothing outside sees it, and it is gone when the shell is.
type mount struct {
	t     testing.TB
	stdin *os.File
	lines *os.File
}

func newMount(t testing.TB, r *setup) *mount {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("unshare is not installed: no small file system to fill")
	}
	cmd := exec.Command(unshare, "--mount", "--propagation", "private", "sh")
	cmd.Env = append(os.Environ(), "STATE="+r.state, "PROGRAM="+program(), "CONFIG="+r.config(), "HOME="+r.w.dir)
	cmd.Dir = filepath.Dir(r.state)
	in, stdin, err := os.Pipe()
	must(t, err)
	lines, out, err := os.Pipe()
	must(t, err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, out
	must(t, cmd.Start())
	in.Close()
	out.Close()
	t.Cleanup(func() {
		stdin.Close() // the shell ends, and the namespace with it
		_ = cmd.Wait()
		lines.Close()
	})
	m := &mount{t: t, stdin: stdin, lines: lines}
	if got := m.run(`mount -t tmpfs -o size=128k tmpfs "$STATE" && echo mounted`); !strings.Contains(got, "mounted") {
		t.Skip("this user may not mount a small file system to fill: " + got)
	}
	return m
}

// run executes a line of shell and returns what it prints.
func (m *mount) run(line string) string {
	m.t.Helper()
	const end = "== end of output =="
	if _, err := m.stdin.WriteString(line + "\necho; echo '" + end + "'\n"); err != nil {
		return err.Error()
	}
	var got strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(got.String(), end) {
		n, err := m.lines.Read(buffer)
		got.Write(buffer[:n])
		if err != nil {
			return got.String() + err.Error()
		}
	}
	text, _, _ := strings.Cut(got.String(), end)
	return strings.TrimSpace(text)
}
