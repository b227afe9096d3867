// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Types of receivers that are served.
const (
	TypeGitHub      = "github"       // X-Hub-Signature-256, or X-Hub-Signature of old servers
	TypeGitLab      = "gitlab"       // X-Gitlab-Token
	TypeGeneric     = "generic"      // nothing: who knows the path may call
	TypeGenericHMAC = "generic-hmac" // X-Signature
)

// HookPrefix is where the paths of all hooks begin.
const HookPrefix = "/hook/"

// HookPath is the path of a Receiver's hook: the one that Flux writes into its
// status, so that a hook which a forge has been given keeps working.
func HookPath(token []byte, name, namespace string) string {
	sum := sha256.Sum256(slices.Concat(token, []byte(name), []byte(namespace)))
	return HookPrefix + hex.EncodeToString(sum[:])
}

// A Receiver is one hook: who may call it, and what a call refreshes.
type Receiver struct {
	Namespace, Name string
	Type            string
	Token           []byte   // the key "token" of its secret, as it is
	Events          []string // only these; empty is all that can change anything
	Suspend         bool
	Targets         []Target
}

// String is how messages name the object.
func (r *Receiver) String() string { return "Receiver " + r.Namespace + "/" + r.Name }

// A table finds receivers by the digest of their path. A look-up then takes the
// same time for a path that is nearly right as for any other.
type table struct {
	byPath map[[sha256.Size]byte]*endpoint
}

// An endpoint is a receiver under one form of its token.
type endpoint struct {
	*Receiver
	token []byte
}

func (t *table) find(path string) *endpoint { return t.byPath[sha256.Sum256([]byte(path))] }

// SetReceivers replaces all receivers; requests under way end with the old ones.
// What cannot be served is left out, and returned as errors that name the object.
//
// A token that ends in a line break, as a file written by hand does, is served
// without it as well: Flux computes the path with the line break, and the forge
// was most likely told the token without.
func (s *Server) SetReceivers(receivers []Receiver) []error {
	var problems []error
	t := &table{byPath: map[[sha256.Size]byte]*endpoint{}}
	for i := range receivers {
		r := receivers[i] // a copy, which the caller cannot change
		if err := r.check(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", &r, err))
			continue
		}
		for _, token := range r.tokens() {
			key := sha256.Sum256([]byte(HookPath(token, r.Name, r.Namespace)))
			if other, taken := t.byPath[key]; taken {
				problems = append(problems, fmt.Errorf("%s: has the same path as %s, which is served", &r, other))
				continue
			}
			t.byPath[key] = &endpoint{Receiver: &r, token: token}
		}
	}
	s.receivers.Store(t)
	return problems
}

func (r *Receiver) check() error {
	switch r.Type {
	case TypeGitHub, TypeGitLab, TypeGeneric, TypeGenericHMAC:
	default:
		return fmt.Errorf("receivers of type %q are not served", r.Type)
	}
	if len(bytes.TrimSpace(r.Token)) == 0 {
		return fmt.Errorf("its token is empty")
	}
	return nil
}

func (r *Receiver) tokens() [][]byte {
	trimmed := bytes.TrimRight(r.Token, "\r\n")
	if len(trimmed) == len(r.Token) {
		return [][]byte{r.Token}
	}
	return [][]byte{r.Token, trimmed}
}

// Events that can change what a provider exports or what definitions say, for
// receivers that do not list any. A forge has a hundred others.
var (
	gitHubEvents = []string{
		"push", "pull_request", "create", "delete", "release", "package", "registry_package",
		"deployment", "deployment_status", "repository", "repository_dispatch",
	}
	gitLabEvents = []string{
		"Push Hook", "Tag Push Hook", "Merge Request Hook", "Deployment Hook", "Release Hook", "System Hook",
	}
)

// wants reports whether an event is one to act on. A ping says that the hook was
// set up, and a call without any event (curl) leaves it to us.
func (r *Receiver) wants(event string) bool {
	is := func(other string) bool { return strings.EqualFold(event, other) }
	switch {
	case r.Type == TypeGeneric || r.Type == TypeGenericHMAC:
		return true
	case r.Type == TypeGitHub && event == "ping":
		return false
	case len(r.Events) > 0:
		return slices.ContainsFunc(r.Events, is)
	case event == "":
		return true
	case r.Type == TypeGitHub:
		return slices.ContainsFunc(gitHubEvents, is)
	}
	return slices.ContainsFunc(gitLabEvents, is)
}
