// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
	"sync"
	"weak"
)

// Shared lets providers that would ask the same do so once: those of one server
// and credential share a client, with its connections and tokens, and those of one
// repository a listing. It keeps nothing that no provider uses any more. The zero
// value is ready to use, and so is a nil pointer, which shares nothing.
type Shared struct {
	mu     sync.Mutex
	things map[string]sharedThing
}

type sharedThing struct {
	pointer any // a weak.Pointer
	inUse   func() bool
}

// Share returns what is in use under a key, or else makes it. The key has to tell
// all apart that may not be shared; see Config.Identity.
func Share[T any](s *Shared, key string, make func() (*T, error)) (*T, error) {
	if s == nil {
		return make()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if pointer, ok := s.things[key].pointer.(weak.Pointer[T]); ok {
		if thing := pointer.Value(); thing != nil {
			return thing, nil
		}
	}
	thing, err := make()
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(s.things, func(_ string, old sharedThing) bool { return !old.inUse() })
	if s.things == nil {
		s.things = map[string]sharedThing{}
	}
	pointer := weak.Make(thing)
	s.things[key] = sharedThing{pointer, func() bool { return pointer.Value() != nil }}
	return thing, nil
}

// Identity is a digest of the secrets of a config: equal for two that may share a
// connection.
func (c Config) Identity() string {
	digest := sha256.New()
	addSecret(digest, c.Secret)
	addSecret(digest, c.CertSecret)
	return hex.EncodeToString(digest.Sum(nil))
}

func addSecret(digest hash.Hash, secret Secret) {
	fmt.Fprintf(digest, "%t %d\n", secret == nil, len(secret))
	for _, key := range slices.Sorted(maps.Keys(secret)) {
		fmt.Fprintf(digest, "%q %q\n", key, secret[key])
	}
}

// passKey is the context key of the pass that a fetch belongs to.
type passKey struct{}

// WithPass returns a context whose fetches belong to one pass. Providers that
// share a listing read it once a pass; without a pass, each reads it again.
func WithPass(ctx context.Context) context.Context {
	return context.WithValue(ctx, passKey{}, new(byte))
}

// Pass returns what stands for the pass of a context, and is equal for no other
// one; nil without a pass.
func Pass(ctx context.Context) any { return ctx.Value(passKey{}) }
