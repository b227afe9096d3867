// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts run the test binary as renderer.
func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){
		"renderer":     main,
		naiveBuildName: naiveBuild,
	})
}

// tests are all tests, with a folder for the program that some of them build.
type tests struct{ *testing.M }

func (t tests) Run() int {
	if os.Getenv("GORACE") == "" {
		// A program with the race detector sleeps a second when it ends, and the
		// scripts run hundreds of them. What it waits for is over: commands return
		// when their goroutines have ended.
		if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	dir, err := os.MkdirTemp("", "renderer-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	buildProgram = sync.OnceValues(func() (string, error) {
		file := filepath.Join(dir, "renderer")
		out, err := exec.Command("go", "build", "-buildvcs=false", "-o", file, ".").CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("go build: %w\n%s", err, out)
		}
		return file, nil
	})
	return t.M.Run()
}

var buildProgram func() (string, error)

// program is the built program, as users have it: without the race detector, so
// that what is measured is what they get.
func program(t testing.TB) string {
	t.Helper()
	file, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestScripts runs the command line stories in testdata, one file each.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts found (%v): wrong folder?", err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			// Git needs a home without the developer's settings.
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			env.Setenv("TZ", "UTC")
			env.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
	})
}
