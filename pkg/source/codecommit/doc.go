// SPDX-License-Identifier: Apache-2.0

// Package codecommit is the input providers for AWS CodeCommit.
//
// An AWSCodeCommitPullRequest exports one input set for each open pull request, in
// the order of the numbers:
//
//	id            the number, as a text
//	sha           the commit at the head of the source
//	branch        the source branch
//	targetBranch  the branch that it is to be merged into
//	title
//	author        the last part of the author's ARN: the user, or the session of a role
//	labels        always an empty list: CodeCommit has none
//	url           the page of the console
//	draft, fork   always false: CodeCommit has neither
//	createdAt     RFC 3339, UTC
//	updatedAt     likewise: the last activity
//
// Filters and skips by label have no effect, as in the operator.
//
// An AWSCodeCommitBranch exports one input set for each branch, by name, and an
// AWSCodeCommitTag one for each tag, in the order of [provider.ExportTags]:
//
//	id            the Adler-32 checksum of the name; two names may have the same
//	branch, tag   the name
//	sha           the commit; of an annotated tag, the one that it is of
//
// The API lists no tags, and branches without their commits. So both come from Git's
// own list of refs, in one answer, by the signature that AWS calls git-remote-codecommit.
// It lists pull requests by number only, and each is asked for: one that cannot be
// read fails the fetch, and when one is gone meanwhile, the list is read again.
//
// The credential is that of the environment, as all programs with AWS's SDK find it:
// variables, IRSA (a web identity token), EKS Pod Identity, an instance's role. It is
// used for hosts of AWS only. Beyond the CRD, a secret may have the keys of a user in
// "accesskey" and "secretkey", and a "sessiontoken".
package codecommit
