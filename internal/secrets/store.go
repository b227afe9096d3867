// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// maxSecretSize is Kubernetes' own limit for the data of one Secret.
const maxSecretSize = 1 << 20

// maxReads bounds how often a Secret is read again because it was swapped meanwhile.
const maxReads = 5

// dataLink is the symbolic link that the kubelet swaps to publish a new version
// of a mounted Secret; the keys beside it are links through it.
const dataLink = "..data"

// ErrNotFound is what a NotFoundError matches with errors.Is.
var ErrNotFound = errors.New("secret not found")

var (
	namespacePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	namePattern      = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// A NotFoundError is a Secret that the store does not have.
type NotFoundError struct {
	Namespace, Name string
	Path            string // the folder that was looked for; empty: not on a disk
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("secret %s/%s not found", e.Namespace, e.Name)
}

// Is makes the error match ErrNotFound.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// Suggestion says what should have been there.
func (e *NotFoundError) Suggestion() string {
	if e.Path == "" {
		return fmt.Sprintf("make a Secret %s in namespace %s of the cluster", e.Name, e.Namespace)
	}
	return fmt.Sprintf("expected one file per key in %s (secrets.directory/<namespace>/<name>/<key>)", e.Path)
}

// A Store reads Secrets below one directory. It keeps nothing in memory.
type Store struct {
	dir string
}

// NewStore returns the store of a directory. The directory need not exist yet.
func NewStore(dir string) *Store { return &Store{dir: dir} }

// Get returns the data of one Secret: all keys from one version of it, also when
// the kubelet swaps it during the call. Symbolic links are followed inside the
// store's directory only.
func (s *Store) Get(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	if err := checkName(namespace, name); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, s.notFound(namespace, name)
		}
		return nil, fmt.Errorf("secret %s/%s: %w", namespace, name, err)
	}
	defer func() { _ = root.Close() }()

	folder := path.Join(namespace, name)
	var data map[string][]byte
	for range maxReads {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("secret %s/%s: %w", namespace, name, err)
		}
		before := generation(root, folder)
		data, err = readFolder(root, folder)
		if generation(root, folder) == before {
			break
		}
		if err == nil {
			err = errors.New("changed while it was read")
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, s.notFound(namespace, name)
	case err != nil:
		return nil, fmt.Errorf("secret %s/%s: %w", namespace, name, err)
	}
	return data, nil
}

// A Name names one Secret.
type Name struct{ Namespace, Name string }

// List returns the names of all Secrets in the store, sorted. Folders whose name
// cannot be one of a namespace or Secret are left out.
func (s *Store) List(ctx context.Context) ([]Name, error) {
	root, err := os.OpenRoot(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("secrets: %w", err)
	}
	defer func() { _ = root.Close() }()

	var names []Name
	namespaces, err := folders(root, ".", namespacePattern)
	if err != nil {
		return nil, fmt.Errorf("secrets: %w", err)
	}
	for _, namespace := range namespaces {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("secrets: %w", err)
		}
		found, err := folders(root, namespace, namePattern)
		if err != nil {
			return nil, fmt.Errorf("secrets: %w", err)
		}
		for _, name := range found {
			names = append(names, Name{namespace, name})
		}
	}
	return names, nil
}

func (s *Store) notFound(namespace, name string) error {
	return &NotFoundError{Namespace: namespace, Name: name, Path: filepath.Join(s.dir, namespace, name)}
}

func checkName(namespace, name string) error {
	if !namespacePattern.MatchString(namespace) {
		return fmt.Errorf("secret %q/%q: not a namespace name", namespace, name)
	}
	if len(name) > 253 || !namePattern.MatchString(name) {
		return fmt.Errorf("secret %q/%q: not a Secret name", namespace, name)
	}
	return nil
}

// generation tells one version of a mounted Secret from the next: the targets of
// the kubelet's links on the way to it. Each version has a folder of its own, so
// equal generations before and after a read mean that nothing was swapped.
func generation(root *os.Root, folder string) string {
	var links []string
	for dir := folder; ; dir = path.Dir(dir) {
		target, err := root.Readlink(path.Join(dir, dataLink))
		if err != nil {
			target = "" // a plain folder, which has no versions
		}
		links = append(links, target)
		if dir == "." {
			return strings.Join(links, "\x00")
		}
	}
}

func readFolder(root *os.Root, folder string) (map[string][]byte, error) {
	entries, err := readDir(root, folder)
	if err != nil {
		return nil, err
	}
	data := make(map[string][]byte, len(entries))
	left := int64(maxSecretSize)
	for _, entry := range entries {
		key := entry.Name()
		if strings.HasPrefix(key, "..") {
			continue // the kubelet's own
		}
		file := path.Join(folder, key)
		info, err := root.Stat(file)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			continue
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("key %q is not a regular file", key)
		}
		value, err := readFile(root, file, left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(value))
		data[key] = value
	}
	return data, nil
}

func readFile(root *os.Root, file string, limit int64) ([]byte, error) {
	f, err := root.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	value, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(value)) > limit {
		return nil, fmt.Errorf("more than %d bytes of data, which no Secret can have", maxSecretSize)
	}
	return value, nil
}

func folders(root *os.Root, dir string, pattern *regexp.Regexp) ([]string, error) {
	entries, err := readDir(root, dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if !pattern.MatchString(entry.Name()) {
			continue
		}
		info, err := root.Stat(path.Join(dir, entry.Name()))
		if err == nil && info.IsDir() { // a link that leads nowhere is no Secret
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// readDir lists a folder, sorted by name.
func readDir(root *os.Root, dir string) ([]fs.DirEntry, error) {
	return fs.ReadDir(root.FS(), dir)
}
