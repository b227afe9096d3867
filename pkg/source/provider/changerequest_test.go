// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/pkg/api"
)

// TestChangeRequestFilters has one request that passes everything, and others that
// differ in one thing.
func TestChangeRequestFilters(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	like := func(id int64, change func(*ChangeRequest)) ChangeRequest {
		c := ChangeRequest{
			ID: fmt.Sprint(id), Number: id, SHA: strings.Repeat("a", 40), Branch: "feat/x", TargetBranch: "main", Title: "Add x", Author: "ada",
			Labels: []string{"preview"}, CreatedAt: now.Add(-48 * time.Hour), UpdatedAt: now.Add(-time.Hour),
		}
		change(&c)
		return c
	}
	all := []ChangeRequest{
		like(10, func(*ChangeRequest) {}),
		like(2, func(c *ChangeRequest) { c.Branch = "fix/x" }),
		like(3, func(c *ChangeRequest) { c.TargetBranch = "release/1" }),
		like(4, func(c *ChangeRequest) { c.Title = "WIP: add x" }),
		like(5, func(c *ChangeRequest) { c.Author = "dependabot[bot]" }),
		like(6, func(c *ChangeRequest) { c.Draft = true }),
		like(7, func(c *ChangeRequest) { c.Labels = nil }),
		like(8, func(c *ChangeRequest) { c.UpdatedAt = now.Add(-72 * time.Hour) }),
		like(9, func(c *ChangeRequest) { c.Fork = true }),
	}
	yes, no := true, false
	for name, test := range map[string]struct {
		filter api.Filter
		want   string
		forks  int
	}{
		"none":           {api.Filter{}, "2 3 4 5 6 7 8 10", 1},
		"includeBranch":  {api.Filter{IncludeBranch: "^feat/"}, "3 4 5 6 7 8 10", 1},
		"excludeBranch":  {api.Filter{ExcludeBranch: "^feat/"}, "2", 0},
		"targetBranch":   {api.Filter{TargetBranch: "^release/"}, "3", 0},
		"title":          {api.Filter{Title: "^WIP"}, "4", 0},
		"author":         {api.Filter{Author: `\[bot\]$`}, "5", 0},
		"drafts":         {api.Filter{Draft: &yes}, "6", 0},
		"no drafts":      {api.Filter{Draft: &no}, "2 3 4 5 7 8 10", 1},
		"labels":         {api.Filter{Labels: []string{"preview"}}, "2 3 4 5 6 8 10", 1},
		"updated within": {api.Filter{UpdatedWithin: 24 * time.Hour}, "2 3 4 5 6 7 10", 1},
		"forks":          {api.Filter{Fork: &yes}, "", 1},
		"no forks":       {api.Filter{Fork: &no}, "2 3 4 5 6 7 8 10", 0},
	} {
		t.Run(name, func(t *testing.T) {
			filter, err := NewFilter(test.filter)
			if err != nil {
				t.Fatal(err)
			}
			filter.now = func() time.Time { return now }
			object := &api.ResourceSetInputProvider{Spec: api.InputProviderSpec{Filter: test.filter}}
			result, err := ExportChangeRequests(object, filter, all, nil)
			if err != nil {
				t.Fatal(err)
			}
			ids := make([]string, len(result.Inputs))
			for i, input := range result.Inputs {
				ids[i] = input["id"].(string)
			}
			if got := strings.Join(ids, " "); got != test.want || result.Forks != test.forks {
				t.Errorf("got %q and %d forks, want %q and %d", got, result.Forks, test.want, test.forks)
			}
		})
	}
}

// Rule 11: nothing of a fork is exported, whatever the filter says, unless the
// provider says so.
func TestRule11_ForkFilterNeedsTheAnnotation(t *testing.T) {
	yes := true
	filter, err := NewFilter(api.Filter{Fork: &yes})
	if err != nil {
		t.Fatal(err)
	}
	object := &api.ResourceSetInputProvider{}
	fork := []ChangeRequest{{ID: "1", SHA: strings.Repeat("a", 64), Fork: true}}
	if result, err := ExportChangeRequests(object, filter, fork, nil); err != nil || len(result.Inputs) != 0 || result.Forks != 1 {
		t.Errorf("got %+v, %v", result, err)
	}
	object.Annotations = map[string]string{api.AnnotationAllowForks: "true"}
	if result, err := ExportChangeRequests(object, filter, fork, nil); err != nil || len(result.Inputs) != 1 || result.Inputs[0]["fork"] != true {
		t.Errorf("got %+v, %v", result, err)
	}
}

// What is exported as an address may become a link: only those of the web are.
func TestWebURL(t *testing.T) {
	for raw, kept := range map[string]bool{
		"https://forge.example/a/b/pull/1": true, "http://h:3000/a?b=c#d": true, "HTTPS://forge.example/": true,
		"javascript:alert(1)": false, "JavaScript:alert(1)": false, " javascript:alert(1)": false, "java\nscript:alert(1)": false,
		"data:text/html,<script>": false, "file:///etc/passwd": false, "ftp://h/": false, "//evil.example/": false, "/a/b": false,
		"https:evil": false, "https://": false, "https://h/\x00": false, "http://[::1": false, "": false,
	} {
		want := ""
		if kept {
			want = raw
		}
		if got := (ChangeRequest{URL: raw}).Input()["url"]; got != want {
			t.Errorf("%q: exported as %q", raw, got)
		}
	}
}

// A forge that does not tell when something was updated exports no such field,
// and the age filter goes by when it was opened.
func TestChangeRequestWithoutUpdate(t *testing.T) {
	c := ChangeRequest{ID: "1", Labels: []string{"b", "a"}, CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))}
	want := api.Input{
		"id": "1", "sha": "", "branch": "", "targetBranch": "", "title": "", "author": "", "labels": []any{"a", "b"},
		"url": "", "draft": false, "fork": false, "createdAt": "2026-01-02T02:04:05Z",
	}
	if diff := cmp.Diff(want, c.Input()); diff != "" {
		t.Error(diff)
	}
	f, err := NewFilter(api.Filter{UpdatedWithin: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	f.now = func() time.Time { return c.CreatedAt.Add(2 * time.Hour) }
	if f.ChangeRequest(c) {
		t.Error("two hours old, and passed one hour")
	}
}
