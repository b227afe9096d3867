// SPDX-License-Identifier: Apache-2.0

// Package azuredevops is the input providers for the Git repositories of Azure
// DevOps Services (dev.azure.com, visualstudio.com) and Azure DevOps Server 2022.
//
// An AzureDevOpsPullRequest exports one input set for each active pull request, in
// the order of the numbers:
//
//	id            the number, as a text
//	sha           the commit at the head
//	branch        the source branch
//	targetBranch  the branch that it is to be merged into
//	title
//	author        display name, as the operator has it
//	labels        list of texts, sorted
//	url           the page for people
//	draft         boolean
//	fork          boolean: the source is in another repository
//	createdAt     RFC 3339, UTC
//
// There is no updatedAt, for the service does not tell; filter.updatedWithin goes by
// createdAt.
//
// An AzureDevOpsBranch exports one input set for each branch, by name, and an
// AzureDevOpsTag one for each tag, in the order of [provider.ExportTags]:
//
//	id            the Adler-32 checksum of the name; two names may have the same
//	branch, tag   the name
//	sha           the commit; of an annotated tag, the one that it is of
//
// Pull requests from forks are left out, and counted, unless the provider has the
// annotation renderer/allow-forks: "true".
//
// A list of pull requests has no mark at its end, so it is read until a page is
// empty. It has the labels of those that have any; where no pull request in it has
// one, an old server may be keeping them to itself, and each is asked for its own.
//
// A refused credential is answered with a sign-in page: with status 203, or by a
// redirect. Both are what they are, an authentication failure.
//
// The secret has a personal access token in "password" or "token". Without a
// secret, Azure DevOps Services gets a token of Microsoft Entra for the identity that
// the environment names (see identity.go), and no other host ever does.
package azuredevops
