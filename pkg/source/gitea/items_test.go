// SPDX-License-Identifier: Apache-2.0

package gitea

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"

	"code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

func TestFields(t *testing.T) {
	server, repo, cfg := app(t)
	repo.Open(forgetest.PR{
		Branch: "feat/ui-footer", SHA: "bf5d6e01cf802734853f6f3417b237e3ad0ba35d", Title: `feat(ui): "Add" footer`,
		Author: "stefan", Labels: []string{"enhancement", "deploy/flux-preview"}, Target: "release/6.x",
	})
	repo.Open(forgetest.PR{Ghost: true, SHA: "6063e25000000000000000000000000000000000", Draft: true}) // FR-21: stays a text
	repo.Open(forgetest.PR{Title: "[wip] Later"})
	repo.Open(forgetest.PR{Title: "WIP: Later"})
	repo.Open(forgetest.PR{Title: "WIPE the disk"})
	p, err := NewPullRequests(cfg)
	got := providertest.Fetch(t, p, err).Inputs
	want := api.Input{
		"id": "1", "sha": "bf5d6e01cf802734853f6f3417b237e3ad0ba35d", "branch": "feat/ui-footer", "targetBranch": "release/6.x",
		"title": `feat(ui): "Add" footer`, "author": "stefan", "labels": []any{"deploy/flux-preview", "enhancement"},
		"url": server.URL + "/acme/app/pulls/1", "draft": false, "fork": false,
		"createdAt": "2026-01-05T09:01:00Z", "updatedAt": "2026-01-05T09:01:00Z",
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if query := server.Requests()[0].URL.Query(); query.Get("sort") != "oldest" || query.Get("state") != "open" {
		t.Errorf("asked for %v", query)
	}
	if got[1]["author"] != "Ghost" || got[1]["sha"] != "6063e25000000000000000000000000000000000" {
		t.Errorf("got %v", got[1])
	}
	for i, draft := range []bool{false, true, true, true, false} {
		if got[i]["draft"] != draft {
			t.Errorf("%v: draft is %v", got[i]["title"], got[i]["draft"])
		}
		if a, b := slices.Sorted(maps.Keys(got[0])), slices.Sorted(maps.Keys(got[i])); !slices.Equal(a, b) {
			t.Errorf("fields %v and %v differ", a, b)
		}
	}
}

// FR-84: a fork is one by its repository, however its branch is called, and so is
// what lies on no branch.
func TestRule11_Forks(t *testing.T) {
	_, repo, cfg := app(t)
	repo.Open(forgetest.PR{Branch: "main"})
	repo.Open(forgetest.PR{Branch: "main", Fork: "stranger/app"})
	repo.Open(forgetest.PR{Branch: "main", ForkDeleted: true})
	repo.Open(forgetest.PR{Fork: forgetest.FromPush})
	repo.Open(forgetest.PR{Branch: "other", Fork: "stranger/app"})
	cfg.Object.Spec.Filter.IncludeBranch = "^main$|^refs/pull"
	p, err := NewPullRequests(cfg)
	if result := providertest.Fetch(t, p, err); providertest.Texts(result, "id") != "1" || result.Forks != 3 || result.Matched != 1 {
		t.Errorf("got %q, %d forks, %d matched; want 1, 3, 1", providertest.Texts(result, "id"), result.Forks, result.Matched)
	}
	cfg.Object.Annotations = map[string]string{api.AnnotationAllowForks: "true"}
	p, err = NewPullRequests(cfg)
	result := providertest.Fetch(t, p, err)
	if got := providertest.Texts(result, "branch"); got != "main main main refs/pull/4/head" || result.Forks != 0 {
		t.Fatalf("allowed: got %q, %d forks", got, result.Forks)
	}
	for i, fork := range []bool{false, true, true, true} {
		if result.Inputs[i]["fork"] != fork {
			t.Errorf("pull request %d has fork %v", i+1, result.Inputs[i]["fork"])
		}
	}
}

func TestRefs(t *testing.T) {
	_, repo, cfg := app(t)
	// FR-10: two names with one checksum.
	repo.SetBranch("fix/cbc", forgetest.SHA("cccc"))
	repo.SetBranch("fix/bdb", forgetest.SHA("bbbb"))
	repo.SetBranch("main", forgetest.SHA("aaaa"))
	repo.SetTag("1.9.0", forgetest.SHA("9999"))
	repo.SetTag("1.10.0", forgetest.SHA("1010"))
	repo.SetTag("nightly", forgetest.SHA("eeee"))
	cfg.Object.Spec.Filter = api.Filter{ExcludeBranch: "^main$", Semver: ">=1.0.0", Limit: 2}
	branches, err := NewBranches(cfg)
	want := []api.Input{
		{"id": "178979487", "branch": "fix/bdb", "sha": forgetest.SHA("bbbb")},
		{"id": "178979487", "branch": "fix/cbc", "sha": forgetest.SHA("cccc")},
	}
	if diff := cmp.Diff(want, providertest.Fetch(t, branches, err).Inputs); diff != "" {
		t.Errorf("branches (-want +got):\n%s", diff)
	}
	tags, err := NewTags(cfg)
	want = []api.Input{
		{"id": provider.Checksum("1.10.0"), "tag": "1.10.0", "sha": forgetest.SHA("1010")},
		{"id": provider.Checksum("1.9.0"), "tag": "1.9.0", "sha": forgetest.SHA("9999")},
	}
	if diff := cmp.Diff(want, providertest.Fetch(t, tags, err).Inputs); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

// FR-05: a list that moves while it is read is read again, also those whose end is
// only known by an empty page.
func TestRule01_ListMoves(t *testing.T) {
	for name, change := range map[string]func(*forgetest.Repo){
		"one goes on page 1": func(r *forgetest.Repo) { r.Close(5); r.DeleteTag("t05") },
		"one goes and another comes": func(r *forgetest.Repo) {
			r.Close(3)
			r.Open(forgetest.PR{})
			r.DeleteTag("t03")
			r.SetTag("t99", forgetest.SHA("aaaa"))
		},
		"one comes first": func(r *forgetest.Repo) { r.Reopen(2); r.SetTag("t00", forgetest.SHA("aaaa")) },
	} {
		t.Run(name, func(t *testing.T) {
			server, repo, cfg := app(t)
			server.LimitPages(10)
			for n := range 15 {
				repo.Open(forgetest.PR{})
				repo.SetTag(fmt.Sprintf("t%02d", n+1), forgetest.SHA("aaaa"))
			}
			repo.Close(2)
			for field, p := range map[string]func() (providertest.Fetcher, error){
				"id":  func() (providertest.Fetcher, error) { return NewPullRequests(cfg) },
				"tag": func() (providertest.Fetcher, error) { return NewTags(cfg) },
			} {
				server.Break(forgetest.After(1, func() { change(repo) }))
				fetcher, err := p()
				moving := providertest.Texts(providertest.Fetch(t, fetcher, err), field)
				server.Heal()
				if still := providertest.Texts(providertest.Fetch(t, fetcher, nil), field); moving != still {
					t.Errorf("%s: got  %s\nwant %s", field, moving, still)
				}
			}
		})
	}
}

// A closed pull request that a server lists all the same is not exported, and the
// order is ours.
func TestStateAndOrderAreChecked(t *testing.T) {
	server, repo, cfg := app(t)
	for range 3 {
		repo.Open(forgetest.PR{})
	}
	repo.Close(1)
	server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		r.URL.RawQuery = url.Values{"state": {"all"}, "page": {"1"}}.Encode()
		next.ServeHTTP(w, r)
	})
	p, err := NewPullRequests(cfg)
	if got := providertest.Texts(providertest.Fetch(t, p, err), "id"); got != "2 3" {
		t.Errorf("got %q, want 2 3", got)
	}
}

const wholePullRequest = `{"number":1,"state":"open","title":"t","user":null,"labels":[{"name":"x"}],
	"head":{"label":"a","ref":"a","sha":"b","repo_id":1},"base":{"label":"main","ref":"main","sha":"c","repo_id":1},
	"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}`

// An item that lacks what it must have fails the list; it is not left out.
func TestRule01_Items(t *testing.T) {
	decode := func(change func(map[string]any)) error {
		var whole map[string]any
		if err := json.Unmarshal([]byte(wholePullRequest), &whole); err != nil {
			t.Fatal(err)
		}
		change(whole)
		data, _ := json.Marshal(whole)
		var pr gitea.PullRequest
		if err := json.Unmarshal(data, &pr); err != nil {
			t.Fatal(err)
		}
		_, _, err := convertPullRequest(&pr)
		return err
	}
	if err := decode(func(map[string]any) {}); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(map[string]any){
		"number":  func(m map[string]any) { delete(m, "number") },
		"minus":   func(m map[string]any) { m["number"] = -1 },
		"state":   func(m map[string]any) { delete(m, "state") },
		"head":    func(m map[string]any) { m["head"] = nil },
		"base":    func(m map[string]any) { delete(m, "base") },
		"sha":     func(m map[string]any) { delete(m["head"].(map[string]any), "sha") },
		"target":  func(m map[string]any) { m["base"].(map[string]any)["ref"] = "" },
		"created": func(m map[string]any) { delete(m, "created_at") },
		"updated": func(m map[string]any) { m["updated_at"] = "0001-01-01T00:00:00Z" },
		"label":   func(m map[string]any) { m["labels"] = []any{nil} },
		"branch": func(m map[string]any) {
			m["head"].(map[string]any)["ref"], m["head"].(map[string]any)["label"] = "", ""
		},
	} {
		if err := decode(spoil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// answering is a transport that has one answer to everything.
type answering []byte

func (a answering) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Request: req, Header: http.Header{"X-Total-Count": {"1"}},
		Body: io.NopCloser(bytes.NewReader(a)),
	}, nil
}

// Whatever a server sends, a page is a list in which every item is whole, or an error.
func FuzzPage(f *testing.F) {
	for _, body := range []string{
		"[]", "null", "{}", "", "[null]", `[{"number":1}]`, "<html>", "[" + wholePullRequest + "]",
		`[{"name":"a","commit":{"id":"b"}}]`, `[{"name":"a","commit":{"sha":"b"}}]`, `[{"name":"a","commit":null}]`,
	} {
		f.Add([]byte(body))
	}
	repo := &repository{owner: "a", name: "b"}
	f.Fuzz(func(t *testing.T, body []byte) {
		var all []any
		whole := json.Unmarshal(body, &all) == nil && all != nil
		c := &client{server: "http://127.0.0.1", http: &http.Client{Transport: answering(body)}}
		check := func(what string, items int, err error) {
			if err == nil && (!whole || items != len(all)) || err != nil && provider.ReasonOf(err) != provider.Implausible {
				t.Fatalf("%s: took %q for a list of %d, %v", what, body, items, err)
			}
		}
		requests, err := read(t, c, repo, pullRequests())
		check("pull requests", len(requests), err)
		for _, pr := range requests {
			if id, err := strconv.Atoi(pr.ID); err != nil || id < 1 || pr.SHA == "" || pr.Branch == "" {
				t.Fatalf("%q: got %+v", body, pr)
			}
		}
		for _, k := range []string{"branches", "tags"} {
			var refs []provider.Ref
			var err error
			if k == "tags" {
				refs, err = read(t, c, repo, tags())
			} else {
				refs, err = read(t, c, repo, branches())
			}
			check(k, len(refs), err)
			for _, ref := range refs {
				if ref.Name == "" || ref.SHA == "" {
					t.Fatalf("%q: got %+v", body, ref)
				}
			}
		}
	})
}

func read[S, T any](t *testing.T, c *client, repo *repository, k kind[S, T]) ([]T, error) {
	page, err := k.get(c, repo)(t.Context(), "1", nil)
	if err != nil {
		return nil, err
	}
	return page.Items, nil
}
