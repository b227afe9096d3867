// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/pkg/api"
)

func object(limit int, skip ...string) *api.ResourceSetInputProvider {
	return &api.ResourceSetInputProvider{Spec: api.InputProviderSpec{
		Filter: api.Filter{Limit: limit}, Skip: api.Skip{Labels: skip},
	}}
}

func items(keys string) []Item {
	var all []Item
	for _, key := range strings.Fields(keys) {
		all = append(all, Item{Key: key, Input: api.Input{"id": "id-" + key, "name": key}})
	}
	return all
}

func names(inputs []api.Input) string {
	var all []string
	for _, input := range inputs {
		all = append(all, input["name"].(string))
	}
	return strings.Join(all, " ")
}

func exportedAs(field, keys string) []api.Input {
	var all []api.Input
	for _, key := range strings.Fields(keys) {
		value := key
		if field == "id" {
			value = "id-" + key
		}
		all = append(all, api.Input{field: value})
	}
	return all
}

func TestRule13_FairLimit(t *testing.T) {
	for name, test := range map[string]struct {
		limit                   int
		found, previous, expect string
	}{
		"nothing before":              {3, "a b c d", "", "a b c"},
		"all fit":                     {4, "a b c d", "d", "a b c d"},
		"newcomer in front":           {3, "new a b c", "a b c", "a b c"},
		"newcomer in the middle":      {3, "a new b c", "a b c", "a b c"},
		"one went, one comes":         {3, "a c new1 new2", "a b c", "a c new1"},
		"only the last before":        {2, "a b c d", "d", "a d"},
		"limit made smaller":          {2, "a b c", "a b c", "a b"},
		"none of them is there":       {2, "a b c", "x y z", "a b"},
		"more before than the limit":  {2, "new a b c", "c b a", "a b"},
		"order is that of the server": {2, "d c b a", "a b", "b a"},
	} {
		for _, field := range []string{"name", "id"} { // inputs.lock may have the id alone
			t.Run(name+"/"+field, func(t *testing.T) {
				result, err := Export(object(test.limit), "name", items(test.found), exportedAs(field, test.previous))
				if err != nil {
					t.Fatal(err)
				}
				if got := names(result.Inputs); got != test.expect {
					t.Errorf("got %q, want %q", got, test.expect)
				}
				if cut := len(strings.Fields(test.found)) > test.limit; cut != (len(result.Warnings) == 1) {
					t.Errorf("warnings %q", result.Warnings)
				}
			})
		}
	}
}

// FR-06, with its own numbers.
func TestRule13_TheHundredAndFirst(t *testing.T) {
	var before []Item
	for i := range 100 {
		before = append(before, items(fmt.Sprint(i))...)
	}
	first, err := Export(object(0), "name", before, nil)
	if err != nil {
		t.Fatal(err)
	}
	newest := append(items("newest"), before...) // a server that lists the newest first
	second, err := Export(object(0), "name", newest, first.Inputs)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Inputs, second.Inputs); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if want := "101 matched, 100 exported: filter.limit is 100"; len(second.Warnings) != 1 || second.Warnings[0] != want {
		t.Errorf("warnings %q, want %q", second.Warnings, want)
	}
}

// A listing that repeats an item is a listing that moved (rule 1).
func TestRule01_RepeatedKey(t *testing.T) {
	_, err := Export(object(10), "number", items("a b a"), nil)
	if ReasonOf(err) != Implausible || !strings.Contains(err.Error(), `items 1 and 3 have the same number "a"`) {
		t.Errorf("got %v", err)
	}
	// FR-10: two ids may be equal where the id is a checksum; the keys are not.
	twins := items("v1.0.1 v0.2.0")
	twins[0].Input["id"], twins[1].Input["id"] = "93585765", "93585765"
	result, err := Export(object(10), "tag", twins, nil)
	if err != nil || len(result.Inputs) != 2 {
		t.Errorf("got %v, %v", result, err)
	}
}

func TestSkips(t *testing.T) {
	for _, test := range []struct {
		skip, has string
		want      bool
	}{
		{"", "a", false}, {"a", "a", true}, {"a", "b", false}, {"!a", "a", false}, {"!a", "b", true}, {"!a", "", true},
		{"a b", "b", true}, {"a !b", "b", false}, {"a !b", "", true}, {"a", "A", false},
	} {
		if got := skips(api.Skip{Labels: strings.Fields(test.skip)}, strings.Fields(test.has)); got != test.want {
			t.Errorf("skip %q, labels %q: %t", test.skip, test.has, got)
		}
	}
}

// A frozen item is not one that a limit may cut, and one that is held back takes no place.
func TestSkipAndLimit(t *testing.T) {
	found := items("held a frozen")
	found[0].Labels, found[2].Labels = []string{"pause"}, []string{"pause"}
	result, err := Export(object(1, "pause"), "name", found, []api.Input{{"name": "frozen", "old": true}})
	if err != nil {
		t.Fatal(err)
	}
	if names(result.Inputs) != "frozen" || result.Inputs[0]["old"] != true || result.Matched != 2 || result.Held != 1 || result.Frozen != 1 {
		t.Errorf("got %+v", result)
	}
}

// Defaults fill gaps, also of what is frozen; nothing of the definition is shared.
func TestDefaults(t *testing.T) {
	o := object(10, "pause")
	o.Spec.DefaultValues = api.Input{"env": "staging", "name": "default"}
	found := items("a")
	found[0].Labels = []string{"pause"}
	result, err := Export(o, "name", found, []api.Input{{"name": "a", "env": "old"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]api.Input{{"id": "id-a", "name": "a", "env": "old"}}, result.Inputs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	result.Inputs[0]["env"] = "changed"
	if o.Spec.DefaultValues["env"] != "staging" {
		t.Error("the definition was changed")
	}
}

func TestLimits(t *testing.T) {
	now := time.Now()
	limits := &Limits{}
	for _, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, longestPause, longestPause} {
		if until := limits.Pause("a", RateLimited, now, time.Time{}); until.Sub(now) != want {
			t.Errorf("waits %s, want %s", until.Sub(now), want)
		}
	}
	if !free(limits, "b", now) {
		t.Error("one key limits another")
	}
	if free(limits, "a", now) || !free(limits, "a", now.Add(longestPause)) {
		t.Error("a pause has to end when it ends")
	}
	past := now.Add(-time.Hour)
	limits.Pause("c", RateLimited, past, time.Time{})
	limits.Served("c")
	if until := limits.Pause("c", RateLimited, past, time.Time{}); until.Sub(past) != time.Minute {
		t.Errorf("waits %s after a success in between, want a minute", until.Sub(past))
	}
	said := now.Add(90 * time.Second)
	if until := limits.Pause("d", RateLimited, now, said); !until.Equal(said) {
		t.Errorf("waits until %s, want what the server said", until)
	}
	var none *Limits
	if until := none.Pause("a", RateLimited, now, time.Time{}); until.Sub(now) != time.Minute || !free(none, "a", now) {
		t.Errorf("without limits: until %s", until)
	}
}

// FR-91: the class of an error does not depend on the words of the server.
func TestReasonIsStable(t *testing.T) {
	a := fmt.Errorf("apps/prs: %w", &Error{Reason: Auth, Msg: "403: request ID 8F2A:1"})
	b := fmt.Errorf("apps/prs: %w", &Error{Reason: Auth, Msg: "403: request ID 8F2A:2"})
	if a.Error() == b.Error() || ReasonOf(a) != ReasonOf(b) || ReasonOf(a) != Auth {
		t.Errorf("%s and %s", ReasonOf(a), ReasonOf(b))
	}
	if ReasonOf(fmt.Errorf("x")) != Unknown {
		t.Error("any error is of a known class")
	}
}

func TestParseURL(t *testing.T) {
	for raw, wants := range map[string]string{
		"https://u:s3cr3t@host/": "user name or password", "ftp://host": "ftp", "https://": "host", "s3cr3t\x7f://": "not a URL", "": "",
	} {
		_, err := ParseURL(raw)
		if ReasonOf(err) != Misconfigured || !strings.Contains(err.Error(), wants) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: got %v", raw, err)
		}
	}
	if u, err := ParseURL("https://host/p?a=b%20c#fragment"); err != nil || u.String() != "https://host/p?a=b%20c" {
		t.Errorf("got %v, %v", u, err)
	}
}

// A date, a moving tag and a commit in digits are no versions, as for the operator:
// none of them may become the newest.
func TestSemverIsStrict(t *testing.T) {
	object := &api.ResourceSetInputProvider{Spec: api.InputProviderSpec{Filter: api.Filter{Semver: ">=1.0.0", Limit: 1}}}
	var items []Item
	for _, tag := range []string{"20240115", "1234567", "v1", "6", "6.6", "2024.01.15", "01.2.3", "6.5.0", "v6.6.0", "latest"} {
		items = append(items, Item{Key: tag, Input: api.Input{"tag": tag}})
	}
	result, err := ExportTags(object, items, nil)
	if err != nil || len(result.Inputs) != 1 || result.Inputs[0]["tag"] != "v6.6.0" || result.Matched != 2 {
		t.Errorf("got %+v, %v", result, err)
	}
}

func free(limits *Limits, key string, now time.Time) bool {
	until, _ := limits.Until(key, now)
	return until.IsZero()
}

// What is empty leaves no trace in a message: nobody reads ": :".
func TestErrorText(t *testing.T) {
	cause := errors.New("cause")
	for _, test := range []struct {
		err  *Error
		want string
	}{
		{&Error{Reason: Timeout, Msg: "msg", Err: cause}, "msg: cause"},
		{&Error{Reason: Timeout, Msg: "msg"}, "msg"},
		{&Error{Reason: Timeout, Err: cause}, "cause"},
		{&Error{Reason: Timeout, Msg: "msg", Err: errors.New("")}, "msg"},
		{&Error{Reason: Timeout}, "timeout"},
		{(&Error{Reason: Timeout, Msg: "msg", Err: cause}).Within("page %d", 2), "page 2: msg: cause"},
		{(&Error{Reason: Timeout, Err: cause}).Within("page %d", 2), "page 2: cause"},
		{(&Error{Reason: Timeout}).Within("page %d", 2), "page 2"},
		{(&Error{Reason: Timeout, Err: cause}).Within("page").Within("list"), "list: page: cause"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
