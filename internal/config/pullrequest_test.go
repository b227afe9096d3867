// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

func TestPullRequestDefaults(t *testing.T) {
	for _, tt := range []struct {
		url, pullRequest             string
		forge, base, path, repoError string
	}{
		{"https://github.com/org/fleet.git", "{}", "github", "https://github.com", "org/fleet", ""},
		{"https://GitLab.com/org/team/fleet", "{}", "gitlab", "https://gitlab.com", "org/team/fleet", ""},
		{"git@github.com:org/fleet.git", "{secret: a/c}", "github", "https://github.com", "org/fleet", ""},
		{"ssh://git@git.example.com:2222/org/fleet.git", "{forge: gitea, secret: a/c}", "gitea", "https://git.example.com", "org/fleet", ""},
		{"http://127.0.0.1:3000/org/fleet", "{forge: gitea}", "gitea", "http://127.0.0.1:3000", "org/fleet", ""},
		{"https://h/gitea/org/fleet.git", "{forge: gitea, baseURL: 'https://h/gitea/'}", "gitea", "https://h/gitea", "org/fleet", ""},
		{"https://h/org/fleet", "{forge: github, baseURL: 'https://forge', secret: a/c}", "github", "https://forge", "org/fleet", ""},
	} {
		cfg, _ := load(t, "source: {url: '"+tt.url+"', auth: {secret: a/b}}\ntarget: {path: out, mode: pull-request, pullRequest: "+tt.pullRequest+"}\n")
		pr := cfg.Target.PullRequest
		if pr.Per != PerResourceSet || pr.Forge != tt.forge || pr.BaseURL != tt.base || cfg.TargetRepository() != tt.path {
			t.Errorf("%s %s: got %+v and %q", tt.url, tt.pullRequest, pr, cfg.TargetRepository())
		}
	}
}

func TestPullRequestFaults(t *testing.T) {
	for _, tt := range []struct {
		source, target string
		want           string // "line: path: part of the message", or empty
	}{
		{"url: https://github.com/o/r, auth: {secret: a/b}", "mode: pull-request", ""},
		{"url: https://github.com/o/r", "mode: pull-request", "c.yaml:5: target.pullRequest.secret: is required"},
		{"url: https://git.example.com/o/r, auth: {secret: a/b}", "mode: pull-request", "target.pullRequest.forge: is required: the host git.example.com"},
		{"url: 'git@github.com:o/r', auth: {secret: a/b}", "mode: pull-request", "target.pullRequest.secret: is required: target.url is reached over SSH"},
		{"url: https://h/o/r, auth: {secret: a/b}", "mode: pull-request\n  pullRequest: {forge: gitea, baseURL: https://evil}", "c.yaml:6: target.pullRequest.secret: is required: target.pullRequest.baseURL is on another host"},
		{"url: file:///srv/r", "mode: pull-request", "c.yaml:5: target.mode: a repository on disk"},
		{"url: https://github.com/o/r, auth: {secret: a/b}", "mode: pull-request\n  branch: renderer/apps", "c.yaml:6: target.branch: is where renderer keeps branches"},
		{"url: https://github.com/o/r, auth: {secret: a/b}", "mode: pull-request\n  pullRequest: {per: pass}", "c.yaml:6: target.pullRequest.per: \"pass\" is not one of"},
		{"url: https://github.com/o/r, auth: {secret: a/b}", "mode: pull-request\n  pullRequest: {forge: bitbucket}", "c.yaml:6: target.pullRequest.forge: \"bitbucket\" is not one of"},
		{"url: https://github.com/o/r, auth: {secret: a/b}", "mode: pull-request\n  pullRequest: {baseURL: 'https://u:hunter2@h'}", "c.yaml:6: target.pullRequest.baseURL: holds credentials"},
		{"url: https://github.com/o/r, auth: {secret: a/b}", "mode: pull-request\n  pullRequest: {baseURL: github.com}", "target.pullRequest.baseURL: is not an http"},
		{"url: https://github.com/o/r, auth: {secret: a/b}", "mode: pull-request\n  labels: ['a,b']", "c.yaml:6: target.labels[0]: may not hold a comma"},
	} {
		text := "source: {" + tt.source + "}\n# 2\n# 3\ntarget:\n  " + tt.target + "\n  path: out\n"
		_, _, err := Load("c.yaml", []byte(text))
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s%v", text, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%sgot %v, want %q", text, err, tt.want)
		}
	}
}

func TestPullRequestSettingsWithoutPullRequests(t *testing.T) {
	_, warnings := load(t, "source: {url: https://h/r}\ntarget:\n  path: out\n  labels: [x]\n  pullRequest: {per: all}\n")
	if len(warnings) != 2 || warnings[0].Path != "target.labels" || warnings[1].Path != "target.pullRequest" || warnings[1].Line != 5 {
		t.Errorf("got %v", warnings)
	}
}
