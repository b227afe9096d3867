// SPDX-License-Identifier: Apache-2.0

// Package gitea is the input providers for Gitea, and for Forgejo, which kept its API.
//
// A GiteaPullRequest exports one input set for each open pull request, in the order
// in which they were opened:
//
//	id            the number, as a text
//	sha           the commit at the head
//	branch        the head's branch
//	targetBranch  the branch that it is to be merged into
//	title
//	author        login name; "Ghost" where the account is gone
//	labels        list of texts, sorted
//	url           the page for people
//	draft         boolean: the server says so, or the title begins with "WIP:" or "[WIP]"
//	fork          boolean: the head is in another repository, or on no branch at all
//	createdAt     RFC 3339, UTC
//	updatedAt     likewise
//
// A GiteaBranch exports one input set for each branch, by name, and a GiteaTag one
// for each tag, in the order of [provider.ExportTags]:
//
//	id            the Adler-32 checksum of the name; two names may have the same
//	branch, tag   the name
//	sha           the commit that it points to
//
// Pull requests from forks are left out, and counted, unless the provider has the
// annotation renderer/allow-forks: "true". A pull request that was made by a push to
// refs/for/BRANCH is one too: it has no branch in the repository, and whoever can
// read the repository can make it.
//
// Servers cap the size of a page (at 50 by default) and give no validators. Where
// they name a next page, it is read; the last one is known by that none is named, and
// that the server has counted no more, or that a page is empty: lists of tags never
// name one, and lists of branches stop early when a branch vanishes meanwhile.
//
// The secret has a token in "password" or "token", an OAuth 2.0 token in
// "bearerToken", or "username" and "password", which the server takes for a token
// first and for the account's password then.
package gitea
