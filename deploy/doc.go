// SPDX-License-Identifier: Apache-2.0

// Package deploy holds what it takes to run renderer in a cluster: a container image
// and manifests, as kustomize folders and as a Helm chart. There is no code here but the tests that keep both working.
package deploy
