// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source"
)

// readPaths reads files, folders and standard input ("-"). A path that
// does not exist is a wrong command line; all else that is wrong is a fault.
func readPaths(ctx context.Context, paths []string, exclude string, stdin io.Reader) (*api.Definitions, error) {
	defs := &api.Definitions{}
	var seen []string
	for _, p := range paths {
		if p != "-" {
			p = filepath.Clean(p)
		}
		if slices.Contains(seen, p) {
			continue
		}
		seen = append(seen, p)
		found, err := readPath(ctx, p, exclude, stdin)
		if err != nil {
			return nil, err
		}
		defs.Merge(found)
	}
	defs.CheckDuplicates()
	return defs, nil
}

func readPath(ctx context.Context, p, exclude string, stdin io.Reader) (*api.Definitions, error) {
	if p == "-" {
		data, err := readLimited(stdin)
		if err != nil {
			return nil, &exitError{code: exitFault, err: fmt.Errorf("standard input: %w", err)}
		}
		return parseFile("stdin", data), nil
	}
	info, err := os.Stat(p)
	switch {
	case err != nil:
		return nil, &exitError{code: exitUsage, err: err}
	case info.IsDir():
		return readFolder(ctx, p, exclude)
	}
	file, err := os.Open(p)
	if err != nil {
		return nil, &exitError{code: exitFault, err: err}
	}
	defer func() { _ = file.Close() }() // opened for reading
	data, err := readLimited(file)
	if err != nil {
		return nil, &exitError{code: exitFault, err: fmt.Errorf("%s: %w", p, err)}
	}
	return parseFile(p, data), nil
}

// readLimited reads as much as the service would of a file in a repository.
func readLimited(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, source.MaxFileSize+1))
	if err == nil && len(data) > source.MaxFileSize {
		err = fmt.Errorf("more than %d MiB, the most that a file of definitions may have", source.MaxFileSize>>20)
	}
	return data, err
}

// parseFile reads one file. That nothing of ours is in it was hardly meant.
func parseFile(name string, data []byte) *api.Definitions {
	defs := api.Parse(name, data)
	if defs.Empty() && len(defs.Faults)+len(defs.ConfigMaps) == 0 {
		defs.Faults = append(defs.Faults, noDefinitions(name))
	}
	return defs
}

func noDefinitions(name string) *api.Fault {
	return &api.Fault{
		Pos: api.Position{File: name}, Msg: source.ErrNoDefinitions.Error(),
		Hint: "definitions are objects of " + api.APIVersion + " or " + api.ReceiverAPIVersion,
	}
}

// readFolder reads a folder as part of the repository that it is in, so that a
// kustomization may refer to other folders of the repository, and to nothing else.
func readFolder(ctx context.Context, folder, exclude string) (*api.Definitions, error) {
	top, rel, err := repository(folder)
	if err != nil {
		return nil, &exitError{code: exitFault, err: err}
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, &exitError{code: exitFault, err: err}
	}
	defer func() { _ = root.Close() }() // opened for reading
	opts := source.Options{Path: rel, Shown: shownFrom(top)}
	if exclude != "" {
		if opts.Exclude, err = within(top, exclude); err != nil {
			return nil, usageErrorf("--exclude: %v", err)
		}
	}
	defs, err := source.ReadFolder(ctx, root, opts)
	switch {
	case errors.Is(err, source.ErrNoDefinitions):
		return &api.Definitions{Faults: []*api.Fault{noDefinitions(folder)}}, nil
	case err != nil:
		return nil, &exitError{code: exitFault, err: err}
	}
	return defs, nil
}

// repository is the folder with .git that a folder is in, or the folder itself,
// and the slash path from there.
func repository(folder string) (top, rel string, err error) {
	folder, err = filepath.Abs(folder)
	if err != nil {
		return "", "", err
	}
	for top = folder; ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			rel, err := within(top, folder)
			return top, rel, err
		}
		if filepath.Dir(top) == top {
			return folder, "", nil
		}
	}
}

// within is the slash path of a folder below top.
func within(top, folder string) (string, error) {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(top, abs)
	if err != nil {
		return "", err
	}
	if rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", fmt.Errorf("%s is not below %s", folder, top)
	}
	return filepath.ToSlash(rel), nil
}

// shownFrom turns paths in a repository into paths that the user can open.
func shownFrom(top string) func(string) string {
	work, err := os.Getwd()
	return func(p string) string {
		abs := filepath.Join(top, filepath.FromSlash(p))
		if rel, relErr := filepath.Rel(work, abs); err == nil && relErr == nil {
			return rel
		}
		return abs
	}
}

// wholeFolders says whether the arguments are folders only.
func wholeFolders(paths []string) bool {
	return !slices.ContainsFunc(paths, func(p string) bool {
		info, err := os.Stat(p)
		return p == "-" || err != nil || !info.IsDir()
	})
}
