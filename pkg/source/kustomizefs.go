// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"resourceset.example/renderer/pkg/api"
)

// What kustomize sees: the repository at /repo, and at /build a kustomization
// that includes the folder to be built and asks for each object's origin. The
// two are apart because kustomize refuses bases above what includes them.
const (
	repoFolder  = "/repo"
	entryFolder = "/build"
)

var (
	errReadOnly = errors.New("the repository is read-only")
	errRefused  = errors.New("refused")
)

// A kustomizeFS is the file system of one build. It reads files when they are
// asked for, has nothing that is not in the repository, and inspects every
// kustomization before kustomize gets it: the network is out of reach then.
//
// The target path looks like a folder with an empty kustomization: it is
// usually listed beside the definitions, and what is in it is our own output.
type kustomizeFS struct {
	view   *view
	folder string // what is built
	faults []*api.Fault
	read   []string // resolved paths of the files that were read

	lookups  map[string]string // each path that was asked for, and what was there
	unstable bool              // the lookups cannot tell whether contents changed
}

func newKustomizeFS(v *view, folder string) *kustomizeFS {
	return &kustomizeFS{view: v, folder: folder, lookups: map[string]string{}}
}

var _ filesys.FileSystem = (*kustomizeFS)(nil)

// inRepo is the path within the repository, if it has one.
func inRepo(p string) (string, bool) {
	p = path.Clean("/" + filepath.ToSlash(p))
	if p == repoFolder {
		return "", true
	}
	return strings.CutPrefix(p, repoFolder+"/")
}

// lookup resolves a path of the repository and records what was found.
func (k *kustomizeFS) lookup(p string) (string, Entry, error) {
	resolved, entry, err := k.view.lookup(p)
	if err == nil && k.view.excluded(resolved) {
		err = fs.ErrNotExist
	}
	k.lookups[p] = state(resolved, entry, err)
	if err == nil && entry.Kind == File && entry.ID == "" {
		k.unstable = true
	}
	return resolved, entry, err
}

// state tells apart all that may be at a path. The content of a folder is no
// part of it: a build sees of a folder only the paths that it asks for.
func state(resolved string, e Entry, err error) string {
	switch {
	case err != nil:
		return "absent"
	case e.Kind == File:
		return "file " + e.ID + " " + resolved
	}
	return "folder " + resolved
}

// unchanged says whether all lookups of an earlier build still find the same.
func (k *kustomizeFS) unchanged(lookups map[string]string) bool {
	for p, before := range lookups {
		resolved, entry, err := k.view.lookup(p)
		if err == nil && k.view.excluded(resolved) {
			err = fs.ErrNotExist
		}
		if state(resolved, entry, err) != before {
			return false
		}
	}
	return true
}

// isTarget says whether a path lies in the target path, as written or by links.
func (k *kustomizeFS) isTarget(p string) bool {
	if k.view.excluded(p) {
		return true
	}
	resolved, _, err := k.view.lookup(p)
	return err == nil && k.view.excluded(resolved)
}

// ReadFile implements filesys.FileSystem.
func (k *kustomizeFS) ReadFile(p string) ([]byte, error) {
	if path.Clean(p) == path.Join(entryFolder, konfig.DefaultKustomizationFileName()) {
		return k.entryPoint(), nil
	}
	at, ok := inRepo(p)
	switch {
	case !ok:
		return nil, notExist(p)
	case k.isTarget(at) || k.isTarget(path.Dir(at)):
		if path.Base(at) == konfig.DefaultKustomizationFileName() {
			return []byte("resources: []\n"), nil
		}
		return nil, notExist(p)
	}
	resolved, entry, err := k.lookup(at)
	if err != nil || entry.Kind != File {
		return nil, notExist(p)
	}
	data, err := k.view.content(resolved)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: at, Err: err}
	}
	k.read = append(k.read, resolved)
	if isKustomization(Entry{Name: path.Base(at), Kind: File}) && !k.inspect(at, data) {
		return nil, &fs.PathError{Op: "read", Path: at, Err: errRefused}
	}
	return data, nil
}

func (k *kustomizeFS) entryPoint() []byte {
	return []byte("resources: [" + quoteYAML(path.Join("..", repoFolder, k.folder)) + "]\nbuildMetadata: [originAnnotations]\n")
}

// quoteYAML is the single-quoted form, which has one escape only.
func quoteYAML(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// originOf is the file that an object was written in, or empty.
func (k *kustomizeFS) originOf(res *resource.Resource) string {
	origin, err := res.GetOrigin()
	if err != nil || origin == nil || origin.Path == "" {
		return ""
	}
	at, ok := inRepo(path.Join(entryFolder, filepath.ToSlash(origin.Path)))
	if !ok {
		return ""
	}
	resolved, entry, err := k.view.lookup(at)
	if err != nil || entry.Kind != File {
		return ""
	}
	return resolved
}

// CleanedAbs implements filesys.FileSystem.
func (k *kustomizeFS) CleanedAbs(p string) (filesys.ConfirmedDir, string, error) {
	if p = path.Clean("/" + filepath.ToSlash(p)); p == entryFolder {
		return entryFolder, "", nil
	}
	at, ok := inRepo(p)
	if !ok {
		return "", "", notExist(p)
	}
	if k.isTarget(path.Dir(at)) && path.Base(at) == konfig.DefaultKustomizationFileName() {
		return filesys.ConfirmedDir(path.Dir(p)), path.Base(at), nil
	}
	if k.isTarget(at) {
		return filesys.ConfirmedDir(p), "", nil
	}
	resolved, entry, err := k.lookup(at)
	switch {
	case err != nil:
		return "", "", notExist(p)
	case entry.Kind == Folder:
		return filesys.ConfirmedDir(path.Join(repoFolder, resolved)), "", nil
	case entry.Kind == File:
		dir, file := path.Split(path.Join(repoFolder, resolved))
		return filesys.ConfirmedDir(path.Clean(dir)), file, nil
	}
	return "", "", notExist(p)
}

// IsDir implements filesys.FileSystem.
func (k *kustomizeFS) IsDir(p string) bool {
	_, file, err := k.CleanedAbs(p)
	return err == nil && file == ""
}

// Exists implements filesys.FileSystem.
func (k *kustomizeFS) Exists(p string) bool {
	_, _, err := k.CleanedAbs(p)
	return err == nil
}

// Glob implements filesys.FileSystem. No build uses patterns, so a path matches itself.
func (k *kustomizeFS) Glob(pattern string) ([]string, error) {
	if k.Exists(pattern) {
		return []string{pattern}, nil
	}
	return nil, nil
}

func notExist(p string) error { return &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist} }

// The rest of filesys.FileSystem is of no use to a build, or writes.

func (k *kustomizeFS) Create(string) (filesys.File, error)  { return nil, errReadOnly }
func (k *kustomizeFS) Mkdir(string) error                   { return errReadOnly }
func (k *kustomizeFS) MkdirAll(string) error                { return errReadOnly }
func (k *kustomizeFS) RemoveAll(string) error               { return errReadOnly }
func (k *kustomizeFS) WriteFile(string, []byte) error       { return errReadOnly }
func (k *kustomizeFS) Open(string) (filesys.File, error)    { return nil, errors.ErrUnsupported }
func (k *kustomizeFS) ReadDir(string) ([]string, error)     { return nil, errors.ErrUnsupported }
func (k *kustomizeFS) Walk(string, filepath.WalkFunc) error { return errors.ErrUnsupported }
