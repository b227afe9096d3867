// SPDX-License-Identifier: Apache-2.0

// Package forgetest has servers to test against: a [GitHub], [GitLab] and [Gitea] that
// speak enough of their REST APIs for listings and pull requests, an [Orchestrator] that
// answers with input sets, a [Registry] with tags, and a [Git] with refs.
// Their answers have the shapes and headers of the public documentation, and
// they can be made to fail in the ways that real servers do (see [Fault]).
//
// A server listens on a loopback port until it is closed. Tests change what it
// has through methods (a pull request opens, a tenant goes), and see what it was
// asked through Requests.
package forgetest
