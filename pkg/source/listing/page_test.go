// SPDX-License-Identifier: Apache-2.0

package listing

import "testing"

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
