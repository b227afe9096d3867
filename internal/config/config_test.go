// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each file under testdata/faults gives the lines of the golden file beside it:
// every fault with its line and hint.
func TestFaults(t *testing.T) {
	files, _ := filepath.Glob("testdata/faults/*.yaml")
	if len(files) == 0 {
		t.Fatal("no cases: wrong folder?")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			cfg, _, err := Load(filepath.Base(file), data)
			if cfg != nil {
				t.Error("a configuration with faults was returned")
			}
			got := printed(t, err)
			if strings.Contains(got, "s3cret") || strings.Contains(got, "hunter2") {
				t.Errorf("a credential is repeated in\n%s", got)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update { // go test ./internal/config -update; then read the diff
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

// printed is what a command shows of an error.
func printed(t *testing.T, err error) string {
	t.Helper()
	var faults Faults
	if !errors.As(err, &faults) || len(faults) == 0 {
		t.Fatalf("want Faults, got %v", err)
	}
	var b strings.Builder
	for _, f := range faults {
		b.WriteString(f.Error() + "\n")
		if hint := f.Suggestion(); hint != "" {
			b.WriteString("  hint: " + hint + "\n")
		}
	}
	return b.String()
}

func load(t *testing.T, text string) (*Config, []*Fault) {
	t.Helper()
	cfg, warnings, err := Load("c.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return cfg, warnings
}

func TestDefaults(t *testing.T) {
	cfg, warnings := load(t, "source: {url: https://h/r, branch: trunk, auth: {secret: a/b}}\ntarget: {path: ./gen/, flux: {sourceRef: {name: fleet}}}\n")
	if len(warnings) != 0 {
		t.Errorf("want no warning: %v", warnings)
	}
	want := Default()
	want.Source = Source{URL: "https://h/r", Branch: "trunk", Path: ".", Interval: time.Minute, Auth: Auth{SecretRef{"a", "b"}}}
	want.Target.URL, want.Target.Branch, want.Target.Auth = "https://h/r", "trunk", want.Source.Auth
	want.Target.Path = "gen"
	want.Target.Flux = &Flux{SourceRef: SourceRef{Kind: "GitRepository", Name: "fleet"}, Interval: 10 * time.Minute, Handover: time.Hour}
	want.file, want.lines = cfg.file, cfg.lines
	if diff := cmp.Diff(want, cfg, cmp.AllowUnexported(Config{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestURLs(t *testing.T) {
	for _, tt := range []struct {
		url  string
		want string // part of the message, or empty for a good URL
	}{
		{"https://git.example.com/org/fleet.git", ""},
		{"http://127.0.0.1:8080/fleet", ""},
		{"ssh://git@git.example.com:2222/org/fleet.git", ""},
		{"git@github.com:org/fleet.git", ""},
		{"github.com:org/fleet", ""},
		{"file:///srv/git/fleet.git", ""},
		{"file://srv/git", "is not the URL"},
		{"file:///", "is not the URL"},
		{"git://h/r", "is not the URL"},
		{"https://", "is not the URL"},
		{"https://h", "is not the URL"},
		{"ssh://-oProxyCommand=x/r", "is not the URL"},
		{"-oProxyCommand=x:r", "is not the URL"},
		{`C:\git\fleet`, "is not the URL"},
		{"/srv/git", "is a path"},
		{"https://ghp_token@h/r", "holds credentials"},
		{"ssh://git:pw@h/r", "holds credentials"},
		{"https://h/r#main", "has a query or a fragment"},
	} {
		_, _, err := Load("c.yaml", []byte("source: {url: '"+tt.url+"'}\ntarget: {path: out}\n"))
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.url, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: got %v, want %q", tt.url, err, tt.want)
		}
	}
}

// FR-33: a target that is or contains other people's files is refused.
func TestTargetPath(t *testing.T) {
	for _, tt := range []struct {
		source, target, extra string
		want                  string
	}{
		{"./clusters", "./clusters/generated", "", ""},
		{".", "generated", "", ""},
		{"./clusters", "./clusters-2", "", ""},
		{"./clusters/a", "./clusters/b", "", ""},
		{"./clusters", ".", "", "whole repository"},
		{"./clusters", "./", "", "whole repository"},
		{"./clusters", "/", "", "absolute"},
		{"./clusters", "''", "", "required"},
		{"./clusters", "/clusters", "", "absolute"},
		{"./clusters", "clusters/../..", "", "contains .."},
		{"./clusters", "./clusters/", "", "is source.path"},
		{"./clusters/a/b", "./clusters", "", "contains source.path"},
		{"./clusters", "./clusters", "url: https://h/other", ""},
		{"./clusters", "./clusters", "branch: rendered", ""},
		{"./clusters", "./clusters", "url: https://H/r.git/", "is source.path"},
		{"./clusters", ".", "url: https://h/other", "whole repository"},
	} {
		text := "source: {url: https://h/r, path: " + tt.source + "}\ntarget:\n  path: " + tt.target + "\n"
		if tt.extra != "" {
			text += "  " + tt.extra + "\n"
		}
		_, _, err := Load("c.yaml", []byte(text))
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s%v", text, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), "target.path: ") || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%sgot %v, want %q", text, err, tt.want)
		}
	}
}

func TestCredentialsStayOnTheirHost(t *testing.T) {
	const source = "source: {url: https://h/r, auth: {secret: a/b}}\n"
	cfg, _ := load(t, source+"target: {path: out, url: https://h/other}\n")
	if cfg.Target.Auth != cfg.Source.Auth {
		t.Error("same host: source.auth is not used")
	}
	cfg, warnings := load(t, source+"target: {path: out, url: https://evil/other}\n")
	if !cfg.Target.Auth.Secret.IsZero() {
		t.Error("another host got source.auth")
	}
	if len(warnings) != 1 || warnings[0].Path != "target.url" || warnings[0].Line != 2 {
		t.Errorf("want a warning of target.url on line 2: %v", warnings)
	}
}

// All that the example asks for is done: it warns of nothing.
func TestExampleWarnsOfNothing(t *testing.T) {
	_, warnings, err := Load("config.example.yaml", mustRead(t, exampleFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		t.Error(w)
	}
}

func TestReadAndCheckFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	write(t, file, "source: {url: https://h/r, auth: {secret: flux-system/git}}\ntarget: {path: out}\nsecrets: {directory: "+dir+"/secrets}\n")

	_, _, err := Read(file, nil)
	if got := printed(t, err); !strings.Contains(got, file+":1: source.auth.secret: secret flux-system/git: ") || strings.Count(got, "hint: ") != 1 {
		t.Errorf("missing secret: %s", got)
	}
	if err := os.MkdirAll(filepath.Join(dir, "secrets/flux-system/git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err = Read(file, nil); err != nil {
		t.Errorf("with the secret in place: %v", err)
	}
	_, _, err = Read(filepath.Join(dir, "nosuch.yaml"), nil)
	if got := printed(t, err); !strings.Contains(got, "nosuch.yaml: there is no such file") {
		t.Errorf("missing file: %s", got)
	}
	if _, _, err = Read(dir, nil); err == nil {
		t.Error("a folder was read")
	}
	cfg, _, err := Read("-", strings.NewReader("source: {url: https://h/r}\ntarget: {path: out}\n"))
	if err != nil || cfg.Target.Path != "out" {
		t.Errorf("stdin: %v", err)
	}
	_, _, err = Read("-", strings.NewReader("source: 1"))
	if got := printed(t, err); !strings.Contains(got, "stdin:1: source: ") {
		t.Errorf("faults of stdin: %s", got)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(mustRead(f, exampleFile))
	files, _ := filepath.Glob("testdata/faults/*.yaml")
	for _, file := range files {
		f.Add(mustRead(f, file))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, _, err := Load("c.yaml", data)
		if (cfg == nil) == (err == nil) {
			t.Fatalf("cfg %v, err %v", cfg, err)
		}
		if err != nil {
			return
		}
		if p := cfg.Target.Path; p == "." || p == "" || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "..") {
			t.Fatalf("target.path %q", p)
		}
		if cfg.SameTree() && strings.HasPrefix(cfg.Source.Path+"/", cfg.Target.Path+"/") {
			t.Fatalf("target %q contains source %q", cfg.Target.Path, cfg.Source.Path)
		}
	})
}

func mustRead(tb testing.TB, file string) []byte {
	tb.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
