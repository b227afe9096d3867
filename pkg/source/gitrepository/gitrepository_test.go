// SPDX-License-Identifier: Apache-2.0

package gitrepository

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

const (
	testUser     = "robot"
	testPassword = "s3cr3t-of-the-robot"
)

func sha(text string) string { return strings.Repeat(forgetest.SHA(text), 2)[:40] }

func config(kind, url string) provider.Config {
	return provider.Config{
		Object: &api.ResourceSetInputProvider{
			Meta: api.Meta{Name: "refs", Namespace: "apps"},
			Spec: api.InputProviderSpec{Type: kind, URL: url, Insecure: true},
		},
		RetryWait: time.Millisecond,
	}
}

func TestContract(t *testing.T) {
	for field, kind := range map[string]struct {
		make   func(provider.Config) (providertest.Fetcher, error)
		ref    func(n int) string
		fewest int // a repository that shows nothing at all is not believed
	}{
		"branch": {
			func(cfg provider.Config) (providertest.Fetcher, error) { return NewBranches(cfg) },
			func(n int) string { return fmt.Sprintf("refs/heads/b%03d", n) },
			1,
		},
		"tag": { // counted backwards, for the order is that of names backwards
			func(cfg provider.Config) (providertest.Fetcher, error) { return NewTags(cfg) },
			func(n int) string { return fmt.Sprintf("refs/tags/t%03d", 999-n) },
			0,
		},
	} {
		t.Run(field, func(t *testing.T) {
			providertest.Contract(t, func(t *testing.T, items int) providertest.Fixture {
				server := forgetest.NewGit()
				t.Cleanup(server.Close)
				server.RequireLogin(testUser, testPassword)
				cfg := config("", server.URL+"/acme/app.git")
				cfg.Secret = provider.Secret{"username": []byte(testUser), "password": []byte(testPassword)}
				if kind.fewest == 0 {
					server.SetRef("refs/heads/main", sha("main"), "")
				}
				n := 0
				add := func() { n++; server.SetRef(kind.ref(n), sha(fmt.Sprint(n)), "") }
				for range items {
					add()
				}
				return providertest.Fixture{
					Server: server, Config: cfg, New: kind.make, Add: add, CredentialKey: "password", KeyField: field, Fewest: kind.fewest,
				}
			})
		})
	}
}

// Rule 1: a server that shows nothing at all may only hide it.
func TestRule01_NoRefsIsNoList(t *testing.T) {
	server := forgetest.NewGit()
	t.Cleanup(server.Close)
	cfg := config("", server.URL+"/acme/app.git")
	branches, err := NewBranches(cfg)
	if got := providertest.Failure(t, branches, err); got.Reason != provider.Implausible || got.Hint == "" {
		t.Errorf("got %v", got)
	}
}

// An annotated tag is exported with the commit that it is about.
func TestRefs(t *testing.T) {
	server := forgetest.NewGit()
	defer server.Close()
	server.SetRef("refs/heads/main", sha("main"), "")
	server.SetRef("refs/heads/feat/x", sha("x"), "")
	server.SetRef("refs/pull/7/head", sha("7"), "")
	server.SetRef("refs/tags/v1.0.0", sha("tag object"), sha("1"))
	server.SetRef("refs/tags/v0.9.0", sha("0.9"), "")
	cfg := config("", server.URL+"/acme/app.git")
	branches, err := NewBranches(cfg)
	want := []api.Input{
		{"id": provider.Checksum("feat/x"), "branch": "feat/x", "sha": sha("x")},
		{"id": provider.Checksum("main"), "branch": "main", "sha": sha("main")},
	}
	if diff := cmp.Diff(want, providertest.Fetch(t, branches, err).Inputs); diff != "" {
		t.Errorf("branches (-want +got):\n%s", diff)
	}
	cfg.Object.Spec.Filter.Semver = ">=1.0.0"
	tags, err := NewTags(cfg)
	want = []api.Input{{"id": provider.Checksum("v1.0.0"), "tag": "v1.0.0", "sha": sha("1")}}
	if diff := cmp.Diff(want, providertest.Fetch(t, tags, err).Inputs); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

// A list of refs does not say what a tag is of: the name of a folder or file looks like
// that of a commit. It is exported as what it is, and a filter leaves it out.
func TestTagOfAFile(t *testing.T) {
	server := forgetest.NewGit()
	defer server.Close()
	server.SetRef("refs/heads/main", sha("main"), "")
	server.SetRef("refs/tags/v1.0.0", sha("1"), "")
	server.SetRef("refs/tags/signing-key", sha("tag object"), sha("file"))
	cfg := config("", server.URL+"/acme/app.git")
	tags, err := NewTags(cfg)
	if got := providertest.Fetch(t, tags, err); providertest.Texts(got, "tag") != "v1.0.0 signing-key" || got.Inputs[1]["sha"] != sha("file") {
		t.Errorf("got %v", got.Inputs)
	}
	cfg.Object.Spec.Filter.ExcludeTag = "^signing-key$"
	tags, err = NewTags(cfg)
	if got := providertest.Texts(providertest.Fetch(t, tags, err), "tag"); got != "v1.0.0" {
		t.Errorf("got %q", got)
	}
}

// FR-101: all that look at one repository ask once.
func TestShared(t *testing.T) {
	server := forgetest.NewGit()
	defer server.Close()
	server.SetRef("refs/heads/main", sha("main"), "")
	cfg := config("", server.URL+"/acme/app.git")
	cfg.Shared = &provider.Shared{}
	branches, err := NewBranches(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tags, err := NewTags(cfg)
	if err != nil {
		t.Fatal(err)
	}
	pass := provider.WithPass(t.Context())
	for _, p := range []providertest.Fetcher{branches, tags} {
		if _, err := p.Fetch(pass, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := server.Calls(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// What is on this machine, and what would be said in clear, is not read.
func TestRule08_URLs(t *testing.T) {
	for url, want := range map[string]string{
		"file:///etc":                        "https://",
		"/etc":                               "scheme",
		"ext::sh -c id":                      "",
		"http://git.example.com/acme/app":    "insecure",
		"https://a:s3cr3t@git.example.com/a": "spec.secretRef",
		"ssh://git@git.example.com/acme/app": "identity",
		"git@git.example.com:acme/app.git":   "identity",
	} {
		cfg := config("", url)
		cfg.Object.Spec.Insecure = false
		_, err := NewBranches(cfg)
		var known *provider.Error
		if !errors.As(err, &known) || known.Reason != provider.Misconfigured ||
			!strings.Contains(known.Error()+known.Hint, want) || strings.Contains(known.Error(), "s3cr3t") {
			t.Errorf("%s: got %v, want something about %q", url, err, want)
		}
	}
}

func TestOverSSH(t *testing.T) {
	repo := gittest.NewRepo(t)
	commit := repo.Commit("main", "init", map[string]string{"apps/a/x": "1", "apps/b/x": "1"})
	server := gittest.SSHServer(t)
	cfg := config("", server.URL+repo.Dir)
	cfg.Secret = provider.Secret{"identity": server.Identity, "known_hosts": server.KnownHosts}
	branches, err := NewBranches(cfg)
	want := []api.Input{{"id": provider.Checksum("main"), "branch": "main", "sha": commit}}
	if diff := cmp.Diff(want, providertest.Fetch(t, branches, err).Inputs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cfg.Object.Spec.Filter.IncludePath = []string{"apps/*"}
	paths, err := NewPaths(cfg)
	if got := pathsOf(providertest.Fetch(t, paths, err)); got != "apps/a apps/b" {
		t.Errorf("got %q", got)
	}
	_, other := gittest.NewKey(t, "")
	cfg.Secret = provider.Secret{"identity": other, "known_hosts": server.KnownHosts}
	branches, err = NewBranches(cfg)
	if err := providertest.Failure(t, branches, err); err.Reason != provider.Auth {
		t.Errorf("got %v", err)
	}
}

func pathsOf(result provider.Result) string {
	var all []string
	for _, input := range result.Inputs {
		all = append(all, input["path"].(string))
	}
	return strings.Join(all, " ")
}

func TestPaths(t *testing.T) {
	repo := gittest.NewRepo(t)
	first := repo.Commit("main", "init", map[string]string{
		"apps/auth/dev/k.yaml": "a: 1\n", "apps/auth/prod/k.yaml": "a: 1\n", "apps/README.md": "text\n", "apps/web/dev/k.yaml": "a: 2\n",
		"tenants/t1.yaml": "team: red\nversion: 1.10\nsha1: \"0156133\"\nlimits: {cpu: 2}\n", "tenants/t2.json": `{"name": "two", "team": "blue"}`,
		"tenants/notes.txt": "x\n",
	})
	repo.Git("tag", "v1", "main")
	repo.Git("-c", "user.name=a", "-c", "user.email=a@example.com", "tag", "-a", "-m", "x", "v1-annotated", "main")
	repo.Git("tag", "of-a-file", "main:apps/README.md")
	repo.Git("tag", "of-a-folder", "main:apps")
	url := repo.HTTP(testUser, testPassword)
	cfg := config(api.TypeGitRepositoryPath, url)
	cfg.Secret = provider.Secret{"username": []byte(testUser), "password": []byte(testPassword)}
	t.Run("a revision that is no commit", func(t *testing.T) {
		for _, tag := range []string{"of-a-file", "of-a-folder"} {
			cfg := config(api.TypeGitRepositoryPath, url)
			cfg.Secret = provider.Secret{"username": []byte(testUser), "password": []byte(testPassword)}
			cfg.Object.Spec.Filter.IncludePath, cfg.Object.Spec.Revision = []string{"apps/*"}, tag
			p, err := NewPaths(cfg)
			if got := providertest.Failure(t, p, err); got.Reason != provider.Misconfigured || !strings.Contains(got.Error(), tag) {
				t.Errorf("%s: got %v (%s), hint %q", tag, got, got.Reason, got.Hint)
			}
		}
	})
	for name, test := range map[string]struct {
		include, exclude []string
		revision, want   string
	}{
		"folders":          {[]string{"apps/*"}, nil, "", "apps/auth apps/web"},
		"deeper":           {[]string{"apps/*/dev"}, nil, "main", "apps/auth/dev apps/web/dev"},
		"any depth":        {[]string{"**/dev"}, nil, "v1", "apps/auth/dev apps/web/dev"},
		"excluded":         {[]string{"apps/*", "apps/*/*"}, []string{"apps/web", "**/prod"}, "v1-annotated", "apps/auth apps/auth/dev apps/web/dev"},
		"files":            {[]string{"tenants/*"}, nil, first, "tenants/t1.yaml tenants/t2.json"},
		"files everywhere": {[]string{"**/*.yaml"}, []string{"tenants/**"}, "refs/heads/main", "apps/auth/dev/k.yaml apps/auth/prod/k.yaml apps/web/dev/k.yaml"},
		"nothing":          {[]string{"charts/*"}, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Object.Spec.Filter.IncludePath, cfg.Object.Spec.Filter.ExcludePath = test.include, test.exclude
			cfg.Object.Spec.Revision = test.revision
			p, err := NewPaths(cfg)
			result := providertest.Fetch(t, p, err)
			if got := pathsOf(result); got != test.want || result.Inputs == nil {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if name != "files" {
				return
			}
			want := []api.Input{
				{"id": provider.Checksum("tenants/t1.yaml"), "path": "tenants/t1.yaml", "name": "t1", "sha": first,
					"hash": repo.Git("rev-parse", first+":tenants/t1.yaml"), "team": "red", "version": 1.1, "sha1": "0156133",
					"limits": map[string]any{"cpu": int64(2)}},
				{"id": provider.Checksum("tenants/t2.json"), "path": "tenants/t2.json", "name": "two", "sha": first,
					"hash": repo.Git("rev-parse", first+":tenants/t2.json"), "team": "blue"},
			}
			if diff := cmp.Diff(want, result.Inputs); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("faults", func(t *testing.T) {
		cfg.Object.Spec.Revision = ""
		for text, want := range map[string]string{
			"a: [": "tenants/bad.yaml:1: not valid YAML", "- a\n": "tenants/bad.yaml", "a: 1\n---\na: 2\n": "holds 2 documents", "# nothing\n": "holds 0 documents",
			"id: x\n": `field "id"`, "a: null\n": "a is null", "a: " + strings.Repeat("x", maxFile) + "\n": "has more than 256 KiB",
		} {
			repo.Commit("main", "bad", map[string]string{"tenants/bad.yaml": text})
			cfg.Object.Spec.Filter.IncludePath, cfg.Object.Spec.Filter.ExcludePath = []string{"tenants/*.yaml"}, nil
			p, err := NewPaths(cfg)
			if err := providertest.Failure(t, p, err); !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		cfg.Object.Spec.Revision = "gone"
		p, err := NewPaths(cfg)
		if err := providertest.Failure(t, p, err); err.Reason != provider.NotFound {
			t.Errorf("got %v", err)
		}
	})
}

func TestGlobs(t *testing.T) {
	for _, test := range []struct {
		pattern, path  string
		matches, below bool
	}{
		{"apps/*", "apps", false, true},
		{"apps/*", "apps/a", true, false},
		{"apps/*", "apps/a/b", false, false},
		{"apps/*", "other", false, false},
		{"**", "a/b/c", true, true},
		{"**/x", "x", true, true},
		{"**/x", "a/b/x", true, true},
		{"a/**/x", "a/x", true, true},
		{"a/**/x", "a/b/c", false, true},
		{"a/**/x", "b/x", false, false},
		{"a/**", "a", true, true},
		{"**/**/x", "y/x", true, true},
		{"t[0-9].yaml", "t1.yaml", true, false},
	} {
		globs, err := newGlobs([]string{test.pattern})
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(test.path, "/")
		if got := globs[0].matches(parts); got != test.matches {
			t.Errorf("%s matches %s: %t", test.pattern, test.path, got)
		}
		if got := globs[0].mayHold(parts); got != test.below {
			t.Errorf("%s may be below %s: %t", test.pattern, test.path, got)
		}
	}
}

// What matches is below folders that are opened.
func FuzzGlobs(f *testing.F) {
	f.Add("apps/**/x*", "apps/a/b/xy")
	f.Add("**/**/**/**/a", "b/b/b/b/b/b/a")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		globs, err := newGlobs([]string{pattern})
		if err != nil {
			return
		}
		parts := strings.Split(path, "/")
		if !globs[0].matches(parts) {
			return
		}
		for n := 1; n < len(parts); n++ {
			if !globs[0].mayHold(parts[:n]) {
				t.Errorf("%q matches %q, and its folder %q is not opened", pattern, path, parts[:n])
			}
		}
	})
}
