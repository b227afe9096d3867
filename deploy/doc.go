// SPDX-License-Identifier: Apache-2.0

// Package deploy holds what it takes to run renderer in a cluster: a container image
// and a kustomize base. There is no code here but the tests that keep both working.
package deploy
