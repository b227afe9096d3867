// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"sigs.k8s.io/kustomize/api/konfig"

	"resourceset.example/renderer/pkg/api"
)

// maxDepth is how deep folders may be nested.
const maxDepth = 100

// A walk collects the definitions of a folder and its sub-folders.
type walk struct {
	view *view
	defs *api.Definitions
	seen map[string]bool // resolved paths of folders and files that were read

	known *Reader // what earlier reads have parsed
	now   Reader  // what this read has parsed or taken over
}

// folder reads one folder, given by its resolved path and the ignore patterns
// that hold for it from above. An error ends the whole
// read; what is wrong with single files becomes a fault.
func (w *walk) folder(folder string, above []gitignore.Pattern, depth int) error {
	if w.seen[folder] || w.view.excluded(folder) {
		return nil
	}
	w.seen[folder] = true
	if depth > maxDepth {
		w.fault(folder, "", "folders are nested more than %d deep", maxDepth)
		return nil
	}
	entries, err := w.view.list(folder)
	if err != nil {
		return fmt.Errorf("folder %q: %w", folder, err)
	}
	if i := slices.IndexFunc(entries, isKustomization); i >= 0 {
		return w.kustomization(folder, entries[i].Name)
	}
	patterns, err := w.view.patterns(folder, above)
	if err != nil {
		return fmt.Errorf("file %q: %w", path.Join(folder, ignoreFile), err)
	}
	for _, e := range entries {
		at := path.Join(folder, e.Name)
		if ignored(at, e, patterns) {
			continue
		}
		if err := w.entry(at, e, patterns, depth); err != nil {
			return err
		}
	}
	return nil
}

func isKustomization(e Entry) bool {
	return (e.Kind == File || e.Kind == Link) && slices.Contains(konfig.RecognizedKustomizationFileNames(), e.Name)
}

func (w *walk) entry(at string, e Entry, patterns []gitignore.Pattern, depth int) error {
	if e.Kind == Link {
		resolved, target, err := w.view.lookup(at)
		if err != nil {
			return w.brokenLink(at, err)
		}
		at, e.Kind, e.ID = resolved, target.Kind, target.ID
	}
	switch {
	case e.Kind == Folder:
		return w.folder(at, patterns, depth+1)
	case e.Kind == File && isYAML(e.Name):
		return w.file(at, e)
	}
	return nil
}

// brokenLink reports a link that leads nowhere or out of the repository, which
// is never followed. Only where a definition may hide behind it is it a fault.
func (w *walk) brokenLink(at string, err error) error {
	if ctxErr := w.view.ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	if isYAML(at) {
		w.fault(at, "replace the link by the file itself", "symbolic link: %v", err)
	}
	return nil
}

func isYAML(name string) bool {
	ext := path.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// file reads one file, given by its resolved path.
func (w *walk) file(at string, e Entry) error {
	if w.seen[at] || w.view.excluded(at) {
		return nil
	}
	w.seen[at] = true
	key := fileKey{at, e.ID}
	defs, parsed := w.known.files[key]
	if !parsed {
		data, err := w.view.content(at)
		var size *sizeError
		switch {
		case errors.As(err, &size):
			w.fault(at, "split it, or move large data out of the definitions", "the file %v", size)
			return nil
		case err != nil:
			return fmt.Errorf("file %q: %w", at, err)
		}
		defs = api.Parse(w.view.shown(at), data)
	}
	if e.ID != "" {
		w.now.files[key] = defs
	}
	w.defs.Merge(defs)
	return nil
}

func (w *walk) fault(file, hint, format string, args ...any) {
	w.defs.Faults = append(w.defs.Faults, newFault(w.view.shown(file), hint, format, args...))
}

func newFault(file, hint, format string, args ...any) *api.Fault {
	return &api.Fault{
		Pos: api.Position{File: file}, Msg: fmt.Sprintf(format, args...), Hint: strings.TrimSpace(hint),
	}
}
