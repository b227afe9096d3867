// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
)

// A Kind is one type of definition that a forge has: what it is of, how a provider is
// made, and how the nth item comes to a repository.
type Kind struct {
	Name     string
	KeyField string
	New      func(provider.Config) (Fetcher, error)
	Add      func(r *forgetest.Repo, n int)
	// PageSize, Fewest and PageOf are those of its fixture.
	PageSize, Fewest int
	PageOf           func(*http.Request) int
}

// Requests is the kind of a forge's change requests.
func Requests[F Fetcher](pageSize int, make func(provider.Config) (F, error)) Kind {
	return Kind{Name: "requests", KeyField: "id", New: Make(make), PageSize: pageSize, Add: func(r *forgetest.Repo, _ int) {
		r.Open(forgetest.PR{})
	}}
}

// Branches is the kind of its branches.
func Branches[F Fetcher](pageSize int, make func(provider.Config) (F, error)) Kind {
	return Kind{Name: "branches", KeyField: "branch", New: Make(make), PageSize: pageSize, Add: func(r *forgetest.Repo, n int) {
		r.SetBranch(fmt.Sprintf("b%03d", n), forgetest.SHA(fmt.Sprint(n)))
	}}
}

// Tags is the kind of its tags, counted backwards: their order is that of names backwards.
func Tags[F Fetcher](pageSize int, make func(provider.Config) (F, error)) Kind {
	return Kind{Name: "tags", KeyField: "tag", New: Make(make), PageSize: pageSize, Add: func(r *forgetest.Repo, n int) {
		r.SetTag(fmt.Sprintf("t%03d", 999-n), forgetest.SHA(fmt.Sprint(n)))
	}}
}

// Make gives a typed constructor the type that a Fixture wants.
func Make[F Fetcher](make func(provider.Config) (F, error)) func(provider.Config) (Fetcher, error) {
	return func(cfg provider.Config) (Fetcher, error) {
		f, err := make(cfg)
		if err != nil {
			return nil, err // not f: a nil pointer in an interface is not nil
		}
		return f, nil
	}
}

// Contracts runs Contract for each kind. Start makes a server with one empty
// repository, and a config with the right credential for it.
func Contracts(t *testing.T, credentialKey string, start func(t *testing.T) (Server, *forgetest.Repo, provider.Config), kinds ...Kind) {
	for _, kind := range kinds {
		t.Run(kind.Name, func(t *testing.T) {
			Contract(t, func(t *testing.T, items int) Fixture {
				server, repo, cfg := start(t)
				n := 0
				add := func() { n++; kind.Add(repo, n) }
				for range items {
					add()
				}
				return Fixture{
					Server: server, Config: cfg, New: kind.New, Add: add, CredentialKey: credentialKey, KeyField: kind.KeyField,
					PageSize: kind.PageSize, Fewest: kind.Fewest, PageOf: kind.PageOf,
				}
			})
		})
	}
}

// Fetch is what a provider exports. The error is that of its constructor.
func Fetch(t *testing.T, p Fetcher, err error, previous ...api.Input) provider.Result {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	result, err := p.Fetch(t.Context(), previous)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// Failure is why a provider exports nothing.
func Failure(t *testing.T, p Fetcher, err error, previous ...api.Input) *provider.Error {
	t.Helper()
	var result provider.Result
	if err == nil {
		result, err = p.Fetch(t.Context(), previous)
	}
	var known *provider.Error
	if !errors.As(err, &known) || known.Hint == "" || result.Inputs != nil {
		t.Fatalf("got %v, %v: want an error with a hint", result.Inputs, err)
	}
	wellSaid(t, known)
	return known
}

// Texts are the values of one field, in order.
func Texts(result provider.Result, field string) string {
	all := make([]string, len(result.Inputs))
	for i, input := range result.Inputs {
		all[i] = fmt.Sprint(input[field])
	}
	return strings.Join(all, " ")
}

// Polls measures how many requests it costs to poll 500 unchanged items, after the
// first time.
func Polls(b *testing.B, p Fetcher, server interface {
	Forget()
	Calls() int
}) {
	if _, err := p.Fetch(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	server.Forget()
	polls := 0
	for b.Loop() {
		if result, err := p.Fetch(b.Context(), nil); err != nil || len(result.Inputs) != 500 {
			b.Fatal(len(result.Inputs), err)
		}
		polls++
	}
	b.ReportMetric(float64(server.Calls())/float64(polls), "requests/op")
}
