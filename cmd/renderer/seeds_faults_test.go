// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"resourceset.example/renderer/internal/forgetest"
)

// TestConfigFaults: what is wrong with a configuration is said with its line, and
// nothing else happens.
func TestConfigFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(config string) string
		want []string
	}{
		"unknown field": {
			func(c string) string { return strings.Replace(c, "  interval: 1s", "  intervall: 1s", 1) },
			[]string{"config.yaml:4: ", "intervall", "renderer: hint: ", "interval"},
		},
		"bad URL": {
			func(c string) string { return strings.Replace(c, "  url: file://", "  url: gopher://", 1) },
			[]string{"config.yaml:2: source.url: ", "renderer: hint: ", "https://"},
		},
		"both at once": {
			func(c string) string {
				return strings.NewReplacer("  url: file://", "  url: gopher://", "level: debug", "level: chatty").Replace(c)
			},
			[]string{"config.yaml:2: ", "config.yaml:12: ", "chatty"},
		},
		"not YAML": {
			func(c string) string { return c + "\t}{" },
			[]string{"config.yaml:13: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.define(map[string]string{"resourceset.yaml": seed(t, "external-service/resourceset.yaml")})
			config, err := os.ReadFile(f.config())
			if err != nil {
				t.Fatal(err)
			}
			f.write("config.yaml", c.edit(string(config)))
			head := f.repo.Head("main")
			for _, args := range [][]string{{"run", "--once"}, {"run"}} {
				r := f.run(append(args, "--config", f.path("config.yaml"))...)
				if r.code != 2 || r.stdout != "" {
					t.Errorf("%v: exit code %d, want 2\n%s%s", args, r.code, r.stdout, r.stderr)
				}
				mustContain(t, "stderr", r.stderr, c.want...)
			}
			if f.repo.Head("main") != head {
				t.Error("something was pushed")
			}
		})
	}

	t.Run("missing file", func(t *testing.T) {
		t.Parallel()
		r := newFleet(t).run("run", "--once", "--config", "nowhere.yaml")
		if r.code != 2 {
			t.Errorf("exit code %d, want 2", r.code)
		}
		mustContain(t, "stderr", r.stderr, "renderer: error: ", "nowhere.yaml")
	})
}

// teams is a ResourceSet of inline inputs.
func teams(name string, teams ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: %s, namespace: apps}
spec:
  inputs:
`, name)
	for _, team := range teams {
		fmt.Fprintf(&b, "  - {team: %s, size: %d}\n", team, len(team))
	}
	fmt.Fprintf(&b, `  resources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "%s-<< inputs.team >>", namespace: apps}
    data:
      size: << inputs.size | quote >>
`, name)
	return b.String()
}

// TestRule03_BrokenDefinition: a file that cannot be read is said with its line. The
// others are rendered, and nothing is removed for being missing.
func TestRule03_BrokenDefinition(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.define(map[string]string{"one.yaml": teams("one", "red"), "two.yaml": teams("two", "red"), "three.yaml": teams("three", "red")})
	f.once(0)

	f.define(map[string]string{
		"one.yaml":   strings.Replace(teams("one", "red"), "resources:", "resourcez:", 1),
		"two.yaml":   teams("two", "red", "green"),
		"three.yaml": "", // gone: or is it in the file that cannot be read?
		"four.yaml":  teams("four", "red"),
	})
	r := f.once(1)
	mustContain(t, "stderr", r.stderr, "clusters/preview/one.yaml:7: ", "resourcez", "did you mean")
	mustContain(t, "stdout", r.stdout, "apps/two: 1 added", "apps/four: 1 added")
	for _, object := range []string{"one-red", "two-red", "two-green", "three-red", "four-red"} {
		mustContain(t, "what kustomize builds", strings.Join(f.built(), "\n"), "ConfigMap/apps/"+object)
	}
	f.quiet(1)

	t.Log("mended: now what is gone goes")
	f.define(map[string]string{"one.yaml": teams("one", "red")})
	f.once(0)
	if built := strings.Join(f.built(), "\n"); strings.Contains(built, "three") {
		t.Errorf("ResourceSet three is gone, its objects are not:\n%s", built)
	}
}

// TestRule04_FailingTemplate: one ResourceSet that cannot be rendered, and one input
// set among three, keep what is committed for them; all others go on.
func TestRule04_FailingTemplate(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.define(map[string]string{"bad.yaml": teams("bad", "red"), "good.yaml": teams("good", "red"), "mixed.yaml": teams("mixed", "red", "green", "blue")})
	f.once(0)

	broken := strings.Replace(teams("bad", "red"), "inputs.size", "inputs.sise", 1)
	mixed := strings.Replace(teams("mixed", "red", "green", "blue"), "<< inputs.size | quote >>",
		`<< if eq inputs.team "green" >><< fail "no green today" >><< end >>"<< mul inputs.size 2 >>"`, 1)
	f.define(map[string]string{"bad.yaml": broken, "good.yaml": teams("good", "violet"), "mixed.yaml": mixed})
	r := f.once(1)
	mustContain(t, "stderr", r.stderr, "ResourceSet apps/bad", "sise", "clusters/preview/bad.yaml:",
		"ResourceSet apps/mixed", "no green today", "clusters/preview/mixed.yaml:")
	want := map[string]string{
		"bad-red":     "3", // as it was
		"good-violet": "6",
		"mixed-red":   "6", "mixed-green": "5", "mixed-blue": "8",
	}
	built := f.built()
	if len(built) != len(want) {
		t.Errorf("kustomize builds %v", built)
	}
	for name, size := range want {
		set, _, _ := strings.Cut(name, "-")
		for _, file := range f.generatedFiles() {
			if strings.HasSuffix(file, "/apps_"+name+"__ConfigMap.yaml") && strings.HasPrefix(file, "apps/"+set+"/") {
				wantField(t, f.manifest(file), "data|size", size)
				delete(want, name)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("not found: %v in %v", want, f.generatedFiles())
	}
	f.quiet(1)
}

// TestRule08_OwnCredentialInOutput: somebody who knows our token puts it where it
// would be rendered. That set is refused; fleet looks for the token everywhere.
func TestRule08_OwnCredentialInOutput(t *testing.T) {
	t.Parallel()
	f, _, repo := newPreviews(t)
	repo.Open(forgetest.PR{Labels: []string{previewLabel}})
	repo.Open(forgetest.PR{Labels: []string{previewLabel}, Author: readToken})
	r := f.once(1)
	mustContain(t, "stderr", r.stderr, "ResourceSet podinfo-preview/podinfo", "podinfo-preview/github-token-readonly")
	f.wantFiles(treeOf(1)...)

	t.Log("a token that only the Receiver needs, and a commit that would be a document of its own")
	repo.Open(forgetest.PR{Labels: []string{previewLabel}, Author: hookToken})
	r = f.quiet(1)
	mustContain(t, "stderr", r.stderr, "podinfo-preview/receiver-token")
	repo.Open(forgetest.PR{Labels: []string{previewLabel}, SHA: "x\n---\n" + hookToken})
	r = f.quiet(1)
	mustContain(t, "stderr", r.stderr, "change request 4 has a commit whose name is")
}
