// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen, on a busy machine.
const patience = time.Minute

// program is where TestMain finds or builds the program.
func program() string { return os.Getenv("RENDERER_PROGRAM") }

func TestMain(m *testing.M) {
	os.Exit(withProgram(m.Run))
}

// withProgram builds the program as `make build` does. RENDERER_PROGRAM names one
// that is built already.
func withProgram(run func() int) int {
	if program() != "" {
		return run()
	}
	dir, err := os.MkdirTemp("", "renderer-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "renderer")
	if err := buildProgram(file, ""); err != nil {
		fmt.Fprintln(os.Stderr, "build of the program:", err)
		return 1
	}
	if err := os.Setenv("RENDERER_PROGRAM", file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

// buildProgram builds the program as a version that it says it is.
func buildProgram(file, version string) error {
	flags := "-s -w"
	if version != "" {
		flags += " -X main.version=" + version
	}
	build := exec.Command("go", "build", "-C", "..", "-trimpath", "-ldflags", flags, "-o", file, "./cmd/renderer")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	return build.Run()
}

// number is a whole number from the environment.
func number(t testing.TB, name string, fallback int64) int64 {
	t.Helper()
	n, err := strconv.ParseInt(cmp.Or(os.Getenv(name), strconv.FormatInt(fallback, 10)), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
