// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"path"
	"slices"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// A file is one in the image.
type file struct {
	path    string
	content []byte
	mode    int64
}

// pack makes a tar archive whose bytes depend on nothing but the files. The folders
// that programs write to in a container are volumes, so that there is none here.
func pack(files []file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{".": true}
	header := func(name string, kind byte, mode, size int64) error {
		return w.WriteHeader(&tar.Header{Typeflag: kind, Name: name, Mode: mode, Size: size, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR})
	}
	for _, f := range files {
		var parents []string
		for dir := path.Dir(f.path); !made[dir]; dir = path.Dir(dir) {
			made[dir] = true
			parents = append(parents, dir)
		}
		for _, dir := range slices.Backward(parents) {
			if err := header(dir+"/", tar.TypeDir, 0o755, 0); err != nil {
				return nil, err
			}
		}
		if err := header(f.path, tar.TypeReg, f.mode, int64(len(f.content))); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// authorities are those that Mozilla trusts without a condition, in PEM, in the order
// of their digests. A condition (distrusted from some day on) cannot be said in a file.
func authorities() []byte {
	var roots [][]byte
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			roots = append(roots, root.Certificate)
		}
	}
	slices.SortFunc(roots, func(a, b []byte) int {
		x, y := sha256.Sum256(a), sha256.Sum256(b)
		return bytes.Compare(x[:], y[:])
	})
	var out bytes.Buffer
	for _, root := range roots {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root}) // a bytes.Buffer takes everything
	}
	return out.Bytes()
}
