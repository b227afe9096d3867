// SPDX-License-Identifier: Apache-2.0

// Package forge runs Gitea, a real forge, on a loopback port: with repositories, pull
// requests, labels, webhooks and tokens, which tests make through its API as people
// do through its pages.
//
// Gitea refuses to run as root, rightly: it serves repositories of strangers. So where
// the tests are root, as on CI, it runs as nobody, on copies of its program and files
// in a folder that nobody owns.
package forge
