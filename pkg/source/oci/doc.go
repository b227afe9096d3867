// SPDX-License-Identifier: Apache-2.0

// Package oci is the input providers for container registries.
//
// An OCIArtifactTag, ACRArtifactTag, ECRArtifactTag or GARArtifactTag exports one
// input set for each tag of a repository, in the order of [provider.ExportTags]:
//
//	id      the Adler-32 checksum of the tag; two tags may have the same
//	tag     the tag
//	digest  of the manifest that the tag points to, or of the index where it is for
//	        several platforms: "sha256:…"
//
// A registry lists names only, so there is one more request for each tag that is
// exported (a HEAD, which registries do not count as a pull), and none for those
// that the filters or the limit leave out. When one of them fails the fetch has
// failed: a tag without a digest is not exported, and neither is a list that lacks it.
//
// The pages of a list are followed as the registry names them, whatever their
// addresses look like; registries disagree about that.
//
// How to get in, the registry says itself when it refuses the first request: with
// the user and password (Basic), or with a token that its token service gives for
// them, or to anybody (Bearer). The types differ in where the user and password
// come from:
//
//	OCIArtifactTag  the secret: ".dockerconfigjson", or "username" and "password"
//	ACRArtifactTag  Microsoft Entra: workload identity, managed identity or the
//	                AZURE_… variables, exchanged for a token of the registry
//	ECRArtifactTag  AWS: IRSA, Pod Identity, the instance's role or the AWS_…
//	                variables, exchanged for a password of the registry
//	GARArtifactTag  Google: application default credentials, with workload identity
//	                federation
//
// The last three use who this process is, and so they only talk to hosts that are
// the cloud's own: a definition that names another host gets no token sent there.
package oci
