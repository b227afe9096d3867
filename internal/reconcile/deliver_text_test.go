// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// Texts of strangers (branch names, fields) reach a request's text. Nothing in them
// may mention people, close issues, run a forge's commands or change the table.
func TestRequestTextIsHarmless(t *testing.T) {
	evil := []string{
		"@org/everybody", "closes #1", "/close\n/merge", "a | b | c", "`code` @x", "<img src=http://evil/x>", "[x](http://evil)",
		"![x](https://evil/pixel)", "www.evil.example", "<!-- renderer proposal withdrawn -->", "```\n@x", "\u202e@x", "&#64;x", `\|`,
	}
	pl := &plan{name: "apps/app", message: "apps/app: add x\n\nResourceSet: apps/app\n"}
	for _, text := range evil {
		pl.changes = append(pl.changes, setChange{Kind: added, Name: "tenants-x", Provider: "tenants", Detail: text, Reason: "changed " + text})
	}
	var b strings.Builder
	pl.section(&b)
	rows := 0
	for line := range strings.Lines(b.String()) {
		if !strings.HasPrefix(line, "| added |") {
			continue
		}
		rows++
		// What Markdown shows as code means nothing.
		rest := regexp.MustCompile("`[^`]*`").ReplaceAllString(strings.ReplaceAll(line, "\\`", ""), "")
		for _, bad := range []string{"@", "#", "<", "http:", " www.", "`"} {
			if strings.Contains(rest, bad) {
				t.Errorf("%q has %q", line, bad)
			}
		}
		if n := strings.Count(line, "|"); n != 5 {
			t.Errorf("%q has %d bars", line, n)
		}
		if strings.Contains(line, "@") || strings.Contains(line, "-->") && strings.Contains(line, "<!--") && !strings.Contains(line, "`<!--") {
			t.Errorf("%q", line)
		}
	}
	if rows != len(evil) {
		t.Errorf("%d rows for %d changes:\n%s", rows, len(evil), b.String())
	}
}

func TestRequestTextIsBounded(t *testing.T) {
	pl := &plan{name: "apps/app", message: "apps/app: add many\n\nResourceSet: apps/app\n"}
	for range 5000 {
		pl.changes = append(pl.changes, setChange{Kind: added, Name: "x", Detail: strings.Repeat("y", 500)})
	}
	var b strings.Builder
	pl.section(&b)
	if b.Len() > 30_000 || !strings.Contains(b.String(), "And 4900 more.") {
		t.Errorf("%d bytes", b.Len())
	}
}

func TestWithdrawnTextProposesNothing(t *testing.T) {
	pr := &proposal{wanted: "sha256:1", base: "sha256:2"}
	body := "Text\n\n" + mark(pr) + "\n"
	if !proposes(body, "sha256:1") || proposes(body, "sha256:") || proposes(body, "sha256:2") {
		t.Error("the mark is not read as it is written")
	}
	if got := withdraw(body); proposes(got, "sha256:1") || got != "Text\n\n"+withdrawn+"\n" {
		t.Errorf("got %q", got)
	}
}

func TestBranchNames(t *testing.T) {
	for dir, want := range map[string]string{
		"apps/app":         `^apps/app-abcd1234$`,
		"apps/app.v1":      `^apps/app\.v1-abcd1234$`,
		"apps/App":         `^apps/-?pp-[0-9a-f]{8}-abcd1234$`,
		"../..":            `^x/x-[0-9a-f]{8}-abcd1234$`,
		"apps/app.lock":    `^apps/app-[0-9a-f]{8}-abcd1234$`,
		"apps/a b~^:?*[\\": `^apps/a-b-[0-9a-f]{8}-abcd1234$`,
	} {
		if got := branchName(dir, "abcd1234"); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%q: got %q, want %s", dir, got, want)
		}
	}
	names := []string{}
	for _, dir := range []string{"a/b", "a/B", "a/-b", "a/b-", "a/b.", "a/" + strings.Repeat("b", 200), "a/" + strings.Repeat("b", 201)} {
		names = append(names, branchName(dir, "abcd1234"))
	}
	slices.Sort(names)
	if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) {
		t.Errorf("two folders share a branch: %v", names)
	}
	if branchScope("main", "a") == branchScope("main", "b") || branchScope("main", "a") == branchScope("release", "a") {
		t.Error("two targets share branches")
	}
}

// Folders of the target path are named by anybody who can push to it.
func FuzzBranchName(f *testing.F) {
	for _, dir := range []string{"apps/app", "../..", "a/b.lock.lock", "a/@{x", "-/-", "ä/ö", "a/..lock..", "b.lock.lock/a", "a.-.lock/b"} {
		f.Add(dir)
	}
	f.Fuzz(func(t *testing.T, dir string) {
		name := branchName(dir, "abcd1234")
		if err := plumbing.NewBranchReferenceName("renderer/" + name).Validate(); err != nil {
			t.Fatalf("%q: %q: %v", dir, name, err)
		}
		for part := range strings.SplitSeq(name, "/") {
			if part == "" || len(part) > 200 || strings.HasSuffix(part, ".lock") || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".") {
				t.Fatalf("%q: %q", dir, name)
			}
		}
	})
}

func TestAPITokenIsNeverAPassphrase(t *testing.T) {
	secret := func(pairs ...string) map[string][]byte {
		data := map[string][]byte{}
		for i := 0; i < len(pairs); i += 2 {
			data[pairs[i]] = []byte(pairs[i+1])
		}
		return data
	}
	for _, tt := range []struct {
		data map[string][]byte
		want string
	}{
		{secret("token", "t\n", "password", "p"), "t"},
		{secret("username", "git", "password", "p"), "p"},
		{secret("bearerToken", "b"), "b"},
		{secret("identity", "KEY", "password", "passphrase"), ""},
		{secret("identity", "KEY", "password", "passphrase", "token", "t"), "t"},
		{nil, ""},
	} {
		if got := apiToken(tt.data); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
