// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"maps"
	"slices"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/azuredevops"
	"resourceset.example/renderer/pkg/source/bitbucket"
	"resourceset.example/renderer/pkg/source/codecommit"
	"resourceset.example/renderer/pkg/source/externalartifact"
	"resourceset.example/renderer/pkg/source/externalservice"
	"resourceset.example/renderer/pkg/source/gitea"
	"resourceset.example/renderer/pkg/source/github"
	"resourceset.example/renderer/pkg/source/gitlab"
	"resourceset.example/renderer/pkg/source/gitrepository"
	"resourceset.example/renderer/pkg/source/oci"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/static"
)

// A fetcher is all that the loop asks of an input provider. Every kind is a
// struct in a package of its own under pkg/source, and none of them knows this
// interface.
type fetcher interface {
	// Fetch returns every input set there is now, or an error. It never returns
	// some of them: a set that is left out counts as removed. previous is what was
	// exported last.
	Fetch(ctx context.Context, previous []api.Input) (provider.Result, error)
}

// A constructor makes the fetcher for one provider object.
type constructor func(provider.Config) (fetcher, error)

// constructors are the provider types that this version can fetch.
func constructors() map[string]constructor {
	return map[string]constructor{
		api.TypeStatic:            construct(static.New),
		api.TypeExternalService:   construct(externalservice.New),
		api.TypeGitHubPullRequest: construct(github.NewPullRequests),
		api.TypeGitHubBranch:      construct(github.NewBranches),
		api.TypeGitHubTag:         construct(github.NewTags),

		api.TypeGitLabMergeRequest: construct(gitlab.NewMergeRequests),
		api.TypeGitLabBranch:       construct(gitlab.NewBranches),
		api.TypeGitLabTag:          construct(gitlab.NewTags),
		api.TypeGitLabEnvironment:  construct(gitlab.NewEnvironments),

		api.TypeGiteaPullRequest: construct(gitea.NewPullRequests),
		api.TypeGiteaBranch:      construct(gitea.NewBranches),
		api.TypeGiteaTag:         construct(gitea.NewTags),

		api.TypeAzureDevOpsPullRequest: construct(azuredevops.NewPullRequests),
		api.TypeAzureDevOpsBranch:      construct(azuredevops.NewBranches),
		api.TypeAzureDevOpsTag:         construct(azuredevops.NewTags),

		api.TypeAWSCodeCommitPullRequest: construct(codecommit.NewPullRequests),
		api.TypeAWSCodeCommitBranch:      construct(codecommit.NewBranches),
		api.TypeAWSCodeCommitTag:         construct(codecommit.NewTags),

		api.TypeBitbucketPullRequest: construct(bitbucket.NewPullRequests),
		api.TypeBitbucketBranch:      construct(bitbucket.NewBranches),
		api.TypeBitbucketTag:         construct(bitbucket.NewTags),

		api.TypeOCIArtifactTag: construct(oci.NewTags),
		api.TypeACRArtifactTag: construct(oci.NewACRTags),
		api.TypeECRArtifactTag: construct(oci.NewECRTags),
		api.TypeGARArtifactTag: construct(oci.NewGARTags),

		api.TypeGitRepositoryBranch: construct(gitrepository.NewBranches),
		api.TypeGitRepositoryTag:    construct(gitrepository.NewTags),
		api.TypeGitRepositoryPath:   construct(gitrepository.NewPaths),

		api.TypeExternalArtifact: construct(externalartifact.New),
	}
}

// FetchedTypes are the provider types that this version can fetch, sorted.
func FetchedTypes() []string { return slices.Sorted(maps.Keys(constructors())) }

// construct gives a typed constructor the table's type.
func construct[F fetcher](make func(provider.Config) (F, error)) constructor {
	return func(cfg provider.Config) (fetcher, error) {
		f, err := make(cfg)
		if err != nil {
			return nil, err // not f: a nil pointer in an interface is not nil
		}
		return f, nil
	}
}
