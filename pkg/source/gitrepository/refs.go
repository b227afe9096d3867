// SPDX-License-Identifier: Apache-2.0

package gitrepository

import (
	"context"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/pkg/gitwriter"
	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
)

// A repository is what the providers of one repository and credential share.
type repository struct {
	remote *gitwriter.Remote
	refs   *listing.List[*gitwriter.Refs]
}

func open(cfg provider.Config) (*repository, error) {
	return provider.Share(cfg.Shared, "git "+cfg.Identity()+" "+cfg.Object.Spec.URL, func() (*repository, error) {
		remote, err := connect(cfg)
		if err != nil {
			return nil, err
		}
		r := &repository{remote: remote}
		// A list of one page with one item: all refs come in one answer.
		r.refs = listing.New("branches and tags", "refs", r.page)
		return r, nil
	})
}

func (r *repository) page(ctx context.Context, _ string, _ *listing.Page[*gitwriter.Refs]) (*listing.Page[*gitwriter.Refs], error) {
	refs, err := r.remote.Refs(ctx)
	if err != nil {
		return nil, describe(err)
	}
	if len(refs.Branches)+len(refs.Tags) == 0 {
		// An empty repository, and one whose refs this credential may not see, look the same.
		return nil, &provider.Error{
			Reason: provider.Implausible, Msg: "the server shows no branch and no tag",
			Hint: "check that the repository is not empty and that the credential may read it; the last good list stands",
		}
	}
	return &listing.Page[*gitwriter.Refs]{Items: []*gitwriter.Refs{refs}, Keys: []string{""}}, nil
}

func (r *repository) list(ctx context.Context) (*gitwriter.Refs, error) {
	all, err := r.refs.All(ctx)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// NewBranches returns the provider of a definition of type GitRepositoryBranch.
func NewBranches(cfg provider.Config) (*listing.Refs, error) {
	repo, err := open(cfg)
	if err != nil {
		return nil, err
	}
	return listing.NewBranches(cfg, branches{repo})
}

// NewTags returns the provider of a definition of type GitRepositoryTag.
func NewTags(cfg provider.Config) (*listing.Refs, error) {
	repo, err := open(cfg)
	if err != nil {
		return nil, err
	}
	return listing.NewTags(cfg, tags{repo})
}

type branches struct{ repo *repository }

func (b branches) All(ctx context.Context) ([]provider.Ref, error) {
	refs, err := b.repo.list(ctx)
	if err != nil {
		return nil, err
	}
	return sorted(refs.Branches), nil
}

type tags struct{ repo *repository }

func (t tags) All(ctx context.Context) ([]provider.Ref, error) {
	refs, err := t.repo.list(ctx)
	if err != nil {
		return nil, err
	}
	return sorted(refs.Tags), nil
}

func sorted(refs map[string]plumbing.Hash) []provider.Ref {
	list := make([]provider.Ref, 0, len(refs))
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		list = append(list, provider.Ref{Name: name, SHA: refs[name].String()})
	}
	return list
}
