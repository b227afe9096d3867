// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/object"

	"resourceset.example/renderer/pkg/api"
)

// Options say which part of a repository is read. Both are slash paths from its
// root; a leading "./" or "/" is allowed.
type Options struct {
	// Path is the folder with the definitions. Empty is the whole repository.
	Path string
	// Exclude is the folder that rendered manifests are written to. Nothing in it
	// is read, not even where a kustomization names it. Empty leaves nothing out.
	Exclude string
	// Shown is how messages call a file, given by its slash path from the root. By
	// that path if nil.
	Shown func(path string) string
}

// ErrNoDefinitions is a path that exists and holds no definition.
var ErrNoDefinitions = errors.New("no ResourceSet, ResourceSetInputProvider or Receiver found")

// A PathError is a path that cannot be read as definitions: it is gone, is no
// folder, leads out of the repository, or holds no definition (ErrNoDefinitions).
type PathError struct {
	Path string
	Err  error
}

func (e *PathError) Error() string { return fmt.Sprintf("definitions path %q: %v", e.Path, e.Err) }

// Unwrap is the cause.
func (e *PathError) Unwrap() error { return e.Err }

// Suggestion is what to do about it.
func (e *PathError) Suggestion() string {
	return "nothing is removed while the definitions cannot be read; if they moved, set source.path"
}

// A Reader reads definitions from trees of one repository, and keeps what it has
// parsed: after a commit, only files that changed are parsed again. The zero
// value is ready for use, by one goroutine at a time. Kustomize keeps its schemas
// in globals, so no two Readers of one process should read at the same time.
//
// Objects are shared between reads, so they must not be changed.
type Reader struct {
	files  map[fileKey]*api.Definitions
	builds map[string]*build
}

// A fileKey is a content at a place. The place is part of positions.
type fileKey struct{ path, id string }

// Read reads the definitions of one tree. See [Reader.Read].
func Read(ctx context.Context, tree *object.Tree, opts Options) (*api.Definitions, error) {
	return new(Reader).Read(ctx, tree, opts)
}

// Read reads the definitions of one tree, which may be nil for an empty
// repository. Objects come sorted by namespace and name, faults and warnings by
// file and line.
//
// An error means that nothing is known about the definitions. Faults mean that
// some could not be read, so that what is missing cannot be told from what was
// removed.
func (r *Reader) Read(ctx context.Context, tree *object.Tree, opts Options) (*api.Definitions, error) {
	if tree == nil {
		return nil, &PathError{Path: opts.Path, Err: errors.New("the repository is empty")}
	}
	return r.readFiles(ctx, gitFiles{tree}, opts)
}

// ReadFolder reads the definitions below a folder on disk, with the rules of
// [Reader.Read]. Paths of the options start at root.
func ReadFolder(ctx context.Context, root *os.Root, opts Options) (*api.Definitions, error) {
	return new(Reader).readFiles(ctx, diskFiles{root}, opts)
}

func (r *Reader) readFiles(ctx context.Context, files Files, opts Options) (*api.Definitions, error) {
	v := newView(ctx, files, opts)
	folder, entry, err := v.lookup(strings.TrimLeft(opts.Path, "/"))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &PathError{Path: opts.Path, Err: err}
	case entry.Kind != Folder:
		return nil, &PathError{Path: opts.Path, Err: errors.New("is not a folder")}
	case v.excluded(folder):
		return nil, &PathError{Path: opts.Path, Err: errors.New("lies in the target path, which is never read")}
	}
	w := &walk{view: v, known: r, defs: &api.Definitions{}, seen: map[string]bool{}, now: Reader{
		files: map[fileKey]*api.Definitions{}, builds: map[string]*build{},
	}}
	patterns, err := v.patternsAbove(folder)
	if err == nil {
		err = w.folder(folder, patterns, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("read definitions below %q: %w", opts.Path, err)
	}
	*r = w.now
	w.defs.CheckDuplicates()
	w.defs.Sort()
	if w.defs.Empty() && len(w.defs.Faults) == 0 {
		return nil, &PathError{Path: opts.Path, Err: ErrNoDefinitions}
	}
	return w.defs, nil
}

// clean is the form in which paths are compared. What climbs above the root
// names nothing.
func clean(p string) string {
	return strings.Trim(path.Clean("/"+p), "/")
}
