// SPDX-License-Identifier: Apache-2.0

// Package secrets is where credentials come from, and what keeps them from
// getting out again.
//
// A [Store] reads Kubernetes Secrets from a directory tree, one file a key:
// <directory>/<namespace>/<name>/<key>. That is what a Pod sees that mounts
// each Secret at <directory>/<namespace>/<name>. Every Get reads the disk, so a
// rotated Secret is seen by the next one.
//
// A [Cluster] asks the Kubernetes API for them instead, by name.
//
// A [Redactor] is told every value that was read. It then finds them in text, in
// any form in which a value usually leaks (as it is, URL-escaped, quoted as JSON
// or YAML, in base64, also in the middle of something longer): Scrub hides them
// in messages, Contains finds them in output that is about to be committed, and
// Handler does the former for all that is logged.
package secrets
