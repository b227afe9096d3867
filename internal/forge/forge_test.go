// SPDX-License-Identifier: Apache-2.0

package forge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/forge"
	"resourceset.example/renderer/internal/forge/gitea"
	"resourceset.example/renderer/internal/forge/github"
	"resourceset.example/renderer/internal/forge/gitlab"
	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/internal/gittest"
)

const token = "glpat-s3cret-token"

type client interface {
	Find(ctx context.Context, branch string) (*forge.Request, error)
	Create(ctx context.Context, branch string, content forge.Content) (*forge.Request, error)
	Update(ctx context.Context, r *forge.Request, content forge.Content) error
	Close(ctx context.Context, r *forge.Request, body, comment string) error
	Commit(ctx context.Context, hash string) (*forge.Commit, error)
}

type server interface {
	Repo(fullName string) *forgetest.Repo
	RequireToken(token string)
	LimitPages(limit int)
	Break(fault forgetest.Fault)
	Heal()
	Forget()
	Requests() []*http.Request
}

type kind struct {
	name  string
	start func() (server, string, func())
	open  func(forge.Config) (client, error)
}

func kinds() []kind {
	return []kind{
		{"github", func() (server, string, func()) { s := forgetest.NewGitHub(); return s, s.URL, s.Close },
			func(cfg forge.Config) (client, error) { return github.New(cfg) }},
		{"gitlab", func() (server, string, func()) { s := forgetest.NewGitLab(); return s, s.URL, s.Close },
			func(cfg forge.Config) (client, error) { return gitlab.New(cfg) }},
		{"gitea", func() (server, string, func()) { s := forgetest.NewGitea(); return s, s.URL, s.Close },
			func(cfg forge.Config) (client, error) { return gitea.New(cfg) }},
	}
}

// A scene is a forge with a repository that has a branch to propose.
type scene struct {
	server server
	repo   *forgetest.Repo
	git    *gittest.Repo
	client client
}

// each runs a test against every kind of forge.
func each(t *testing.T, test func(t *testing.T, s *scene)) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			server, url, stop := k.start()
			t.Cleanup(stop)
			server.RequireToken(token)
			s := &scene{server: server, repo: server.Repo("org/fleet"), git: gittest.NewRepo(t)}
			s.repo.Host(s.git.Dir)
			s.git.Commit("main", "First", map[string]string{"a": "a\n"})
			s.git.Git("branch", "renderer/x", "main")
			s.git.Commit("renderer/x", "Propose\n\nProposal: sha256:1", map[string]string{"b": "b\n"})
			var err error
			s.client, err = k.open(forge.Config{BaseURL: url, Repository: "org/fleet", Base: "main", Token: token, UserAgent: "renderer/test"})
			if err != nil {
				t.Fatal(err)
			}
			test(t, s)
		})
	}
}

func TestLifeOfARequest(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		ctx := t.Context()
		find := func() *forge.Request {
			t.Helper()
			r, err := s.client.Find(ctx, "renderer/x")
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if r := find(); r != nil {
			t.Fatalf("found %+v before there was any", r)
		}
		content := forge.Content{Title: "Update", Body: "Some *text*\n", Labels: []string{"generated", "fleet"}}
		made, err := s.client.Create(ctx, "renderer/x", content)
		if err != nil {
			t.Fatal(err)
		}
		want := forgetest.Request{Number: made.Number, Branch: "renderer/x", Title: "Update", Body: content.Body, State: "open",
			SHA: s.git.Head("renderer/x"), Labels: content.Labels}
		if diff := cmp.Diff([]forgetest.Request{want}, s.repo.Requests()); diff != "" {
			t.Errorf("created (-want +got):\n%s", diff)
		}
		r := find()
		if r == nil || r.Number != made.Number || r.State != forge.Open || r.Head != want.SHA || r.URL == "" || r.Body != content.Body || len(r.Lacks(content.Labels)) > 0 {
			t.Fatalf("found %+v", r)
		}

		s.server.Forget()
		if err := s.client.Update(ctx, r, content); err != nil || len(s.server.Requests()) > 0 {
			t.Errorf("an update without a difference: %v, %d requests", err, len(s.server.Requests()))
		}
		content = forge.Content{Title: "Update 2", Body: "Other", Labels: []string{"Generated", "third"}}
		if err := s.client.Update(ctx, r, content); err != nil {
			t.Fatal(err)
		}
		if r = find(); r.Title != "Update 2" || r.Body != "Other" || !slices.Equal(r.Labels, []string{"generated", "fleet", "third"}) {
			t.Errorf("updated to %+v", r)
		}
		if err := s.client.Close(ctx, r, "No more", "because"); err != nil {
			t.Fatal(err)
		}
		if r = find(); r.State != forge.Closed || r.Body != "No more" {
			t.Errorf("closed: %+v", r)
		}
		if got := s.repo.Requests()[0].Comments; !slices.Equal(got, []string{"because"}) {
			t.Errorf("comments: %q", got)
		}

		// A closed one does not hide the open one that followed, nor the reverse.
		second, err := s.client.Create(ctx, "renderer/x", content)
		if err != nil {
			t.Fatal(err)
		}
		if r = find(); r.Number != second.Number || r.State != forge.Open {
			t.Errorf("found %+v, want the open one", r)
		}
		s.repo.Merged(second.Number)
		s.git.Git("update-ref", "-d", "refs/heads/renderer/x")
		if r = find(); r == nil || r.Number != second.Number || r.State != forge.Merged {
			t.Errorf("found %+v, want the merged one", r)
		}
	})
}

// The listing is read page by page to its end, and requests from forks or to other
// branches are somebody else's.
func TestFindLooksThroughAllPages(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		s.server.LimitPages(2)
		made, err := s.client.Create(t.Context(), "renderer/x", forge.Content{Title: "Ours", Body: "x"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			s.repo.Open(forgetest.PR{Branch: "renderer/x", Fork: "stranger/fleet", Title: fmt.Sprint("fork ", i)})
			s.repo.Open(forgetest.PR{Branch: "renderer/x", Target: "release", Title: fmt.Sprint("elsewhere ", i)})
		}
		r, err := s.client.Find(t.Context(), "renderer/x")
		if err != nil || r == nil || r.Number != made.Number {
			t.Errorf("found %+v, %v", r, err)
		}
	})
}

func TestCommit(t *testing.T) {
	each(t, func(t *testing.T, s *scene) {
		c, err := s.client.Commit(t.Context(), s.git.Head("renderer/x"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(c.Message, "Propose\n\nProposal: sha256:1") || c.CommitterName != "Somebody Else" ||
			c.CommitterEmail != "somebody@example.com" || !slices.Equal(c.Parents, []string{s.git.Head("main")}) {
			t.Errorf("got %+v", c)
		}
		if _, err := s.client.Commit(t.Context(), forgetest.SHA("nothing")); err == nil {
			t.Error("a commit that does not exist was found")
		}
	})
}

// Whatever a forge answers that is not data is an error, never "there is none", and
// no error holds the token.
func TestRule08_FaultsAreErrorsWithoutTheToken(t *testing.T) {
	faults := map[string]forgetest.Fault{
		"a page":       forgetest.Page(),
		"a sign-in":    forgetest.SignIn(),
		"null":         forgetest.JSON("null"),
		"an object":    forgetest.JSON("{}"),
		"nothing":      forgetest.JSON(""),
		"cut":          forgetest.Truncate(),
		"401":          forgetest.Status(http.StatusUnauthorized, "bad token "+token),
		"403":          forgetest.Status(http.StatusForbidden, "no "+token),
		"404":          forgetest.Status(http.StatusNotFound, "Not Found"),
		"422":          forgetest.Status(http.StatusUnprocessableEntity, "Validation Failed"),
		"500":          forgetest.Status(http.StatusInternalServerError, "oops "+token),
		"rate limit":   forgetest.RateLimited(time.Now().Add(time.Hour)),
		"another host": forgetest.Redirect("http://localhost:1/elsewhere"),
	}
	each(t, func(t *testing.T, s *scene) {
		for name, fault := range faults {
			s.server.Break(fault)
			_, found := s.client.Find(t.Context(), "renderer/x")
			_, created := s.client.Create(t.Context(), "renderer/x", forge.Content{Title: "t", Body: "b"})
			_, commit := s.client.Commit(t.Context(), s.git.Head("main"))
			for what, err := range map[string]error{"find": found, "create": created, "commit": commit} {
				var e *forge.Error
				switch {
				case err == nil:
					t.Errorf("%s: %s gives no error", name, what)
				case !errors.As(err, &e):
					t.Errorf("%s: %s: %T is not described", name, what, err)
				case strings.Contains(err.Error()+e.Hint, token) || strings.Contains(e.Hint, "spec."):
					t.Errorf("%s: %s: %v (%s)", name, what, err, e.Hint)
				case e.Hint == "" && name != "cut" && name != "nothing" && name != "null" && name != "an object":
					t.Errorf("%s: %s: no hint: %v", name, what, err)
				}
			}
			s.server.Heal()
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	good := forge.Config{BaseURL: "https://git.example.com", Repository: "org/fleet", Base: "main", Token: "t"}
	for _, k := range kinds() {
		for name, change := range map[string]func(*forge.Config){
			"no token":          func(c *forge.Config) { c.Token = "" },
			"two lines":         func(c *forge.Config) { c.Token = "a\nb" },
			"not a certificate": func(c *forge.Config) { c.TLS = map[string][]byte{"ca.crt": []byte("x")} },
			"not a URL":         func(c *forge.Config) { c.BaseURL = "" },
		} {
			cfg := good
			change(&cfg)
			if c, err := k.open(cfg); err == nil {
				t.Errorf("%s: %s: got %v", k.name, name, c)
			}
		}
		cfg := good
		cfg.Repository = "org/team/fleet"
		if _, err := k.open(cfg); (err == nil) != (k.name == "gitlab") {
			t.Errorf("%s: a path with three parts: %v", k.name, err)
		}
		cfg = good
		cfg.BaseURL = "https://git.example.com/api/v4"
		if api, err := cfg.API("api/v4"); err != nil || api.String() != "https://git.example.com/api/v4/" {
			t.Errorf("API address: %v, %v", api, err)
		}
	}
}
