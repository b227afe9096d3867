// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"slices"
	"strings"
	"testing"

	"resourceset.example/renderer/pkg/expand"
)

func all(names string) []string { return strings.Fields(names) }

func in(names string) func(string) bool {
	return func(entry string) bool { return slices.Contains(all(names), entry) }
}

const head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"

func TestOf(t *testing.T) {
	pure := func(names string) string { return string(expand.Kustomization(all(names))) }
	for name, c := range map[string]struct {
		m                       Merge
		want                    string
		added, fields, removed  string
		missing, stale, current string
	}{
		"new":                        {m: Merge{Now: all("b a")}, want: pure("a b")},
		"ours alone":                 {m: Merge{Before: all("a b"), Now: all("b c")}, current: pure("a b"), want: pure("b c")},
		"to nothing":                 {m: Merge{Before: all("a"), Now: nil}, current: pure("a"), want: pure("")},
		"from nothing":               {m: Merge{Now: all("a")}, current: pure(""), want: pure("a")},
		"an addition":                {m: Merge{Before: all("a"), Now: all("a b")}, current: pure("a theirs"), want: head + "resources:\n- \"a\"\n- \"theirs\"\n- \"b\"\n", added: "theirs"},
		"fields":                     {m: Merge{Before: all("a"), Now: all("b")}, current: pure("a") + "# why\npatches:\n- path: p.yaml\n", want: head + "resources:\n- \"b\"\n# why\npatches:\n- path: p.yaml\n", fields: "patches"},
		"a removal":                  {m: Merge{Before: all("a b"), Now: all("a b c")}, current: pure("a"), want: pure("a c"), removed: "b"},
		"removed twice":              {m: Merge{Before: all("a b"), Now: all("a c")}, current: pure("a"), want: pure("a c")},
		"no file":                    {m: Merge{Before: all("a b"), Now: all("a b"), Is: in("a")}, current: pure("a b"), want: pure("a"), missing: "b", stale: "b"},
		"a file that is there again": {m: Merge{Before: all("a b"), Now: all("a b"), Was: in("a")}, current: pure("a"), want: pure("a b")},
		"leads nowhere":              {m: Merge{Before: all("a"), Now: all("a"), Stale: in("x/y")}, current: pure("a x/y theirs"), want: head + "resources:\n- \"a\"\n- \"theirs\"\n", added: "theirs", stale: "x/y"},
		"in brackets":                {m: Merge{Before: all("a"), Now: all("a b")}, current: "resources: [a, theirs]\n", want: "resources:\n- a\n- b\n- theirs\n", added: "theirs"},
		"listed twice":               {m: Merge{Before: all("a"), Now: all("a b")}, current: head + "resources:\n- a\n- \"a\"\n- ../base\n", want: head + "resources:\n- a\n- ../base\n- \"b\"\n", added: "../base"},
	} {
		if c.current != "" {
			c.m.Current = []byte(c.current)
		}
		got, err := Of(c.m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if string(got.Data) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got.Data, c.want)
		}
		for what, pair := range map[string][2]string{
			"added": {strings.Join(got.Added, " "), c.added}, "fields": {strings.Join(got.Fields, " "), c.fields},
			"removed": {strings.Join(got.Removed, " "), c.removed}, "missing": {strings.Join(got.Missing, " "), c.missing},
			"stale": {strings.Join(got.Stale, " "), c.stale},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: %s is %q, want %q", name, what, pair[0], pair[1])
			}
		}
	}
	for _, damaged := range []string{"resources: {}\n", "resources: [1]\n", "a: b: c\n"} {
		if _, err := Of(Merge{Current: []byte(damaged)}); err == nil {
			t.Errorf("%q was read", damaged)
		}
	}
}

// Whatever stands in the file: what is merged can be read again, and merging it once
// more changes nothing.
func FuzzOf(f *testing.F) {
	f.Add(head+"resources:\n- \"a\"\n- \"theirs\"\n", "a b", "b c")
	f.Add("# why\nresources: [a, 'x']\nimages:\n- name: a\n", "a", "")
	f.Add("resources:\n- a # ours\n-   b\npatches:\n- a\n", "a b", "b")
	f.Fuzz(func(t *testing.T, current, before, now string) {
		if strings.Trim(before+now, "abcdefghijklmnopqrstuvwxyz./- ") != "" {
			return // ours are never made of anything else
		}
		first, err := Of(Merge{Current: []byte(current), Before: all(before), Now: all(now)})
		if err != nil {
			return
		}
		second, err := Of(Merge{Current: first.Data, Before: all(now), Now: all(now)})
		if err != nil {
			t.Fatalf("%q cannot be read again: %v", first.Data, err)
		}
		if string(second.Data) != string(first.Data) {
			t.Errorf("not stable:\n%q\n%q", first.Data, second.Data)
		}
		if len(first.Fields) != len(second.Fields) {
			t.Errorf("fields %v became %v", first.Fields, second.Fields)
		}
	})
}
