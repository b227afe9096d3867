// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"

	"resourceset.example/renderer/pkg/gitwriter"
	"resourceset.example/renderer/pkg/gitwriter/signing"
)

// loadKeys reads the key that commits are signed with, and those that the source
// commit has to be signed with. A key that is asked for and cannot be used keeps the
// program from starting: nothing is ever pushed unsigned instead, or read unverified.
func (r *Reconciler) loadKeys(ctx context.Context) error {
	if ref := r.cfg.Target.Commit.Signing.Secret; !ref.IsZero() {
		data, err := r.secrets.Get(ctx, ref.Namespace, ref.Name)
		if err != nil {
			return fmt.Errorf("target.commit.signing: %w", err)
		}
		r.redactor.Add(ref.String(), data)
		if r.signer, err = signing.NewSigner(data, r.cfg.Target.Commit.Author.Email, r.now); err != nil {
			return fmt.Errorf("target.commit.signing: %w", err)
		}
	}
	if ref := r.cfg.Source.Verify.Secret; !ref.IsZero() {
		data, err := r.secrets.Get(ctx, ref.Namespace, ref.Name)
		if err != nil {
			return fmt.Errorf("source.verify: %w", err)
		}
		if r.trusted, err = signing.ParseKeys(data); err != nil {
			return fmt.Errorf("source.verify: %w", err)
		}
		if r.cfg.SameTree() && r.signer == nil {
			return &signOwnError{}
		}
	}
	return nil
}

// verify refuses a commit that is not signed with a trusted key.
//
// Where definitions and manifests share a branch, its head is one of our own commits
// most of the time. Our key counts there, and that is safe because we never push onto
// a head that is not verified: below each of our commits there is a verified one.
func (r *Reconciler) verify(head *gitwriter.Snapshot) error {
	if r.trusted == nil || head.Hash().IsZero() {
		return nil
	}
	commit, err := head.CommitObject()
	if err != nil {
		return err
	}
	found, err := r.trusted.Verify(commit, r.now())
	if err != nil && r.cfg.SameTree() && errors.Is(err, signing.ErrUnknownKey) && r.signer.Signed(commit) {
		return nil
	}
	if err != nil {
		return &UnverifiedError{Commit: head.Hash().String(), Err: err}
	}
	r.log.Debug("verified the source commit", "revision", head.Hash().String(), "key", found.KeyID)
	return nil
}

// verifyBase refuses to push onto an unverified head of a branch that definitions are
// read from as well.
func (r *Reconciler) verifyBase(base *gitwriter.Snapshot) error {
	if !r.cfg.SameTree() {
		return nil
	}
	return r.verify(base)
}

// An UnverifiedError is a source commit that is not signed with a trusted key.
// Nothing is rendered from it.
type UnverifiedError struct {
	Commit string
	Err    error
}

func (e *UnverifiedError) Error() string {
	return fmt.Sprintf("commit %.12s %v: nothing is rendered from it", e.Commit, e.Err)
}

// Unwrap is the cause.
func (e *UnverifiedError) Unwrap() error { return e.Err }

// Suggestion is what to do about it.
func (e *UnverifiedError) Suggestion() string {
	return "what is committed stands; push a commit on top of it that is signed with one of the keys of source.verify.secret"
}

// A signOwnError is a configuration that would refuse its own commits.
type signOwnError struct{}

func (*signOwnError) Error() string {
	return "source.verify needs target.commit.signing when both share a branch: the program's own commits would be refused"
}

// Suggestion is what to do about it.
func (*signOwnError) Suggestion() string {
	return "set target.commit.signing.secret, or write to another branch or repository"
}
