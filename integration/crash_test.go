// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestRule09_KillAtWill kills the service again and again at random moments: at its
// start, while it fetches and while it pushes, with an orchestrator that never rests and
// somebody else who commits to the branch. Between two lives its state folder is
// sometimes damaged or removed. Whatever it finds, the next life gets on with the work.
func TestRule09_KillAtWill(t *testing.T) {
	seed := number(t, "RENDERER_SEED", time.Now().UnixNano())
	kills := int(number(t, "RENDERER_KILLS", 100))
	t.Logf("RENDERER_SEED=%d RENDERER_KILLS=%d", seed, kills)
	rng := rand.New(rand.NewPCG(uint64(seed), 0))

	w := newWorld(t)
	r := w.renderer("renderer")
	r.define()
	audit := w.auditor(generated)
	others := w.people("foreign", 300*time.Millisecond)

	// How long a life has to be to push something depends on the machine.
	began := time.Now()
	first := r.start()
	eventually(t, "the first push", func() bool { return audit.shows() >= 0 })
	life := min(max(400*time.Millisecond, 3*time.Since(began)/2), 2*time.Second)
	first.kill()
	t.Logf("lives of 20 ms to %s", life)

	pushed, damaged := 0, map[string]int{}
	for n := range kills {
		for range 1 + rng.IntN(3) {
			w.desk.churn(rng)
		}
		damage := damageState(t, rng, r.state)
		before, heads := w.desk.latest(), audit.shows()
		run := r.start()
		if damage != "" {
			// What was damaged has to work again before the next blow.
			damaged[firstWord(damage)]++
			eventuallyIn(t, run, fmt.Sprintf("life %d: recovery from %s", n, damage), func() bool { return audit.shows() >= before })
		} else {
			time.Sleep(20*time.Millisecond + rand.N(life)) // not a wait for something: the moment of the kill
		}
		run.kill()
		if !run.killed() {
			t.Fatalf("life %d ended by itself, after %q: %v\n%s", n, damage, run.cmd.ProcessState, run.logged())
		}
		if audit.shows() != heads {
			pushed++
		}
	}
	t.Logf("%d of %d lives pushed; damage: %v", pushed, kills, damaged)

	last := r.start()
	eventuallyIn(t, last, "the orchestrator's last state", func() bool { return audit.shows() == w.desk.latest() })
	if code := last.stop(); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
	foreign := others.leave()
	r.quiet()
	t.Logf("audited %d commits and %d pushes, beside %d of somebody else", audit.commits(), audit.pushes(), foreign)
	if pushed < kills/10 {
		t.Errorf("only %d of %d lives pushed anything: too short to show much", pushed, kills)
	}
}

func eventuallyIn(t testing.TB, run *service, what string, condition func() bool) {
	t.Helper()
	eventually(t, what, func() bool {
		select {
		case <-run.ended:
			t.Fatalf("%s: the service ended: %v\n%s", what, run.cmd.ProcessState, run.logged())
		default:
		}
		return condition()
	})
}

func firstWord(text string) string {
	for i, c := range text {
		if c == ' ' {
			return text[:i]
		}
	}
	return text
}

// damageState does something bad to a state folder, in one of six cases, and says what.
func damageState(t testing.TB, rng *rand.Rand, dir string) string {
	t.Helper()
	kind := rng.IntN(24)
	if kind > 3 {
		return ""
	}
	if kind == 0 {
		must(t, os.RemoveAll(dir))
		return "removal of all of it"
	}
	var files []string
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	}))
	if len(files) == 0 {
		return ""
	}
	file := files[rng.IntN(len(files))]
	info, err := os.Stat(file)
	must(t, err)
	must(t, os.Chmod(file, 0o600))
	name, err := filepath.Rel(dir, file)
	must(t, err)
	switch kind {
	case 1:
		must(t, os.Truncate(file, rng.Int64N(info.Size()+1)))
		return "truncation of " + name
	case 2:
		must(t, os.WriteFile(file, garbage(rng, int(info.Size())), 0o600))
		return "garbage in " + name
	}
	must(t, os.Remove(file))
	return "loss of " + name
}

func garbage(rng *rand.Rand, size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(rng.IntN(256))
	}
	return data
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
