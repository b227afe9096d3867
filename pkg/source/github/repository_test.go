// SPDX-License-Identifier: Apache-2.0

package github

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"resourceset.example/renderer/pkg/source/provider"
)

func TestParseURL(t *testing.T) {
	for raw, want := range map[string][3]string{
		"https://github.com/stefanprodan/podinfo":        {"stefanprodan", "podinfo", "https://api.github.com/"},
		"https://github.com/acme/app.git":                {"acme", "app", "https://api.github.com/"}, // FR-15
		"https://github.com/acme/app/":                   {"acme", "app", "https://api.github.com/"},
		"https://www.github.com/acme/app.web":            {"acme", "app.web", "https://api.github.com/"},
		"https://GitHub.com/acme/app":                    {"acme", "app", "https://api.github.com/"},
		"https://octocorp.ghe.com/acme/app":              {"acme", "app", "https://api.octocorp.ghe.com/"},
		"https://git.corp.example/acme/app":              {"acme", "app", "https://git.corp.example/api/v3/"},
		"https://git.corp.example:8443/github/acme/app/": {"acme", "app", "https://git.corp.example:8443/github/api/v3/"},
		"http://127.0.0.1:4000/acme/app":                 {"acme", "app", "http://127.0.0.1:4000/api/v3/"},
	} {
		got, err := parseURL(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got := [3]string{got.owner, got.name, got.api.String()}; got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
	for raw, hint := range map[string]string{
		"https://github.com/acme":           "https://github.com/OWNER/REPOSITORY",
		"https://github.com/acme/app/pulls": "https://github.com/OWNER/REPOSITORY",
		"https://github.com/":               "https://github.com/OWNER/REPOSITORY",
		"https://github.com/../app":         "https://github.com/OWNER/REPOSITORY",
		"git@github.com:acme/app.git":       "https://github.com/acme/app",

		"https://api.github.com/repos/org/repo":                "write https://github.com/org/repo,",
		"https://API.github.com/repos/org/repo/pulls?state=x":  "write https://github.com/org/repo,",
		"https://api.github.com/org/repo":                      "write https://github.com/OWNER/REPOSITORY,",
		"https://api.octocorp.ghe.com/repos/org/repo":          "write https://octocorp.ghe.com/org/repo,",
		"https://git.corp.example:8443/api/v3/repos/org/repo/": "write https://git.corp.example:8443/org/repo,",
		"https://git.corp.example/api/v3":                      "write https://git.corp.example/OWNER/REPOSITORY,",
		"ssh://git@github.com:22/acme/app.git":                 "https://github.com/acme/app",
		"github.com/acme/app":                                  "https://host/path",
		"https://t0k3n@github.com/acme/app":                    "spec.secretRef",
	} {
		_, err := parseURL(raw)
		var known *provider.Error
		if !errors.As(err, &known) || known.Reason != provider.Misconfigured || !strings.Contains(known.Hint, hint) {
			t.Errorf("%s: got %v, want a hint with %q", raw, err, hint)
		}
		if strings.Contains(err.Error(), "t0k3n") {
			t.Errorf("%v holds the credential", err)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{"https://github.com/a/b", "git@github.com:a/b.git", "ssh://x/y", "http://h/../..", "https://h//a//b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		repo, err := parseURL(raw)
		if err != nil {
			return
		}
		if slices.Contains([]string{"", ".", ".."}, repo.owner) || slices.Contains([]string{".", ".."}, repo.name) ||
			strings.Contains(repo.owner+repo.name, "/") || !strings.HasSuffix(repo.api.Path, "/") || repo.api.User != nil {
			t.Errorf("%q: got %+v", raw, repo)
		}
	})
}
