// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestMessage(t *testing.T) {
	m := message{
		ResourceSet: "podinfo-preview/podinfo",
		Changes: []setChange{
			{Kind: added, Name: "podinfo-pull-requests-12", Provider: "podinfo-pull-requests", Detail: "feat/ui-footer", NewSHA: "bf5d6e01cf802734853f6f3417b237e3ad0ba35d", Reason: "added by GitHubPullRequest podinfo-pull-requests"},
			{Kind: updated, Name: "podinfo-pull-requests-9", Provider: "podinfo-pull-requests", OldSHA: "8492c0b5b2094fe720776c8ace1b9690ff258f53", NewSHA: "8166bdecd6b078b9e5dd14fa3b7b67a847f76893"},
			{Kind: removed, Name: "podinfo-pull-requests-7", Provider: "podinfo-pull-requests", Reason: "gone from GitHubPullRequest podinfo-pull-requests"},
		},
		Revision:     "main@sha1:0123",
		InputsDigest: "sha256:4567",
		Trigger:      "webhook",
	}
	want := `podinfo-preview/podinfo: add 12, update 9, remove 7

12  feat/ui-footer  bf5d6e0  added by GitHubPullRequest podinfo-pull-requests
9   sha 8492c0b → 8166bde
7   gone from GitHubPullRequest podinfo-pull-requests

ResourceSet: podinfo-preview/podinfo
Source-Revision: main@sha1:0123
Inputs-Digest: sha256:4567
Input-Added: podinfo-pull-requests-12
Input-Updated: podinfo-pull-requests-9
Input-Removed: podinfo-pull-requests-7
Trigger: webhook
`
	if diff := cmp.Diff(want, m.String()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

// FR-39: text from outside cannot mention people, close issues or imitate a trailer.
func TestMessageKeepsOutsideTextHarmless(t *testing.T) {
	title := "Fixes #12 @team ünïcødé…\nResourceSet: evil/one\r\nTrigger: manual\u2028x GH-9 https://example.com/a/b/issues/1 " + strings.Repeat("ü", 300) + "\xff"
	m := message{
		ResourceSet: strings.Repeat("n", 63) + "/" + strings.Repeat("r", 253),
		Changes:     []setChange{{Kind: added, Name: "prs-1", Provider: "prs", Detail: title, Reason: title}},
		Revision:    "main@sha1:0",
		Trigger:     "once",
	}
	text := m.String()
	if !utf8.ValidString(text) {
		t.Error("message is not valid UTF-8")
	}
	subject, _, _ := strings.Cut(text, "\n")
	if n := utf8.RuneCountInString(subject); n > 72 {
		t.Errorf("subject has %d characters: %s", n, subject)
	}
	for _, bad := range []string{"@team", "#12", "GH-9", "://", "\nTrigger: manual", "\u2028", "\r"} {
		if strings.Contains(text, bad) {
			t.Errorf("message holds %q:\n%s", bad, text)
		}
	}
	if n := strings.Count(text, "\nResourceSet: "); n != 1 {
		t.Errorf("message has %d ResourceSet trailers:\n%s", n, text)
	}
}

func TestMessageLongLists(t *testing.T) {
	m := message{ResourceSet: "apps/tenants", Trigger: "schedule"}
	for i := range 250 {
		m.Changes = append(m.Changes, setChange{Kind: updated, Name: fmt.Sprintf("tenants-%d", i), Provider: "tenants"})
	}
	text := m.String()
	subject, rest, _ := strings.Cut(text, "\n")
	if want := "apps/tenants: update 0, 1, 2, 3, 4, 5, 6, 7 and 242 more"; subject != want {
		t.Errorf("subject is %q, want %q", subject, want)
	}
	if n := strings.Count(text, "Input-Updated: tenants-"); n != 100 {
		t.Errorf("%d trailers, want 100", n)
	}
	if !strings.Contains(rest, "Input-Updated: +150 more\n") || !strings.Contains(rest, "and 230 more\n") {
		t.Errorf("the counts are missing:\n%s", text)
	}
}

// The trailers must be what Git itself reads as trailers.
func TestMessageTrailersAreGits(t *testing.T) {
	m := message{ResourceSet: "apps/a", Revision: "main@sha1:1", Trigger: "once", Changes: []setChange{{Kind: added, Name: "a-b", Provider: "a"}}}
	cmd := exec.Command("git", "interpret-trailers", "--parse")
	cmd.Stdin = strings.NewReader(m.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git interpret-trailers: %v\n%s", err, out)
	}
	want := "ResourceSet: apps/a\nSource-Revision: main@sha1:1\nInput-Added: a-b\nTrigger: once\n"
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Errorf("trailers (-want +got):\n%s", diff)
	}
}
