// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"net/http"
	"testing"
)

// FR-11: the address of the next page is taken as the server gives it.
func TestLinkTo(t *testing.T) {
	for header, want := range map[string]string{
		`<https://x/p?page=2>; rel="next", <https://x/p?page=9>; rel="last"`: "https://x/p?page=2",
		`<https://x/p?page=1>; rel="prev", </p?after=a%3D,b;c>; rel="next"`:  "/p?after=a%3D,b;c",
		`<u>; title="a"; rel=next`: "u",
		`<u>; rel="last next"`:     "u",
		`<u>; REL="next"`:          "u",
		`<u>; rel="nextish"`:       "",
		`<u>; rel="prev"`:          "",
		`<u`:                       "",
		``:                         "",
		`>;rel="next"`:             "",
		`<a>; rel="prev",<b>;rel="next",<c>;rel=up`: "b",
	} {
		if got, _ := linkTo([]string{header}, "next"); got != want {
			t.Errorf("%s: got %q, want %q", header, got, want)
		}
	}
	if got, ok := linkTo([]string{`<a>; rel="prev"`, `<b>; rel="next"`}, "next"); !ok || got != "b" {
		t.Errorf("two headers: got %q", got)
	}
}

// Only the query of a next page counts where addresses may name another host.
func TestNextQuery(t *testing.T) {
	for header, want := range map[string]string{
		`<https://elsewhere.example/p?page=2&limit=5>; rel="next"`: "limit=5&page=2",
		`</p?page_token=a%2Fb>; rel="next"`:                        "page_token=a%2Fb",
		`</p?page=1>; rel="prev"`:                                  "none",
		`</p>; rel="next"`:                                         "error",
		`<http://[::1>; rel="next"`:                                "error",
		`</p?%zz>; rel="next"`:                                     "error",
	} {
		query, ok, err := NextQuery(&http.Response{Header: http.Header{"Link": {header}}})
		got := query.Encode()
		switch {
		case err != nil:
			got = "error"
		case !ok:
			got = "none"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", header, got, want)
		}
	}
}

// A server without validators has unchanged pages as well.
func TestEqual(t *testing.T) {
	page := func() *Page[[]string] {
		return &Page[[]string]{Items: [][]string{{"a"}}, Keys: []string{"1"}, Next: "2"}
	}
	known := page()
	if !page().equal(known) || !known.equal(known) || page().equal(nil) {
		t.Error("equal pages differ, or one is equal to none")
	}
	for name, change := range map[string]func(*Page[[]string]){
		"item": func(p *Page[[]string]) { p.Items[0][0] = "b" },
		"key":  func(p *Page[[]string]) { p.Keys[0] = "2" },
		"next": func(p *Page[[]string]) { p.Next = "" },
	} {
		p := page()
		change(p)
		if p.equal(known) {
			t.Errorf("another %s, and equal", name)
		}
	}
}
