// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// program builds renderer, once, as the Makefile does.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "renderer-image-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "renderer")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", file, "./cmd/renderer")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return file, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if file, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(file))
	}
	os.Exit(code)
}

func assembled(t *testing.T) (dir, digest string) {
	t.Helper()
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "image")
	if digest, err = build(binary, dir, "renderer:test"); err != nil {
		t.Fatal(err)
	}
	return dir, digest
}

// unpack reads the only layer of an image back, as a container engine does.
func unpack(t *testing.T, dir string) (root string, headers []*tar.Header) {
	t.Helper()
	path, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%v, %+v", err, manifest)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%v, %d layers", err, len(layers))
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	root = t.TempDir()
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return root, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		headers = append(headers, header)
		target := filepath.Join(root, header.Name)
		if header.Typeflag == tar.TypeDir {
			if err := os.Mkdir(target, header.FileInfo().Mode()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, data, header.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
	}
}

// The same program gives the same image.
func TestReproducible(t *testing.T) {
	a, digest := assembled(t)
	b, again := assembled(t)
	if digest != again {
		t.Errorf("digests %s and %s", digest, again)
	}
	_, headers := unpack(t, a)
	for _, h := range headers {
		if !h.ModTime.Equal(time.Unix(0, 0)) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%+v", h)
		}
	}
	one, err := os.ReadFile(filepath.Join(a, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := os.ReadFile(filepath.Join(b, "index.json"))
	if err != nil || !bytes.Equal(one, two) {
		t.Errorf("%v\n%s\n%s", err, one, two)
	}
}

// The program runs with nothing around it but what is in the image: as another user,
// with the image as its root, where the test may do that.
func TestSmoke(t *testing.T) {
	dir, _ := assembled(t)
	root, _ := unpack(t, dir)
	run := func(args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(root, binaryPath), args...)
		cmd.Env = []string{}
		if os.Getuid() == 0 {
			if err := os.Chmod(root, 0o755); err != nil {
				t.Fatal(err)
			}
			cmd.Path, cmd.Args[0], cmd.Dir = "/"+binaryPath, "/"+binaryPath, "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
		}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("version"); err != nil || !strings.HasPrefix(out, "renderer ") {
		t.Errorf("version: %v\n%s", err, out)
	}
	var exit *exec.ExitError
	out, err := run("run", "--config", "/etc/renderer/config.yaml")
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(out, "/etc/renderer/config.yaml") {
		t.Errorf("without a configuration: %v\n%s", err, out)
	}
}

func TestAuthorities(t *testing.T) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities()) {
		t.Fatal("no certificate")
	}
	if n := strings.Count(string(authorities()), "BEGIN CERTIFICATE"); n < 50 {
		t.Errorf("only %d authorities", n)
	}
}

// The list names what the binary was made from, with versions, and has no time in it.
func TestSBOM(t *testing.T) {
	dir, _ := assembled(t)
	root, _ := unpack(t, dir)
	data, err := os.ReadFile(filepath.Join(root, sbomPath))
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(data), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, c := range *bom.Components {
		names = append(names, c.Name)
		if c.Version == "" || c.PackageURL == "" {
			t.Errorf("%+v", c)
		}
	}
	for _, want := range []string{"std", "github.com/go-git/go-git/v5", "github.com/Masterminds/sprig/v3"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing", want)
		}
	}
	var raw map[string]any
	if err := json.Unmarshal(data, &raw); err != nil || raw["serialNumber"] != nil || bom.Metadata.Timestamp != "" {
		t.Errorf("%v: %v %q", err, raw["serialNumber"], bom.Metadata.Timestamp)
	}
}

func TestRefused(t *testing.T) {
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "precious"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ binary, out, want string }{
		"script":       {script, t.TempDir(), "no Linux program"},
		"missing":      {filepath.Join(other, "missing"), t.TempDir(), "no such file"},
		"other folder": {binary, other, "no OCI image layout"},
	} {
		if _, err := build(test.binary, test.out, ""); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
	if _, err := os.Stat(filepath.Join(other, "precious")); err != nil {
		t.Error(err)
	}
}
