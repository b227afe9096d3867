// SPDX-License-Identifier: Apache-2.0

// Package provider holds what all kinds of input providers have in common.
//
// A provider asks somebody else (a forge, an orchestrator) what there is now, and
// exports one input set for each thing found. Each kind is a package of its own
// beside this one, with the same two functions:
//
//	func New(cfg provider.Config) (*X, error)
//	func (x *X) Fetch(ctx context.Context, previous []api.Input) (provider.Result, error)
//
// Fetch is all or nothing: a [Result] is the complete listing, and whatever keeps
// it from being complete is an [Error]. An input set that a Result does not have
// is one to be removed, so no error ever looks like an empty or shorter Result.
//
// What was exported before (previous) counts in two ways. An item that a skip
// label freezes keeps its old values, and where filter.limit cuts, items that were
// exported before stay. [Export] does both, for every kind alike.
package provider

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"resourceset.example/renderer/pkg/api"
)

// A Secret is the data of one Kubernetes Secret: key → value.
type Secret map[string][]byte

// A Config is all that a provider is made from.
type Config struct {
	Object *api.ResourceSetInputProvider
	// Secret and CertSecret are what spec.secretRef and spec.certSecretRef name;
	// nil where they name nothing.
	Secret, CertSecret Secret
	UserAgent          string
	// Limits, when providers share it, makes all that use one host and credential
	// wait when the server told one of them to. It may be nil.
	Limits *Limits
	// Shared, when providers share it, lets those that would ask the same ask once.
	// It may be nil.
	Shared *Shared
	// RetryWait is the wait before a request is tried again, doubled for each
	// further try; DefaultRetryWait if 0.
	RetryWait time.Duration
}

// DefaultRetryWait is the first wait before a request is tried again.
const DefaultRetryWait = 300 * time.Millisecond

// DefaultTimeout bounds a fetch whose context has no deadline, as the operator does.
const DefaultTimeout = time.Minute

// A Result is a complete listing.
type Result struct {
	// Inputs are in the order that the provider's package documents, default
	// values filled in, with "id" where the type has one.
	Inputs []api.Input
	// Matched counts the items that passed the filters, before filter.limit cut.
	Matched int
	// Forks counts change requests that were left out because they come from forks.
	Forks int
	// Frozen counts items that a skip label keeps at their old values, and Held
	// new ones that it keeps out.
	Frozen, Held int
	// Warnings are for people: "101 matched, 100 exported".
	Warnings []string
}

// Line returns the value of a key that has to be one line of text, such as a
// token, without the line break that an editor puts at its end. It is empty when
// the secret lacks the key. The error never holds the value.
func (s Secret) Line(key string) (string, error) {
	value := strings.TrimRight(string(s[key]), "\r\n")
	for _, r := range value {
		if r < ' ' || r == 0x7f {
			return "", &Error{
				Reason: Misconfigured,
				Msg:    fmt.Sprintf("secret key %q: has a line break or control character inside its value", key),
				Hint:   "store the bare value; a single line break at its end is fine",
			}
		}
	}
	return value, nil
}

// Text is a scalar JSON value as the text that stands for it in an id, and
// whether it is one.
func Text(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case int:
		return strconv.Itoa(v), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}
