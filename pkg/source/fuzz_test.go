// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"path"
	"strings"
	"testing"
)

// FuzzRule12_Lookup holds that whatever links say, a path leads to something in
// the repository or nowhere.
func FuzzRule12_Lookup(f *testing.F) {
	f.Add("a/link", "../../../etc/passwd", "b.yaml")
	f.Add("a/link/x", "/", "..")
	f.Add("a/link/other/link", "other", "link")
	f.Add("../a/./link//", ".", "../a/b")
	f.Add("b/c/..", "a", "b")
	f.Fuzz(func(t *testing.T, p, one, two string) {
		if one == "" || two == "" || strings.ContainsAny(one+two, "\x00") || len(one)+len(two) > maxLinkSize {
			return
		}
		files := repo{"a/link": "link:" + one, "a/other": "link:" + two, "a/b.yaml": "x", "b/c/d.yaml": "y"}
		v := newView(context.Background(), gitFiles{files.tree(t)}, Options{})
		resolved, entry, err := v.lookup(p)
		if err != nil {
			return
		}
		if clean(resolved) != resolved || strings.HasPrefix(resolved, "..") || entry.Kind == Link {
			t.Errorf("%q leads to %q (%+v)", p, resolved, entry)
		}
		switch entry.Kind {
		case File:
			if _, err := v.content(resolved); err != nil || strings.HasPrefix(files[resolved], "link:") {
				t.Errorf("%q: %v", resolved, err)
			}
		case Folder:
			if _, err := v.list(resolved); err != nil {
				t.Errorf("%q: %v", resolved, err)
			}
		}
		if base := path.Base(resolved); resolved != "" && base != entry.Name {
			t.Errorf("%q is said to be %q", resolved, entry.Name)
		}
	})
}
