// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"resourceset.example/renderer/internal/reconcile"
	"resourceset.example/renderer/pkg/api"
)

// TestReadme runs the commands of the README's quick start, in one shell and in
// their order. The make targets are run by CI itself.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var script []string
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		var lines []string
		for line := range strings.Lines(block[1]) {
			if !strings.HasPrefix(line, "make ") && !strings.HasPrefix(line, "export PATH=") {
				lines = append(lines, line)
			}
		}
		script = append(script, strings.Join(lines, ""))
	}
	if len(script) < 5 {
		t.Fatalf("found %d blocks of commands in the README", len(script))
	}

	dir := t.TempDir()
	cmd := exec.Command("bash", "-euxo", "pipefail", "-c", strings.Join(script, "\n"))
	cmd.Dir = filepath.Join(dir)
	cmd.Env = append(os.Environ(),
		"PATH="+filepath.Dir(program(t))+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+dir, "TMPDIR="+dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=reader", "GIT_AUTHOR_EMAIL=reader@example.com",
		"GIT_COMMITTER_NAME=reader", "GIT_COMMITTER_EMAIL=reader@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the README's commands: %v\n%s", err, out)
	}
	for _, want := range []string{
		"apps/teams: 2 added", "Trigger: once", "clusters/preview/generated/apps/teams", "nothing changed at main@sha1:",
		"apps/teams   teams-red", "1 proved, 0 altered", "ResourceSet/apps/teams",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the README's commands did not print %q:\n%s", want, out)
		}
	}
}

// The examples of every provider are valid, and every type that is fetched has one.
func TestProviderDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		defs := api.Parse("docs/providers.md", []byte(block[1]))
		for _, f := range append(defs.Faults, defs.Warnings...) {
			t.Errorf("%v\n%s", f, block[1])
		}
		for _, p := range defs.Providers {
			shown[p.Spec.Type] = true
		}
	}
	for _, name := range reconcile.FetchedTypes() {
		if !shown[name] || !strings.Contains(string(text), "\n## "+name+"\n") {
			t.Errorf("docs/providers.md has no section with an example of type %s", name)
		}
	}
}
