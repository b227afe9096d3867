// SPDX-License-Identifier: Apache-2.0

package gitrepository

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/gitwriter"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

const (
	maxEntries = 500_000   // names that are looked at in one commit
	maxFile    = 256 << 10 // of one file with fields
	maxFiles   = 16 << 20  // of all together
)

// A Paths provider lists the folders and files of one repository that match.
type Paths struct {
	object           *api.ResourceSetInputProvider
	repo             *repository
	include, exclude []glob

	mu    sync.Mutex
	at    plumbing.Hash // the commit that items are from
	items []provider.Item
}

// NewPaths returns the provider of a definition of type GitRepositoryPath.
func NewPaths(cfg provider.Config) (*Paths, error) {
	filter := cfg.Object.Spec.Filter
	if len(filter.IncludePath) == 0 {
		return nil, misconfigured("spec.filter.includePath is missing", `say what to look for, like ["apps/*"] or ["tenants/*.yaml"]`)
	}
	include, err := newGlobs(filter.IncludePath)
	if err != nil {
		return nil, err
	}
	exclude, err := newGlobs(filter.ExcludePath)
	if err != nil {
		return nil, err
	}
	repo, err := open(cfg)
	if err != nil {
		return nil, err
	}
	return &Paths{object: cfg.Object, repo: repo, include: include, exclude: exclude}, nil
}

// Fetch lists what matches, by path.
func (p *Paths) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error) {
	ctx, cancel := transport.Bound(ctx)
	defer cancel()
	refs, err := p.repo.list(ctx)
	if err != nil {
		return provider.Result{}, err
	}
	commit, err := resolve(refs, p.object.Spec.Revision)
	if err != nil {
		return provider.Result{}, err
	}
	items, err := p.read(ctx, commit)
	if err != nil {
		return provider.Result{}, err
	}
	result, err := provider.Export(p.object, "path", items, previous)
	if len(items) == 0 {
		result.Warnings = append(result.Warnings, "nothing in the repository matches filter.includePath")
	}
	return result, err
}

// resolve finds the commit that a revision names. A name that is both a branch and a
// tag is the branch.
func resolve(refs *gitwriter.Refs, revision string) (plumbing.Hash, error) {
	if revision == "" {
		if refs.Head.IsZero() {
			return plumbing.ZeroHash, &provider.Error{
				Reason: provider.NotFound, Msg: "the repository is empty, or has no default branch", Hint: "name a branch in spec.revision",
			}
		}
		return refs.Head, nil
	}
	if hash, ok := refs.Branches[strings.TrimPrefix(revision, "refs/heads/")]; ok {
		return hash, nil
	}
	if hash, ok := refs.Tags[strings.TrimPrefix(revision, "refs/tags/")]; ok {
		return hash, nil
	}
	if plumbing.IsHash(revision) {
		return plumbing.NewHash(revision), nil
	}
	return plumbing.ZeroHash, &provider.Error{
		Reason: provider.NotFound, Msg: fmt.Sprintf("there is no branch or tag %q", revision),
		Hint: "spec.revision is a branch, a tag, or a whole commit hash; the last good list stands",
	}
}

// read returns what matches at a commit. A commit never changes, so it is fetched once.
func (p *Paths) read(ctx context.Context, commit plumbing.Hash) ([]provider.Item, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == commit {
		return p.items, nil
	}
	dir, err := os.MkdirTemp("", "renderer-paths-")
	if err != nil {
		return nil, &provider.Error{Reason: provider.Unavailable, Err: err, Hint: "the folder for temporary files cannot be written"}
	}
	defer func() { _ = os.RemoveAll(dir) }() // what stays is in the folder for temporary files
	snapshot, done, err := p.repo.remote.Read(ctx, commit, dir, maxCommit)
	if revision := p.object.Spec.Revision; revision != "" && errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, &provider.Error{
			Reason: provider.Misconfigured, Msg: fmt.Sprintf("revision %q is that of a file or folder, not of a commit", revision),
			Hint: "spec.revision is a branch, a tag of a commit, or a whole commit hash; the last good list stands",
		}
	}
	if err != nil {
		return nil, describe(err)
	}
	w := &walk{paths: p, snapshot: snapshot, left: maxFiles}
	err = errors.Join(w.folder(ctx, nil), done())
	if err != nil {
		return nil, describe(err)
	}
	slices.SortFunc(w.items, func(a, b provider.Item) int { return strings.Compare(a.Key, b.Key) })
	p.at, p.items = commit, w.items
	return p.items, nil
}

func (p *Paths) passes(parts []string) bool {
	is := func(g glob) bool { return g.matches(parts) }
	return slices.ContainsFunc(p.include, is) && !slices.ContainsFunc(p.exclude, is)
}

func (p *Paths) mayHold(parts []string) bool {
	return slices.ContainsFunc(p.include, func(g glob) bool { return g.mayHold(parts) })
}

// A walk collects what matches. Folders in which nothing can match are not opened.
type walk struct {
	paths    *Paths
	snapshot *gitwriter.Snapshot
	items    []provider.Item
	seen     int
	left     int // bytes of files that may still be read
}

func (w *walk) folder(ctx context.Context, parts []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := w.snapshot.List(strings.Join(parts, "/"))
	if err != nil {
		return err
	}
	if w.seen += len(entries); w.seen > maxEntries {
		return tooLarge("the commit has more than %d names in the folders that match", maxEntries)
	}
	for _, entry := range entries {
		at := append(slices.Clone(parts), entry.Name)
		switch entry.Kind {
		case gitwriter.KindDirectory:
			if w.paths.passes(at) {
				w.add(at, entry, entry.Name, nil)
			}
			if w.paths.mayHold(at) {
				if err := w.folder(ctx, at); err != nil {
					return err
				}
			}
		case gitwriter.KindFile:
			if hasFields(entry.Name) && w.paths.passes(at) {
				if err := w.file(at, entry); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func hasFields(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

func (w *walk) file(at []string, entry gitwriter.Entry) error {
	name := strings.Join(at, "/")
	data, err := w.snapshot.ReadFile(name)
	if err != nil {
		return err
	}
	if len(data) > maxFile {
		return tooLarge("%s has more than %d KiB", name, maxFile>>10)
	}
	if w.left -= len(data); w.left < 0 {
		return tooLarge("the files that match have more than %d MiB together", maxFiles>>20)
	}
	fields, faults := api.ParseInput(name, data)
	if len(faults) > 0 {
		msg := strings.Replace(faults[0].Error(), ":  ", ": the file ", 1) // what is wrong with all of it has no path in it
		return &provider.Error{Reason: provider.Implausible, Msg: msg, Hint: "correct the file, or leave it out with spec.filter.excludePath"}
	}
	for _, ours := range []string{"id", "path", "sha", "hash", "provider"} {
		if _, ok := fields[ours]; ok {
			return &provider.Error{
				Reason: provider.Implausible, Msg: fmt.Sprintf("%s has a field %q, which is what the provider itself exports", name, ours),
				Hint: "give the field another name",
			}
		}
	}
	w.add(at, entry, strings.TrimSuffix(entry.Name, path.Ext(entry.Name)), fields)
	return nil
}

func (w *walk) add(at []string, entry gitwriter.Entry, name string, fields api.Input) {
	whole := strings.Join(at, "/")
	input := api.Input{"name": name}
	for field, value := range fields {
		input[field] = value
	}
	input["id"], input["path"] = provider.Checksum(whole), whole
	input["hash"], input["sha"] = entry.Hash.String(), w.snapshot.Hash().String()
	w.items = append(w.items, provider.Item{Key: whole, Input: input})
}

func tooLarge(format string, args ...any) error {
	return &provider.Error{
		Reason: provider.TooLarge, Msg: fmt.Sprintf(format, args...), Hint: "match less with spec.filter.includePath and excludePath",
	}
}
