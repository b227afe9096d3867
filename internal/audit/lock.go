// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"github.com/go-git/go-git/v5/plumbing"

	"resourceset.example/renderer/pkg/expand"
)

// Files of ours in every ResourceSet's folder.
const (
	lockName          = "inputs.lock"
	kustomizationName = "kustomization.yaml"
	sharedFolder      = "shared"
	fluxFolder        = "_flux" // what is there for Flux, besides the manifests
)

// A lockFile is an inputs.lock, or why it cannot be read.
type lockFile struct {
	lock *expand.Lock
	err  error
}

// maxLocks is how many locks are kept in memory. A commit's lock is read again only
// for the next commit to the same folder.
const maxLocks = 512

// lock reads the inputs.lock in a ResourceSet's folder: nil without an error when
// there is none.
func (r *Repository) lock(folder plumbing.Hash) (*lockFile, error) {
	if folder.IsZero() {
		return nil, nil
	}
	e, err := r.at(folder, lockName)
	if err != nil || e.none() || e.isDir() {
		return nil, err
	}
	if known := r.locks[e.hash]; known != nil {
		return known, nil
	}
	data, err := r.read(plumbing.BlobObject, e.hash)
	if err != nil {
		return nil, err
	}
	file := &lockFile{}
	file.lock, file.err = expand.ReadLock(data)
	if len(r.locks) >= maxLocks {
		clear(r.locks)
	}
	r.locks[e.hash] = file
	return file, nil
}
