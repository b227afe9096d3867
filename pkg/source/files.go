// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// A Kind is what an entry of a folder is.
type Kind int

// Kinds of entries. Other is what cannot be read: submodules, sockets.
const (
	Other Kind = iota
	File
	Folder
	Link
)

// An Entry is one name in a folder.
type Entry struct {
	Name string
	Kind Kind
	// ID stands for the content: equal IDs mean equal content. It is empty where
	// that cannot be known without reading.
	ID string
}

// Files is a repository, read-only. Paths are slash paths from its root, without
// a leading slash; the root is "". No method follows a link.
type Files interface {
	// List is the content of a folder, sorted by name.
	List(folder string) ([]Entry, error)
	// Read is the content of a file, or the target of a link. A content longer than
	// limit is a *sizeError.
	Read(path string, limit int64) ([]byte, error)
}

// gitFiles are the files of one Git tree.
type gitFiles struct{ root *object.Tree }

func (g gitFiles) folder(path string) (*object.Tree, error) {
	if path == "" {
		return g.root, nil
	}
	return g.root.Tree(path)
}

func (g gitFiles) List(path string) ([]Entry, error) {
	tree, err := g.folder(path)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(tree.Entries))
	for i, e := range tree.Entries {
		kind := Other
		switch e.Mode {
		case filemode.Regular, filemode.Executable, filemode.Deprecated:
			kind = File
		case filemode.Dir:
			kind = Folder
		case filemode.Symlink:
			kind = Link
		}
		entries[i] = Entry{Name: e.Name, Kind: kind, ID: e.Hash.String()}
	}
	slices.SortFunc(entries, byName) // Git sorts folders as if they ended in a slash
	return entries, nil
}

func (g gitFiles) Read(path string, limit int64) ([]byte, error) {
	entry, err := g.root.FindEntry(path)
	if err != nil {
		return nil, err
	}
	file, err := g.root.TreeEntryFile(entry)
	if err != nil {
		return nil, err
	}
	if file.Size > limit {
		return nil, &sizeError{limit: limit}
	}
	r, err := file.Reader()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	return data, errors.Join(err, r.Close())
}

// diskFiles are the files below a folder on disk. The root keeps even a link
// that is swapped in while we read from leading out.
type diskFiles struct{ root *os.Root }

func (d diskFiles) List(path string) ([]Entry, error) {
	dir, err := d.root.Open(dotted(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // opened for reading
	found, err := dir.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(found))
	for i, e := range found {
		kind := Other
		switch mode := e.Type(); {
		case mode.IsRegular():
			kind = File
		case mode.IsDir():
			kind = Folder
		case mode&fs.ModeSymlink != 0:
			kind = Link
		}
		entries[i] = Entry{Name: e.Name(), Kind: kind}
	}
	slices.SortFunc(entries, byName)
	return entries, nil
}

func (d diskFiles) Read(path string, limit int64) ([]byte, error) {
	info, err := d.root.Lstat(dotted(path))
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := d.root.Readlink(dotted(path))
		return []byte(target), err
	}
	file, err := d.root.Open(dotted(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // opened for reading
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, &sizeError{limit: limit}
	}
	return data, err
}

func dotted(path string) string { return cmp.Or(path, ".") }

func byName(a, b Entry) int { return cmp.Compare(a.Name, b.Name) }

// A sizeError is a file that is too big to be a definition.
type sizeError struct{ limit int64 }

func (e *sizeError) Error() string { return fmt.Sprintf("is larger than %d MiB", e.limit>>20) }
