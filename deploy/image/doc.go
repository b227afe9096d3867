// SPDX-License-Identifier: Apache-2.0

// Command image assembles the container image of renderer without a container engine:
// an OCI image layout (opencontainers/image-spec, image-layout.md) with one layer that
// holds the static binary, the certificate authorities that Mozilla trusts without
// conditions, and a list of what the binary was made from (CycloneDX). Time zones are
// in the binary.
//
// The same binary and the same versions of this module's dependencies give the same
// bytes, wherever and whenever it runs: no clock, no user and no file order gets in.
// Any tool that reads OCI layouts pushes it (skopeo, crane, oras).
//
//	go run . -binary ../../bin/renderer -out ../../dist/image
package main
