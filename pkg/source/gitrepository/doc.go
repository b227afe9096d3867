// SPDX-License-Identifier: Apache-2.0

// Package gitrepository is the input providers for plain Git: any server that can be
// cloned from, over HTTPS or SSH, whatever else it can do. The public CRD does not
// have these types.
//
// A GitRepositoryBranch exports one input set for each branch, by name, and a
// GitRepositoryTag one for each tag, in the order of [provider.ExportTags], from
// what `git ls-remote` would print:
//
//	id            the Adler-32 checksum of the name; two names may have the same
//	branch, tag   the name
//	sha           the commit that it points to; of an annotated tag, the one it is about
//
// What a tag is of is not in that list: the sha of one that is of a file or folder is
// that object's name, and only filter.excludeTag leaves it out.
//
// A GitRepositoryPath exports one input set for each folder, and for each YAML or
// JSON file, whose path matches, at one revision, by path:
//
//	id      the Adler-32 checksum of the path
//	path    from the root of the repository
//	name    the last part of the path, of a file without its extension
//	hash    Git's hash of the folder or file: it changes with the content, and only then
//	sha     the commit
//
// The top-level fields of a file become fields of its input set as well; a "name" of
// its own replaces ours, and the other four are a fault. A file that cannot be read
// fails the fetch, for without it its input set would be gone.
//
// Symbolic links and submodules are passed over: nothing is read from outside the
// commit. It is fetched without history, into a folder that is removed afterwards,
// and only when it is another one than last time.
//
// The secret has the keys that Flux's GitRepository has: "username" and "password",
// "bearerToken", or the githubApp… keys for HTTPS, with "ca.crt", "tls.crt" and
// "tls.key"; "identity" and "known_hosts", with "password", for SSH.
package gitrepository
