// SPDX-License-Identifier: Apache-2.0

// Package bitbucket is the input providers for Bitbucket, of which there are two:
// Bitbucket Cloud (bitbucket.org) and Bitbucket Data Center, formerly Server. They
// share a name and little else, so spec.url tells which one it is, and each has its
// own reading of pages and answers here. The public CRD has no type for either.
//
// A BitbucketPullRequest exports one input set for each open pull request, in the
// order of the numbers:
//
//	id            the number, as a text
//	sha           the commit at the head, in full
//	branch        the source branch
//	targetBranch  the branch that it is to be merged into
//	title
//	author        Cloud: nickname; Data Center: user name; "ghost" where the account is gone
//	labels        always an empty list: Bitbucket has none
//	url           the page for people
//	draft         boolean; false where the server is older than drafts (8.18)
//	fork          boolean: the source is in another repository
//	createdAt     RFC 3339, UTC
//	updatedAt     likewise
//
// Filters and skips by label are refused, for none could ever match.
//
// A BitbucketBranch exports one input set for each branch, by name, and a
// BitbucketTag one for each tag, in the order of [provider.ExportTags]:
//
//	id            the Adler-32 checksum of the name; two names may have the same
//	branch, tag   the name
//	sha           the commit that it points to
//
// Pull requests from forks are left out, and counted, unless the provider has the
// annotation renderer/allow-forks: "true".
//
// Cloud names the commits of pull requests by their first twelve characters, which
// is not enough to deploy one. So each commit that is new in the list is asked for
// once; when one of those requests fails, so does the fetch.
//
// The secret has an access token in "token" (sent as a bearer), or "username" and
// "password": an app password or API token on Cloud, a password or HTTP access
// token on Data Center. A "password" alone, or with the username x-token-auth, is
// an access token.
package bitbucket
