// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/listing"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

func TestFields(t *testing.T) {
	server, repo, cfg := app(t)
	repo.Open(forgetest.PR{
		Branch: "feat/ui-footer", SHA: "bf5d6e01cf802734853f6f3417b237e3ad0ba35d", Title: `feat(ui): "Add" footer`,
		Author: "stefan", Labels: []string{"enhancement", "deploy::flux-preview"}, Target: "release/6.x",
	})
	repo.Open(forgetest.PR{Ghost: true, SHA: "6063e25000000000000000000000000000000000", Draft: true}) // FR-21: stays a text
	p, err := NewMergeRequests(cfg)
	got := providertest.Fetch(t, p, err).Inputs
	want := api.Input{
		"id": "1", "sha": "bf5d6e01cf802734853f6f3417b237e3ad0ba35d", "branch": "feat/ui-footer", "targetBranch": "release/6.x",
		"title": `feat(ui): "Add" footer`, "author": "stefan", "labels": []any{"deploy::flux-preview", "enhancement"},
		"url": server.URL + "/acme/team/app.web/-/merge_requests/1", "draft": false, "fork": false,
		"createdAt": "2026-01-05T09:01:00Z", "updatedAt": "2026-01-05T09:01:00Z",
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got[1]["author"] != "ghost" || got[1]["sha"] != "6063e25000000000000000000000000000000000" || got[1]["draft"] != true {
		t.Errorf("got %v", got[1])
	}
	if a, b := slices.Sorted(maps.Keys(got[0])), slices.Sorted(maps.Keys(got[1])); !slices.Equal(a, b) {
		t.Errorf("fields %v and %v differ", a, b)
	}
}

// FR-84: a fork is one by its project, however its branch is called.
func TestRule11_Forks(t *testing.T) {
	_, repo, cfg := app(t)
	repo.Open(forgetest.PR{Branch: "main"})
	repo.Open(forgetest.PR{Branch: "main", Fork: "stranger/app"})
	repo.Open(forgetest.PR{Branch: "main", ForkDeleted: true})
	p, err := NewMergeRequests(cfg)
	if result := providertest.Fetch(t, p, err); providertest.Texts(result, "id") != "1" || result.Forks != 2 {
		t.Errorf("got %q, %d forks", providertest.Texts(result, "id"), result.Forks)
	}
	cfg.Object.Annotations = map[string]string{api.AnnotationAllowForks: "true"}
	p, err = NewMergeRequests(cfg)
	result := providertest.Fetch(t, p, err)
	for i, fork := range []bool{false, true, true} {
		if len(result.Inputs) != 3 || result.Inputs[i]["fork"] != fork {
			t.Fatalf("allowed: got %v", result.Inputs)
		}
	}
}

// A merge request that is being merged just now is listed neither among the open ones
// nor among the merged ones, and merging can fail. It is looked for when it is missed.
func TestBeingMerged(t *testing.T) {
	server, repo, cfg := app(t)
	for range 3 {
		repo.Open(forgetest.PR{})
	}
	p, err := NewMergeRequests(cfg)
	first := providertest.Fetch(t, p, err)
	if server.Calls() != 1 {
		t.Errorf("%d requests where nothing is missing", server.Calls())
	}
	repo.Lock(2, true)
	if got := providertest.Texts(providertest.Fetch(t, p, nil, first.Inputs...), "id"); got != "1 2 3" {
		t.Errorf("while it is being merged: got %q", got)
	}
	repo.Lock(2, false)
	repo.Close(2)
	if got := providertest.Texts(providertest.Fetch(t, p, nil, first.Inputs...), "id"); got != "1 3" {
		t.Errorf("after it was closed: got %q", got)
	}
	server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Query().Get("state") == "locked" {
			forgetest.Status(500, "no")(w, r, next)
			return
		}
		next.ServeHTTP(w, r)
	})
	if _, err := p.Fetch(t.Context(), first.Inputs); provider.ReasonOf(err) != provider.Unavailable {
		t.Errorf("got %v: what cannot be looked for is not gone", err)
	}
}

// FR-05: a list that moves while it is read is read again, in an order that new ones
// do not disturb.
func TestRule01_ListMoves(t *testing.T) {
	for name, change := range map[string]func(*forgetest.Repo){
		"one closes on page 1":         func(r *forgetest.Repo) { r.Close(5) },
		"one closes and another opens": func(r *forgetest.Repo) { r.Close(3); r.Open(forgetest.PR{}) },
		"one is updated":               func(r *forgetest.Repo) { r.Push(11, forgetest.SHA("dddd")) },
	} {
		t.Run(name, func(t *testing.T) {
			server, repo, cfg := app(t)
			server.LimitPages(10)
			for range 15 {
				repo.Open(forgetest.PR{})
			}
			server.Break(forgetest.After(1, func() { change(repo) }))
			p, err := NewMergeRequests(cfg)
			moving := providertest.Texts(providertest.Fetch(t, p, err), "id")
			server.Heal()
			if still := providertest.Texts(providertest.Fetch(t, p, nil), "id"); moving != still {
				t.Errorf("got  %s\nwant %s", moving, still)
			}
			if query := server.Requests()[0].URL.Query(); query.Get("order_by") != "created_at" || query.Get("sort") != "asc" {
				t.Errorf("asked for %v", query)
			}
		})
	}
}

// The server's filter is checked again, and the order is ours.
func TestStateAndOrderAreChecked(t *testing.T) {
	server, repo, cfg := app(t)
	for range 3 {
		repo.Open(forgetest.PR{})
	}
	repo.Close(1)
	server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		r.URL.RawQuery = "state=all&sort=desc"
		next.ServeHTTP(w, r)
	})
	p, err := NewMergeRequests(cfg)
	if got := providertest.Texts(providertest.Fetch(t, p, err), "id"); got != "2 3" {
		t.Errorf("got %q, want 2 3", got)
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

// A tag of something that is no commit is an error, which the filter ends.
func TestRule01_TagWithoutCommit(t *testing.T) {
	_, repo, cfg := app(t)
	repo.SetTag("v1.0.0", forgetest.SHA("aaaa"))
	repo.SetTag("signing-key", "none")
	p, err := NewTags(cfg)
	if err := providertest.Failure(t, p, err); err.Reason != provider.Implausible || !strings.Contains(err.Msg, "signing-key") || !strings.Contains(err.Hint, "excludeTag") {
		t.Errorf("got %v with %q", err, err.Hint)
	}
	cfg.Object.Spec.Filter.ExcludeTag = "^signing-key$"
	p, err = NewTags(cfg)
	if got := providertest.Texts(providertest.Fetch(t, p, err), "tag"); got != "v1.0.0" {
		t.Errorf("got %q", got)
	}
}

const (
	wholeMergeRequest = `{"iid":1,"state":"opened","sha":"a","source_branch":"b","target_branch":"c","source_project_id":1,"target_project_id":1,
		"labels":["x"],"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}`
	wholeEnvironment = `{"id":1,"name":"a","slug":"b","state":"available"}`
	wholeDeployment  = `{"id":1,"sha":"6063e25000000000000000000000000000000000","ref":"b","status":"running","environment":{"id":2},"user":{"username":"c"}}`
	wholeRef         = `{"name":"a","commit":{"id":"b"}}`
)

// An item that lacks what it must have fails the list; it is not left out.
func TestRule01_Items(t *testing.T) {
	for _, test := range []struct {
		whole  string
		decode func(json.RawMessage) error
		must   []string
	}{
		{wholeMergeRequest, errorOf(decodeMergeRequest), []string{"iid", "state", "sha", "source_branch", "target_branch", "target_project_id", "created_at", "updated_at"}},
		{wholeEnvironment, errorOf(decodeEnvironment), []string{"id", "name", "slug", "state"}},
		{wholeDeployment, errorOf(decodeDeployment(running)), []string{"id", "sha", "ref", "status", "environment"}},
		{wholeRef, errorOf(decodeRef), []string{"name"}},
	} {
		if err := test.decode(json.RawMessage(test.whole)); err != nil {
			t.Fatal(err)
		}
		for _, field := range test.must {
			for _, value := range []any{nil, "missing", "", 0, []any{}} {
				var spoiled map[string]any
				if err := json.Unmarshal([]byte(test.whole), &spoiled); err != nil {
					t.Fatal(err)
				}
				spoiled[field] = value
				if value == "missing" {
					delete(spoiled, field)
				}
				data, _ := json.Marshal(spoiled)
				if test.decode(data) == nil {
					t.Errorf("%s: %s taken", data, field)
				}
			}
		}
	}
}

func TestRule01_Labels(t *testing.T) {
	for _, labels := range []string{`[""]`, `["a",null]`, `[{"name":"a"},"b"]`, `"a"`, `[1]`} {
		if _, _, err := decodeMergeRequest(json.RawMessage(strings.Replace(wholeMergeRequest, `["x"]`, labels, 1))); err == nil {
			t.Errorf("%s taken for labels", labels)
		}
	}
}

func errorOf[T any](decode listing.Decode[T]) func(json.RawMessage) error {
	return func(data json.RawMessage) error {
		_, _, err := decode(data)
		return err
	}
}

// Whatever a server sends, a page is a list in which every item is whole, or an error.
func FuzzPage(f *testing.F) {
	for _, item := range []string{wholeMergeRequest, wholeEnvironment, wholeDeployment, wholeRef, "null", "{}", `{"iid":1,"labels":[{"name":"a"},"b"]}`, `{"labels":[null]}`} {
		f.Add([]byte("[" + item + "]"))
	}
	f.Add([]byte("null"))
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, body []byte) {
		checkPage(t, body, decodeMergeRequest, func(mr mergeRequest, key string) bool {
			return mr.ID == key && mr.Number > 0 && mr.SHA != "" && mr.Branch != "" && mr.TargetBranch != "" && !slices.Contains(mr.Labels, "")
		})
		checkPage(t, body, decodeEnvironment, func(env environment, key string) bool {
			return fmt.Sprint(env.id) == key && env.id > 0 && env.name != "" && env.slug != ""
		})
		checkPage(t, body, decodeDeployment(running), func(d deployment, key string) bool {
			return fmt.Sprint(d.id) == key && d.id > 0 && d.environment > 0 && d.sha != "" && d.status == running
		})
		checkPage(t, body, decodeRef, func(ref provider.Ref, key string) bool { return ref.Name == key && key != "" })
	})
}

func checkPage[T any](t *testing.T, body []byte, decode listing.Decode[T], whole func(T, string) bool) {
	page, err := listing.Array(body, "things", notAProject, decode)
	if err != nil {
		if provider.ReasonOf(err) != provider.Implausible {
			t.Fatalf("%q: %v", body, err)
		}
		return
	}
	var all []any
	if err := json.Unmarshal(body, &all); err != nil || all == nil || len(all) != len(page.Items) {
		t.Fatalf("took %q for a list of %d", body, len(page.Items))
	}
	for i, item := range page.Items {
		if !whole(item, page.Keys[i]) {
			t.Fatalf("%q: item %d is %+v", body, i, item)
		}
	}
}
