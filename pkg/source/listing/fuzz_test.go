// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"testing"

	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// Rule 8: wherever a Link header leads, the next page is on the host that the
// credential is for, or it is an error.
func FuzzRule08_Link(f *testing.F) {
	for _, header := range []string{
		`</v2/app/tags/list?next_page=gAAA%3D&n=100>; rel="next"`, `<https://forge.example/x?page=2>; rel="next", <https://forge.example/x?page=9>; rel="last"`,
		`<https://evil.example/>; rel=next`, `<//evil.example/x>; rel="prev next"`, `<\\evil.example>; rel="next"`, `<http://forge.example/>; rel="next"`,
		`<https://forge.example@evil.example/>; rel="next"`, `<>; rel="next"`, `<<>>; rel=`, `<https://forge.example:443/a>;REL=Next`, `<?page=-1>; rel="last"`,
	} {
		f.Add(header)
	}
	base := &url.URL{Scheme: "https", Host: "forge.example", Path: "/api/"}
	from := base.JoinPath("things")
	f.Fuzz(func(t *testing.T, header string) {
		resp := &http.Response{Header: http.Header{"Link": {header}}, Request: &http.Request{URL: from}}
		if next, err := NextLink(resp, base); err == nil && next != "" {
			u, err := url.Parse(next)
			if err != nil || !transport.SameHost(base, u) {
				t.Errorf("%q leads to %q", header, next)
			}
		}
		if query, ok, err := NextQuery(resp); ok && (err != nil || len(query) == 0) {
			t.Errorf("%q leads to %v, %v", header, query, err)
		}
		if LastNumber(resp) < 0 || Total(resp, "Link") < 0 {
			t.Errorf("%q counts less than nothing", header)
		}
	})
}

// A body is a list of as many items as JSON sees in it, or an error.
func FuzzRule01_Array(f *testing.F) {
	for _, body := range []string{`[]`, `["a","b"]`, `["a",null]`, `null`, `{}`, `[`, `[] []`, `["a"]x`, ""} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		page, err := Array(body, "things", "hint", func(data json.RawMessage) (string, string, error) {
			var text *string
			if json.Unmarshal(data, &text) != nil || text == nil {
				return "", "", errors.New("not a text")
			}
			return *text, *text, nil
		})
		var all []*string
		whole := json.Unmarshal(body, &all) == nil && all != nil
		switch {
		case err != nil && (page != nil || provider.ReasonOf(err) != provider.Implausible):
			t.Errorf("%q: got %v, %v", body, page, err)
		case err == nil && (!whole || len(page.Items) != len(all) || len(page.Keys) != len(all)):
			t.Errorf("%q: got %v", body, page)
		}
	})
}
