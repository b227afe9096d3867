// SPDX-License-Identifier: Apache-2.0

// Package gitlab is the input providers for GitLab, on gitlab.com and on servers of
// one's own.
//
// A GitLabMergeRequest exports one input set for each open merge request, in the
// order in which they were opened:
//
//	id            the number in the project ("iid"), as a text
//	sha           the commit at the head
//	branch        the source branch
//	targetBranch  the branch that it is to be merged into
//	title
//	author        user name; "ghost" where the account is gone
//	labels        list of texts, sorted
//	url           the page for people
//	draft         boolean
//	fork          boolean: the source is another project, or one that is gone
//	createdAt     RFC 3339, UTC
//	updatedAt     likewise
//
// Merge requests from forks are left out, and counted, unless the provider has the
// annotation renderer/allow-forks: "true". One that is being merged just now ("locked")
// is neither open nor merged yet, and stays.
//
// A GitLabBranch exports one input set for each branch, by name, and a GitLabTag one
// for each tag, in the order of [provider.ExportTags]:
//
//	id            the Adler-32 checksum of the name; two names may have the same
//	branch, tag   the name
//	sha           the commit that it points to
//
// A GitLabEnvironment exports one input set for each environment that something is
// deployed to, by number:
//
//	id      the number, as a text
//	sha     the commit of the newest deployment that is running or has succeeded
//	branch  the branch or tag that was deployed
//	author  user name of who deployed it; "ghost" where the account is gone
//	title   the environment's name: "review/feat-x"
//	slug    its name as GitLab puts it into host names
//	url     its external URL; empty where it has none
//
// A stopped environment is exported while a deployment to it is running, and is gone
// otherwise. An environment whose only deployments failed is exported if it was before,
// with the commit that it had. Lists of environments tell nothing of deployments, so the
// running ones of a project are listed first, and each environment that passes the
// filter and is not stopped costs a request of its own. If one of these fails, the whole
// fetch does.
//
// Lists are read by their Link headers. Branches and tags are asked for in keyset
// pagination, for offsets have a limit. Addresses in Link headers begin with the name
// that a server is configured with; of them only the query is used.
//
// The secret has a personal, project, group or OAuth 2.0 token in "password", "token"
// or "bearerToken", or a CI job's in "jobToken".
package gitlab
