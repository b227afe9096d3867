// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-billy/v5/util"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

const branch = plumbing.ReferenceName("refs/heads/main")

// A repository is a bare one on disk. Its work tree, for those who commit as a
// person does, is in memory.
type repository struct {
	dir string
	git *git.Repository
}

func newRepository(dir string) (*repository, error) {
	storage := filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRUDefault())
	repo, err := git.InitWithOptions(storage, memfs.New(), git.InitOptions{DefaultBranch: branch})
	if err != nil {
		return nil, fmt.Errorf("repository %s: %w", dir, err)
	}
	cfg, err := repo.Config()
	if err != nil {
		return nil, fmt.Errorf("repository %s: %w", dir, err)
	}
	cfg.Core.IsBare, cfg.Core.Worktree = true, ""
	if err := repo.SetConfig(cfg); err != nil {
		return nil, fmt.Errorf("repository %s: %w", dir, err)
	}
	return &repository{dir: dir, git: repo}, nil
}

func (r *repository) url() string { return "file://" + r.dir }

// commit adds or changes files, as somebody of the platform team.
func (r *repository) commit(message string, files map[string]string) error {
	tree, err := r.git.Worktree()
	if err != nil {
		return fmt.Errorf("repository %s: %w", r.dir, err)
	}
	for path, text := range files {
		if err := util.WriteFile(tree.Filesystem, path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("repository %s: %w", r.dir, err)
		}
		if _, err := tree.Add(path); err != nil {
			return fmt.Errorf("repository %s: %w", r.dir, err)
		}
	}
	_, err = tree.Commit(message, &git.CommitOptions{
		Author: &object.Signature{Name: "Pat", Email: "pat@example.com", When: time.Now()},
	})
	if err != nil {
		return fmt.Errorf("repository %s: %w", r.dir, err)
	}
	return nil
}

// head is the commit of the branch now, or the zero hash before the first one.
// It opens the repository anew, as others write to it.
func (r *repository) head() (plumbing.Hash, *git.Repository, error) {
	repo, err := git.PlainOpen(r.dir)
	if err != nil {
		return plumbing.ZeroHash, nil, fmt.Errorf("repository %s: %w", r.dir, err)
	}
	ref, err := repo.Reference(branch, true)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return plumbing.ZeroHash, repo, nil
	}
	if err != nil {
		return plumbing.ZeroHash, nil, fmt.Errorf("repository %s: %w", r.dir, err)
	}
	return ref.Hash(), repo, nil
}

// since lists the commits after old, oldest first.
func (r *repository) since(old plumbing.Hash) ([]*object.Commit, error) {
	hash, repo, err := r.head()
	if err != nil {
		return nil, err
	}
	var commits []*object.Commit
	for hash != old && !hash.IsZero() {
		c, err := repo.CommitObject(hash)
		if err != nil {
			return nil, fmt.Errorf("repository %s: commit %s: %w", r.dir, hash, err)
		}
		commits = append(commits, c)
		hash = plumbing.ZeroHash
		if len(c.ParentHashes) > 0 {
			hash = c.ParentHashes[0]
		}
	}
	slices.Reverse(commits)
	return commits, nil
}

// edit changes one file by hand, as somebody who is on call does. It opens the
// repository anew, as others write to it.
func (r *repository) edit(message, path string, change func(text string) string) (*object.Commit, error) {
	fail := func(err error) (*object.Commit, error) {
		return nil, fmt.Errorf("repository %s: %s: %w", r.dir, path, err)
	}
	repo, err := git.Open(filesystem.NewStorage(osfs.New(r.dir), cache.NewObjectLRUDefault()), memfs.New())
	if err != nil {
		return fail(err)
	}
	now := &repository{dir: r.dir, git: repo}
	tree, err := repo.Worktree()
	if err != nil {
		return fail(err)
	}
	if err := tree.Reset(&git.ResetOptions{Mode: git.HardReset}); err != nil {
		return fail(err)
	}
	text, err := util.ReadFile(tree.Filesystem, path)
	if err != nil {
		return fail(err)
	}
	if err := now.commit(message, map[string]string{path: change(string(text))}); err != nil {
		return nil, err
	}
	head, err := repo.Head()
	if err != nil {
		return fail(err)
	}
	return repo.CommitObject(head.Hash())
}
