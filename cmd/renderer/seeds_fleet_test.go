// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/internal/gittest"
)

// Where a fleet keeps things in its repository.
const (
	definitions = "clusters/preview"
	generated   = "clusters/preview/generated"
)

// A fleet is what a user of renderer has: a Git repository with definitions, a
// folder of secrets, a configuration file, and a network. The program runs as a
// process of its own, so that signals, environment and exit codes are the real ones.
//
// When the test ends, nothing that it printed and nothing in the repository may
// hold a secret.
type fleet struct {
	t        testing.TB
	dir      string
	repo     *gittest.Repo
	internet *internet
	public   *forgetest.CA // whom the machine trusts

	program string
	url     string            // of the repository; that of repo if empty
	auth    string            // secret for it, if any
	extra   string            // more lines of the configuration
	log     string            // level
	secrets map[string]string // value → where it is

	mu      sync.Mutex
	printed bytes.Buffer
}

func newFleet(t testing.TB) *fleet {
	t.Helper()
	public, err := forgetest.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, dir: t.TempDir(), repo: gittest.NewRepo(t), internet: newInternet(t), public: public,
		program: program(t), log: "debug", secrets: map[string]string{}}
	for _, dir := range []string{"secrets", "state", "no-more-authorities"} {
		if err := os.MkdirAll(f.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f.write("authorities.pem", string(public.PEM()))
	t.Cleanup(f.checkSecrets)
	return f
}

func (f *fleet) path(elem ...string) string {
	return filepath.Join(append([]string{f.dir}, elem...)...)
}

func (f *fleet) write(name, content string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(f.path(name)), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(f.path(name), []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// secret stores a Kubernetes Secret, as a mounted one looks: keys are links
// through ..data.
func (f *fleet) secret(namespace, name string, data map[string]string) {
	f.t.Helper()
	folder := filepath.Join("secrets", namespace, name)
	if err := os.RemoveAll(f.path(folder)); err != nil {
		f.t.Fatal(err)
	}
	for key, value := range data {
		f.write(filepath.Join(folder, "..2026_01_05", key), value)
		if err := os.Symlink(filepath.Join("..data", key), f.path(folder, key)); err != nil {
			f.t.Fatal(err)
		}
		if !slices.Contains([]string{"username", "ca.crt", "tls.crt", "known_hosts"}, key) {
			f.secrets[value] = namespace + "/" + name + ", key " + key
		}
	}
	if err := os.Symlink("..2026_01_05", f.path(folder, "..data")); err != nil {
		f.t.Fatal(err)
	}
}

// define commits definitions, by file name below the folder of definitions.
func (f *fleet) define(files map[string]string) string {
	f.t.Helper()
	inRepo := map[string]string{}
	for name, content := range files {
		inRepo[definitions+"/"+name] = content
	}
	return f.repo.Commit("main", "Change definitions", inRepo)
}

// seed is a file of the seeds.
func seed(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/seeds", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// config writes the configuration file and returns its path.
func (f *fleet) config() string {
	f.t.Helper()
	address := f.url
	if address == "" {
		address = f.repo.URL()
	}
	auth := ""
	if f.auth != "" {
		auth = fmt.Sprintf("\n  auth: {secret: %s}", f.auth)
	}
	f.write("config.yaml", fmt.Sprintf(`source:
  url: %s
  path: %s
  interval: 1s%s
target:
  path: %s
  commit:
    author: {name: renderer, email: renderer@example.com}
secrets: {directory: %s}
state: {directory: %s}
server: {listen: "127.0.0.1:0"}
log: {level: %s, format: json}
%s`, address, definitions, auth, generated, f.path("secrets"), f.path("state"), f.log, f.extra))
	return f.path("config.yaml")
}

// command is the program with an environment of its own.
func (f *fleet) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, f.program, args...)
	cmd.Dir = f.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + f.dir, "TMPDIR=" + os.TempDir(),
		"HTTPS_PROXY=" + f.internet.proxy.URL,
		"SSL_CERT_FILE=" + f.path("authorities.pem"), "SSL_CERT_DIR=" + f.path("no-more-authorities"),
	}
	return cmd
}

// A result is what a run of the program came to.
type result struct {
	code           int
	stdout, stderr string
}

// run executes the program to its end.
func (f *fleet) run(args ...string) result {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*patience)
	defer cancel()
	cmd := f.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		f.t.Fatal(err)
	}
	if ctx.Err() != nil {
		f.t.Fatalf("renderer %v did not end:\n%s", args, stderr.String())
	}
	f.keep(stdout.Bytes())
	f.keep(stderr.Bytes())
	return result{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// once is `renderer run --once`, which has to end with a code.
func (f *fleet) once(code int) result {
	f.t.Helper()
	r := f.run("run", "--once", "--config", f.config())
	if r.code != code {
		f.t.Fatalf("exit code %d, want %d\n%s%s", r.code, code, r.stdout, r.stderr)
	}
	return r
}

// quiet is a pass that must not change the repository.
func (f *fleet) quiet(code int) result {
	f.t.Helper()
	before := f.repo.Head("main")
	r := f.once(code)
	if after := f.repo.Head("main"); after != before {
		f.t.Fatalf("the pass committed:\n%s\n%s", f.repo.Git("log", "--stat", before+".."+after), r.stderr)
	}
	return r
}

func (f *fleet) keep(printed []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.printed.Write(printed)
}

// forget empties the state folder.
func (f *fleet) forget() {
	f.t.Helper()
	if err := os.RemoveAll(f.path("state")); err != nil {
		f.t.Fatal(err)
	}
}

// checkSecrets looks for every secret in all that was printed and in every Git
// object: raw, as it stands in a URL, and in base64.
func (f *fleet) checkSecrets() {
	f.mu.Lock()
	defer f.mu.Unlock()
	objects := f.repo.Git("cat-file", "--batch", "--batch-all-objects", "--unordered")
	for _, value := range slices.Sorted(maps.Keys(f.secrets)) {
		for _, form := range []string{strings.TrimSpace(value), url.QueryEscape(value), base64.StdEncoding.EncodeToString([]byte(value))} {
			if strings.Contains(f.printed.String(), form) {
				f.t.Errorf("the output holds the secret %s", f.secrets[value])
			}
			if strings.Contains(objects, form) {
				f.t.Errorf("the repository holds the secret %s", f.secrets[value])
			}
		}
	}
}

// mustContain fails unless text has every part.
func mustContain(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}
