// SPDX-License-Identifier: Apache-2.0

// Package providertest has the tests that every kind of input provider passes.
//
// A kind brings a [Fixture]: a server of its own that has items and can be
// broken. [Contract] then checks what the provider package promises: a listing is
// complete or an error, whatever the server does; credentials go to one host and
// into no message; limits are fair; a server that asks for patience gets it.
package providertest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
)

// A Fetcher is a provider of any kind.
type Fetcher interface {
	Fetch(ctx context.Context, previous []api.Input) (provider.Result, error)
}

// A Server is what a fixture's server can do, apart from answering.
type Server interface {
	Break(forgetest.Fault)
	Heal()
	Requests() []*http.Request
}

// A Fixture is a server with some items, and how a provider reaches it.
type Fixture struct {
	Server Server
	// Config has the right credential for the server.
	Config provider.Config
	New    func(provider.Config) (Fetcher, error)
	// Add adds an item to the server.
	Add func()
	// CredentialKey is the secret key with the credential.
	CredentialKey string
	// KeyField is the input field that names an item for life.
	KeyField string
	// PageSize is how many items the server has on a page; 0 if it has no pages.
	PageSize int
	// Fewest is how many items there are at least where a list without any cannot be.
	Fewest int
	// PageOf is the number of the page that a request is for, counted from 1; nil
	// where the query has it as "page".
	PageOf func(*http.Request) int
}

// Contract runs all tests. Start makes a server with so many items.
func Contract(t *testing.T, start func(t *testing.T, items int) Fixture) {
	c := contract{start}
	t.Run("complete", c.complete)
	t.Run("defaults", c.defaults)
	t.Run("Rule01_not_data_is_an_error", c.notData)
	t.Run("Rule01_recovers", c.recovers)
	t.Run("Rule08_no_credential_in_errors", c.redaction)
	t.Run("Rule08_credential_for_one_host", c.redirect)
	t.Run("Rule13_fair_limit", c.fairLimit)
	t.Run("cancelled", c.cancelled)
	t.Run("FR92_hanging_server", c.hangs)
	t.Run("credential", c.credential)
	t.Run("FR12_rate_limit", c.rateLimit)
	t.Run("retries", c.retries)
}

type contract struct {
	start func(t *testing.T, items int) Fixture
}

func (c contract) begin(t *testing.T, items int) Fixture {
	t.Helper()
	f := c.start(t, items)
	if f.Config.RetryWait == 0 {
		f.Config.RetryWait = time.Millisecond
	}
	return f
}

func (f Fixture) provider(t *testing.T) Fetcher {
	t.Helper()
	p, err := f.New(f.Config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (f Fixture) fetch(t *testing.T, p Fetcher, previous []api.Input) provider.Result {
	t.Helper()
	result, err := p.Fetch(t.Context(), previous)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (c contract) complete(t *testing.T) {
	sizes := []int{0, 1, 2}
	if page := c.begin(t, 0).PageSize; page > 0 {
		sizes = append(sizes, page, page+1, 5*page/2)
	}
	for _, size := range sizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			f := c.begin(t, size)
			if size < f.Fewest {
				t.Skip("there is no such list")
			}
			f.Config.Object.Spec.Filter.Limit = api.MaxFilterLimit
			p := f.provider(t)
			first := f.fetch(t, p, nil)
			if first.Inputs == nil || len(first.Inputs) != size || first.Matched != size {
				t.Fatalf("%d inputs (nil: %t), %d matched, want %d", len(first.Inputs), first.Inputs == nil, first.Matched, size)
			}
			keys := map[any]bool{}
			for _, input := range first.Inputs {
				keys[input[f.KeyField]] = true
			}
			if len(keys) != size {
				t.Errorf("%d different keys, want %d", len(keys), size)
			}
			if diff := cmp.Diff(first, f.fetch(t, p, first.Inputs)); diff != "" {
				t.Errorf("second fetch (-first +second):\n%s", diff)
			}
		})
	}
}

func (c contract) defaults(t *testing.T) {
	f := c.begin(t, 1)
	own := f.fetch(t, f.provider(t), nil).Inputs[0][f.KeyField]
	f.Config.Object.Spec.DefaultValues = api.Input{"extra": int64(7), f.KeyField: "not this"}
	input := f.fetch(t, f.provider(t), nil).Inputs[0]
	if input["extra"] != int64(7) || input[f.KeyField] != own {
		t.Errorf("got %v: want extra: 7, and %s as found", input, f.KeyField)
	}
}

// faults are all the ways in which an answer is not the data asked for (FR-01, FR-03).
func faults() map[string]forgetest.Fault {
	all := map[string]forgetest.Fault{
		"web page":                 forgetest.Page(),
		"sign-in page":             forgetest.SignIn(),
		"page typed as JSON":       forgetest.JSON("<html><title>Be right back</title></html>"),
		"empty body":               forgetest.JSON(""),
		"null":                     forgetest.JSON("null"),
		"empty object":             forgetest.JSON("{}"),
		"text":                     forgetest.JSON(`"later"`),
		"list of null":             forgetest.JSON("[null]"),
		"list of empty objects":    forgetest.JSON("[{}]"),
		"cut off":                  forgetest.Truncate(),
		"cut off but well-behaved": forgetest.JSON(`[{"number":1,"title":"a`),
		"redirect to nowhere":      forgetest.Answer(http.StatusFound, "", ""),
		"not modified":             forgetest.Answer(http.StatusNotModified, "", ""),
		"redirect to itself": func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			http.Redirect(w, r, r.URL.String(), http.StatusFound)
		},
	}
	for _, status := range []int{202, 204, 206, 400, 401, 403, 404, 405, 410, 429, 500, 502, 503, 504} {
		all[fmt.Sprint(status)] = forgetest.Status(status, "no")
	}
	return all
}

func (c contract) notData(t *testing.T) {
	pages, items := []int{1}, 1
	if size := c.begin(t, 0).PageSize; size > 0 {
		pages, items = []int{1, 2, 3}, 5*size/2
	}
	for _, number := range pages {
		for name, fault := range faults() {
			t.Run(fmt.Sprintf("page %d/%s", number, name), func(t *testing.T) {
				f := c.begin(t, items)
				if f.PageOf != nil {
					f.Server.Break(forgetest.OnPageOf(f.PageOf, number, fault))
				} else {
					f.Server.Break(forgetest.OnPage(number, fault))
				}
				result, err := f.provider(t).Fetch(t.Context(), nil)
				var known *provider.Error
				if !errors.As(err, &known) || known.Reason == provider.Unknown || known.Reason == provider.Canceled {
					t.Fatalf("got %d inputs, error %v: want a provider.Error", len(result.Inputs), err)
				}
				if result.Inputs != nil {
					t.Errorf("%d inputs beside the error", len(result.Inputs))
				}
				if known.Hint == "" {
					t.Errorf("no hint with %q", known)
				}
				wellSaid(t, known)
				if number > 1 && !strings.Contains(known.Error(), fmt.Sprintf("page %d", number)) {
					t.Errorf("%q does not name the page (FR-07)", known)
				}
			})
		}
	}
}

// wellSaid checks that a message has no empty part.
func wellSaid(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if text == "" || strings.Contains(text, ": :") || strings.Contains(text, "  ") || strings.ContainsAny(text, "\n\t") || strings.TrimRight(text, ": ") != text {
		t.Errorf("a part of %q says nothing", text)
	}
}

func (c contract) recovers(t *testing.T) {
	f := c.begin(t, 2)
	p := f.provider(t)
	before := f.fetch(t, p, nil)
	f.Server.Break(forgetest.Page())
	if _, err := p.Fetch(t.Context(), before.Inputs); provider.ReasonOf(err) != provider.Implausible {
		t.Fatalf("got %v", err)
	}
	f.Server.Heal()
	if diff := cmp.Diff(before, f.fetch(t, p, before.Inputs)); diff != "" {
		t.Errorf("after recovery (-before +after):\n%s", diff)
	}
}

// leaks returns the first form of the fixture's secrets that a text holds.
func (f Fixture) leaks(text string) string {
	for key, value := range f.Config.Secret {
		if key == "username" {
			continue
		}
		raw := strings.TrimSpace(string(value))
		for _, form := range []string{raw, url.QueryEscape(raw), base64.StdEncoding.EncodeToString([]byte(raw))} {
			if strings.Contains(text, form) {
				return key
			}
		}
	}
	return ""
}

func (c contract) redaction(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		username, password, _ := r.BasicAuth()
		forgetest.Status(http.StatusForbidden, fmt.Sprintf("you sent %s, which is %s:%s", r.Header.Get("Authorization"), username, password))(w, r, next)
	}
	down := httptest.NewServer(nil)
	down.Close()
	for name, fault := range map[string]forgetest.Fault{
		"echo": echo, "elsewhere": forgetest.Redirect("http://127.0.0.2/x?secret=s3cr3t-query"), "cut": forgetest.Truncate(),
	} {
		t.Run(name, func(t *testing.T) {
			f := c.begin(t, 1)
			f.Server.Break(fault)
			_, err := f.provider(t).Fetch(t.Context(), nil)
			if err == nil {
				t.Fatal("no error")
			}
			if key := f.leaks(fmt.Sprintf("%v %+v %q", err, err, err)); key != "" {
				t.Errorf("%q holds the value of %q", err, key)
			}
			if strings.Contains(err.Error(), "s3cr3t-query") {
				t.Errorf("%q holds a query", err)
			}
		})
	}
	t.Run("line break inside (FR-86)", func(t *testing.T) {
		f := c.begin(t, 1)
		f.Config.Secret = maps.Clone(f.Config.Secret)
		f.Config.Secret[f.CredentialKey] = []byte("first-half\nsecond-half")
		_, err := f.New(f.Config)
		if provider.ReasonOf(err) != provider.Misconfigured || strings.Contains(err.Error(), "half") {
			t.Errorf("got %v, want a config error without the value", err)
		}
	})
}

// redirect is FR-81: a second host, and a chain that comes back by way of it.
func (c contract) redirect(t *testing.T) {
	f := c.begin(t, 1)
	asked := 0
	var sent strings.Builder
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		_ = r.Header.Write(&sent)
		http.Redirect(w, r, f.Config.Object.Spec.URL, http.StatusFound)
	}))
	defer evil.Close()
	f.Server.Break(forgetest.Redirect(evil.URL))
	_, err := f.provider(t).Fetch(t.Context(), nil)
	if provider.ReasonOf(err) != provider.Redirected {
		t.Errorf("got %v, want a refused redirect", err)
	}
	if asked != 0 || f.leaks(sent.String()) != "" {
		t.Errorf("the other host was asked %d times, and sent %q", asked, sent.String())
	}
}

func (c contract) fairLimit(t *testing.T) {
	f := c.begin(t, 3)
	f.Config.Object.Spec.Filter.Limit = 3
	p := f.provider(t)
	before := f.fetch(t, p, nil)
	if len(before.Warnings) != 0 {
		t.Errorf("warnings %q although nothing was cut", before.Warnings)
	}
	f.Add()
	after := f.fetch(t, p, before.Inputs)
	if diff := cmp.Diff(before.Inputs, after.Inputs); diff != "" {
		t.Errorf("a newcomer changed what is exported (-before +after):\n%s", diff)
	}
	if after.Matched != 4 || len(after.Warnings) == 0 || !strings.Contains(after.Warnings[0], "4 matched, 3 exported") {
		t.Errorf("matched %d, warnings %q", after.Matched, after.Warnings)
	}
	// The one that was exported before stays, wherever it is in the order.
	last := f.fetch(t, p, []api.Input{{f.KeyField: lastKey(t, f)}})
	if got := last.Inputs[len(last.Inputs)-1][f.KeyField]; got != lastKey(t, f) {
		t.Errorf("%v was exported before, and was cut", lastKey(t, f))
	}
}

func lastKey(t *testing.T, f Fixture) any {
	t.Helper()
	f.Config.Object.Spec.Filter.Limit = 0
	inputs := f.fetch(t, f.provider(t), nil).Inputs
	f.Config.Object.Spec.Filter.Limit = 3
	return inputs[len(inputs)-1][f.KeyField]
}

func (c contract) cancelled(t *testing.T) {
	f := c.begin(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	result, err := f.provider(t).Fetch(ctx, nil)
	if provider.ReasonOf(err) != provider.Canceled || result.Inputs != nil {
		t.Errorf("got %v, %v", result, err)
	}
}

func (c contract) hangs(t *testing.T) {
	f := c.begin(t, 1)
	f.Server.Break(forgetest.Hang())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := f.provider(t).Fetch(ctx, nil)
	if provider.ReasonOf(err) != provider.Timeout {
		t.Fatalf("got %v, want a timeout", err)
	}
	wellSaid(t, err)
}

func (c contract) credential(t *testing.T) {
	f := c.begin(t, 1)
	right := f.Config.Secret
	t.Run("with a line break at its end (FR-86)", func(t *testing.T) {
		f.Config.Secret = maps.Clone(right)
		f.Config.Secret[f.CredentialKey] = append([]byte(nil), append(right[f.CredentialKey], "\r\n"...)...)
		f.fetch(t, f.provider(t), nil)
	})
	t.Run("wrong", func(t *testing.T) {
		f.Config.Secret = maps.Clone(right)
		f.Config.Secret[f.CredentialKey] = []byte("not-the-right-one")
		_, err := f.provider(t).Fetch(t.Context(), nil)
		if provider.ReasonOf(err) != provider.Auth || f.leaks(err.Error()) != "" {
			t.Errorf("got %v, want an auth error without the value", err)
		}
	})
	t.Run("none", func(t *testing.T) {
		f.Config.Secret = nil
		_, err := f.provider(t).Fetch(t.Context(), nil)
		if reason := provider.ReasonOf(err); reason != provider.Auth && reason != provider.NotFound {
			t.Errorf("got %v, want an auth or not-found error", err)
		}
	})
	t.Run("empty secret", func(t *testing.T) {
		f.Config.Secret = provider.Secret{}
		if _, err := f.New(f.Config); provider.ReasonOf(err) != provider.Misconfigured {
			t.Errorf("got %v, want a config error", err)
		}
	})
}

func (c contract) rateLimit(t *testing.T) {
	now := time.Now()
	later := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		w.Header().Set("Retry-After", "120")
		forgetest.Status(http.StatusTooManyRequests, "slow down")(w, r, next)
	}
	for name, test := range map[string]struct {
		fault   forgetest.Fault
		atLeast time.Duration
	}{
		"no headers":      {forgetest.SecondaryLimit(), time.Minute},
		"reset":           {forgetest.RateLimited(now.Add(90 * time.Second)), 88 * time.Second},
		"retry after":     {later, 2 * time.Minute},
		"403 and no more": {forgetest.Status(http.StatusForbidden, "You have exceeded a secondary rate limit"), time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.begin(t, 1)
			f.Config.Limits = &provider.Limits{}
			f.Server.Break(test.fault)
			_, err := f.provider(t).Fetch(t.Context(), nil)
			var known *provider.Error
			if !errors.As(err, &known) || known.Reason != provider.RateLimited {
				t.Fatalf("got %v, want a rate limit", err)
			}
			wellSaid(t, err)
			if wait := known.Until.Sub(now); wait < test.atLeast || wait > test.atLeast+time.Minute {
				t.Errorf("waits %s, want %s", wait, test.atLeast)
			}
			// Nobody else with that credential asks meanwhile, though the server would answer.
			f.Server.Heal()
			asked := len(f.Server.Requests())
			if _, err := f.provider(t).Fetch(t.Context(), nil); provider.ReasonOf(err) != provider.RateLimited {
				t.Errorf("second provider: got %v, want a rate limit", err)
			}
			if now := len(f.Server.Requests()); now != asked {
				t.Errorf("%d requests during the wait", now-asked)
			}
		})
	}
}

func (c contract) retries(t *testing.T) {
	for name, fault := range map[string]forgetest.Fault{
		"bad gateway": forgetest.Status(http.StatusBadGateway, "restarting"),
		"unavailable": forgetest.Status(http.StatusServiceUnavailable, "restarting"),
		"dropped": func(http.ResponseWriter, *http.Request, http.Handler) {
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.begin(t, 1)
			f.Server.Break(forgetest.Times(2, fault))
			f.fetch(t, f.provider(t), nil)
			f.Server.Break(fault)
			asked := len(f.Server.Requests())
			_, err := f.provider(t).Fetch(t.Context(), nil)
			if provider.ReasonOf(err) != provider.Unavailable {
				t.Fatalf("got %v, want unavailable", err)
			}
			wellSaid(t, err)
			if tries := len(f.Server.Requests()) - asked; tries != 3 {
				t.Errorf("%d tries, want 3", tries)
			}
		})
	}
}
