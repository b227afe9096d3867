// SPDX-License-Identifier: Apache-2.0

//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// maxResident is what a start on a repository of 30,000 generated files may take of memory.
const maxResident = 1 << 30

// TestLargeRepository measures what 30,000 generated files cost: writing them for the
// first time, starting on them with an empty state folder, and changing one input.
func TestLargeRepository(t *testing.T) {
	const tenants = 7500 // as many as an orchestrator's answer may hold, with four objects each
	w := newWorld(t)
	r := w.renderer("renderer")
	r.define()
	more := w.repo.Read("main", r.source+"/sets.yaml")
	for _, set := range []string{"one", "two"} {
		_, object, _ := strings.Cut(more, "    - apiVersion: v1\n      kind: ConfigMap\n      metadata:\n        name: "+set+"-")
		object, _, _ = strings.Cut(object, "---\n")
		object = "    - apiVersion: v1\n      kind: ConfigMap\n      metadata:\n        name: " + set + "-" + object
		more = strings.Replace(more, object, object+strings.Replace(object, set+"-", set+"-more-", 1), 1)
	}
	more = strings.Replace(more, "  insecure: true\n", "  insecure: true\n  filter: {limit: 10000}\n", 1)
	w.repo.Commit("main", "Define more objects", map[string]string{r.source + "/sets.yaml": more})
	w.desk.change(func(all map[string]string) {
		for n := range tenants {
			all[fmt.Sprintf("t%05d", n)] = "1.0.0"
		}
	})
	w.desk.freeze()
	audit := w.auditor(generated)
	measure(t, r, "first commit of all files")
	if n := len(w.repo.Files("main")); n < 4*tenants {
		t.Fatalf("%d files, want %d", n, 4*tenants)
	}
	must(t, os.RemoveAll(r.state))
	head := w.repo.Head("main")
	measure(t, r, "first start, nothing to do")
	if w.repo.Head("main") != head {
		t.Error("a start on what is in order committed something")
	}
	measure(t, r, "warm start, nothing to do")
	w.desk.one("t00042", "2.0.0")
	measure(t, r, "warm start, one input changed")
	if got := audit.versionOf("one", "t00042"); got != "2.0.0" {
		t.Errorf("version %q was committed, want 2.0.0", got)
	}
}

// measure runs one pass and prints the time and the peak of resident memory.
func measure(t *testing.T, r *setup, what string) {
	t.Helper()
	cmd := r.command(t.Context(), "run", "--once", "--config", r.config())
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	began := time.Now()
	must(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	peak := int64(0)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for running := true; running; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("%s: %v\n%s", what, err, said.String())
			}
			running = false
		case <-tick.C:
			peak = max(peak, highWater(cmd.Process.Pid))
		}
	}
	t.Logf("%-32s %6s, peak %d MB resident, user+system %s", what, time.Since(began).Round(10*time.Millisecond), peak>>20,
		(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Round(10*time.Millisecond))
	if peak > maxResident {
		t.Errorf("%s: %d MB are more than %d", what, peak>>20, maxResident>>20)
	}
}

// highWater is the kernel's record of the most memory that a process had resident. The
// resource usage of a child will not do: it counts what the parent had when it forked.
func highWater(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0 // it has ended
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10
		}
	}
	return 0
}
