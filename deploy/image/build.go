// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Where things are in the image. The binary looks for authorities where Go does.
const (
	binaryPath      = "renderer"
	authoritiesPath = "etc/ssl/certs/ca-certificates.crt"
	sbomPath        = "usr/share/sbom/renderer.cdx.json"
	user            = "65532:65532" // nobody else's; not root
)

// build writes the layout, and returns the digest of the image.
func build(binary, out, tag string) (string, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return "", err
	}
	architecture, err := inspect(program)
	if err != nil {
		return "", fmt.Errorf("%s: %w", binary, err)
	}
	sbom, version, err := describe(program)
	if err != nil {
		return "", fmt.Errorf("%s: %w", binary, err)
	}
	layer, err := pack([]file{
		{authoritiesPath, authorities(), 0o444},
		{binaryPath, program, 0o555},
		{sbomPath, sbom, 0o444},
	})
	if err != nil {
		return "", err
	}
	image, err := assemble(layer, architecture, version)
	if err != nil {
		return "", err
	}
	if err := write(image, out, tag); err != nil {
		return "", err
	}
	digest, err := image.Digest()
	return digest.String(), err
}

// inspect refuses what does not run in an empty image, and returns its architecture.
func inspect(program []byte) (string, error) {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return "", errors.New("is no Linux program")
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", errors.New("needs a dynamic linker: build it with CGO_ENABLED=0")
		}
	}
	switch f.Machine {
	case elf.EM_X86_64:
		return "amd64", nil
	case elf.EM_AARCH64:
		return "arm64", nil
	}
	return "", fmt.Errorf("is for %s, which there is no image for", f.Machine)
}

func assemble(content []byte, architecture, version string) (v1.Image, error) {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	config.Config = v1.Config{
		User:         user,
		Entrypoint:   []string{"/" + binaryPath},
		Cmd:          []string{"run", "--config", "/etc/renderer/config.yaml"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "renderer",
			"org.opencontainers.image.version":  version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

// write replaces a layout. A folder that is something else is left alone.
func write(image v1.Image, out, tag string) error {
	if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(out, "oci-layout")); err != nil {
			return fmt.Errorf("%s is not empty and no OCI image layout: name another folder", out)
		}
		if err := os.RemoveAll(out); err != nil {
			return err
		}
	}
	path, err := layout.Write(out, empty.Index)
	if err != nil {
		return err
	}
	var options []layout.Option
	if tag != "" {
		options = append(options, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag}))
	}
	return path.AppendImage(image, options...)
}
