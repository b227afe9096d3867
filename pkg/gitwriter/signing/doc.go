// SPDX-License-Identifier: Apache-2.0

// Package signing makes and checks the signatures of commits.
//
// Git keeps a signature in the commit itself, in a header field that the signed
// bytes lack. Two kinds are in use: OpenPGP, a detached armoured signature, and
// SSH, in the format of OpenSSH's PROTOCOL.sshsig with the namespace "git". A
// [Signer] makes either, depending on the key it gets; [Keys] checks both. What is
// signed here, `git verify-commit` accepts.
//
// There is no unsigned fallback: a key that cannot sign (missing, expired, locked,
// or of somebody else than the committer) is an error of [NewSigner], before
// anything is written.
package signing
