// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// MaxFileSize is how large one file of definitions may be, in bytes.
const MaxFileSize = 5 << 20

// Bounds of one read. A repository beyond them is not a set of definitions, and
// reading on would cost memory for nothing.
const (
	maxFileSize  = MaxFileSize
	maxTotalSize = 256 << 20
	maxLinks     = 40 // as Linux has it
	maxLinkSize  = 4096
)

var (
	errOutside  = errors.New("leads out of the repository")
	errLoop     = errors.New("leads in a circle")
	errTooLarge = fmt.Errorf("the definitions are larger than %d MiB together", maxTotalSize>>20)
)

// A view is a repository with its links resolved: a path names what it leads to,
// and nothing that is not in the repository has a path. It is for one read by
// one goroutine.
type view struct {
	ctx     context.Context // of the read that the view is made for
	files   Files
	exclude string // the target path; "" when nothing is left out
	shown   func(path string) string
	folders map[string][]Entry
	read    int64
}

func newView(ctx context.Context, files Files, opts Options) *view {
	v := &view{ctx: ctx, files: files, exclude: clean(opts.Exclude), shown: opts.Shown, folders: map[string][]Entry{}}
	if v.shown == nil {
		v.shown = func(path string) string { return path }
	}
	return v
}

// excluded says whether a path is the target path or below it.
func (v *view) excluded(p string) bool {
	return v.exclude != "" && (p == v.exclude || strings.HasPrefix(p, v.exclude+"/"))
}

// list is the content of a folder, given by its resolved path.
func (v *view) list(folder string) ([]Entry, error) {
	if entries, known := v.folders[folder]; known {
		return entries, nil
	}
	if err := v.ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := v.files.List(folder)
	if err != nil {
		return nil, err
	}
	v.folders[folder] = entries
	return entries, nil
}

// lookup follows a path to a file or folder: its resolved path and its entry.
func (v *view) lookup(p string) (string, Entry, error) {
	var at string
	here := Entry{Kind: Folder}
	rest := strings.Split(p, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch {
		case name == "" || name == ".":
			continue
		case here.Kind != Folder:
			return "", Entry{}, fs.ErrNotExist
		case name == ".." && at == "":
			return "", Entry{}, errOutside
		case name == "..":
			at, here = parent(at), Entry{Kind: Folder, Name: path.Base(parent(at))}
			continue
		}
		entry, err := v.entry(at, name)
		if err != nil {
			return "", Entry{}, err
		}
		if entry.Kind != Link {
			at, here = path.Join(at, name), entry
			continue
		}
		if links++; links > maxLinks {
			return "", Entry{}, errLoop
		}
		target, err := v.files.Read(path.Join(at, name), maxLinkSize)
		if err != nil {
			return "", Entry{}, err
		}
		if path.IsAbs(string(target)) {
			return "", Entry{}, errOutside
		}
		rest = append(strings.Split(string(target), "/"), rest...)
	}
	return at, here, nil
}

// parent is the folder above a folder.
func parent(folder string) string {
	if up := path.Dir(folder); up != "." {
		return up
	}
	return ""
}

func (v *view) entry(folder, name string) (Entry, error) {
	entries, err := v.list(folder)
	if err != nil {
		return Entry{}, err
	}
	i, ok := slices.BinarySearchFunc(entries, Entry{Name: name}, byName)
	if !ok {
		return Entry{}, fs.ErrNotExist
	}
	return entries[i], nil
}

// content reads a file, given by its resolved path.
func (v *view) content(p string) ([]byte, error) {
	if err := v.ctx.Err(); err != nil {
		return nil, err
	}
	data, err := v.files.Read(p, maxFileSize)
	if err != nil {
		return nil, err
	}
	if v.read += int64(len(data)); v.read > maxTotalSize {
		return nil, errTooLarge
	}
	return data, nil
}
