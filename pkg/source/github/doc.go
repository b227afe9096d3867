// SPDX-License-Identifier: Apache-2.0

// Package github is the input providers for GitHub and GitHub Enterprise Server.
//
// A GitHubPullRequest exports one input set for each open pull request, in the
// order in which they were opened:
//
//	id            the number, as a text
//	sha           the commit at the head
//	branch        the head's branch
//	targetBranch  the branch that it is to be merged into
//	title
//	author        login name; "ghost" where the account is gone
//	labels        list of texts, sorted
//	url           the page for people
//	draft         boolean
//	fork          boolean: the head is in another repository
//	createdAt     RFC 3339, UTC
//	updatedAt     likewise
//
// A GitHubBranch exports one input set for each branch, by name, and a GitHubTag
// one for each tag, in the order of [provider.ExportTags]:
//
//	id            the Adler-32 checksum of the name; two names may have the same
//	branch, tag   the name
//	sha           the commit that it points to
//
// Pull requests from forks are left out, and counted, unless the provider has the
// annotation renderer/allow-forks: "true".
//
// Pull requests are listed in an order that new ones do not disturb. One that
// closes meanwhile moves later ones to an earlier page, so one of them could be
// missed, and lists of branches and tags move with every change. So after the last
// page, the others are asked for once more, and when the list has moved it is read
// again. That costs no rate limit, because these requests, and those of the next
// fetch, name the version they know (ETag).
//
// The secret has a token in "password" or "token", or the keys of a GitHub App:
// "githubAppID", "githubAppPrivateKey", and "githubAppInstallationID" or
// "githubAppInstallationOwner"; on a server of one's own also "githubAppBaseURL".
package github
