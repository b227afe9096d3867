// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/url"
	"strings"
)

// PullRequest says how changes are proposed when Target.Mode is ModePullRequest.
type PullRequest struct {
	Per string `yaml:"per"` // PerResourceSet or PerAll
	// Forge and BaseURL are filled in from Target.URL where that says enough.
	Forge   string    `yaml:"forge"`
	BaseURL string    `yaml:"baseURL"` // of the forge's web pages, without a slash at its end
	Secret  SecretRef `yaml:"secret"`  // its API token; target.auth's if not set
}

// PerAll is one pull request for all ResourceSets.
const PerAll = "all"

// Forges whose API is known.
const (
	ForgeGitHub = "github"
	ForgeGitLab = "gitlab"
	ForgeGitea  = "gitea"
)

// OwnBranches is the prefix of the branches that pull requests come from. They are
// renderer's own: it rewrites and deletes them.
const OwnBranches = "renderer"

// TargetRepository is the target repository's path on its forge: "org/fleet".
func (c *Config) TargetRepository() string {
	target, ok := parseAddress(c.Target.URL)
	base, err := url.Parse(c.Target.PullRequest.BaseURL)
	if !ok || err != nil {
		return ""
	}
	if inside, ok := strings.CutPrefix(target.path, strings.Trim(base.Path, "/")+"/"); ok && target.scheme != "ssh" {
		return inside // the forge is below a path of its host
	}
	return target.path
}

// pullRequest checks what pull requests need, and fills in what the target's URL
// tells.
func (v *validator) pullRequest() {
	t := &v.cfg.Target
	for i, label := range t.Labels {
		switch path := fmt.Sprintf("target.labels[%d]", i); {
		case strings.TrimSpace(label) == "":
			v.fault(path, "", "is empty")
		case strings.ContainsAny(label, ",\r\n"):
			v.fault(path, "GitLab keeps labels apart by commas", "may not hold a comma or a line break")
		}
	}
	v.oneOf("target.pullRequest.per", t.PullRequest.Per, PerResourceSet, PerAll)
	if t.Mode == ModePush {
		v.idleWithoutPullRequests()
	}
	if t.Mode != ModePullRequest {
		return
	}
	if branch := strings.ToLower(t.Branch); branch == OwnBranches || strings.HasPrefix(branch, OwnBranches+"/") {
		v.fault("target.branch", "give it a name that does not begin with "+OwnBranches,
			"is where renderer keeps branches of its own, which it rewrites")
	}
	target, ok := parseAddress(t.URL)
	if !ok {
		return // a fault of its own
	}
	if target.scheme == "file" {
		v.fault("target.mode", "use mode push, or name the repository on its forge", "a repository on disk has no pull requests")
		return
	}
	v.forge(target)
	v.forgeURL(target)
	v.forgeSecret(target)
}

// idleWithoutPullRequests warns of settings that mean nothing in mode push.
func (v *validator) idleWithoutPullRequests() {
	const hint = "set target.mode to pull-request, or remove "
	if len(v.cfg.Target.Labels) > 0 {
		v.warn("target.labels", hint+"the labels", "labels are put on pull requests, and target.mode is push")
	}
	if v.cfg.isSet("target.pullRequest") {
		v.warn("target.pullRequest", hint+"it", "says how pull requests are made, and target.mode is push")
	}
}

func (v *validator) forge(target address) {
	pr := &v.cfg.Target.PullRequest
	if pr.Forge != "" {
		v.oneOf("target.pullRequest.forge", pr.Forge, ForgeGitHub, ForgeGitLab, ForgeGitea)
		return
	}
	switch target.host {
	case "github.com":
		pr.Forge = ForgeGitHub
	case "gitlab.com":
		pr.Forge = ForgeGitLab
	default:
		v.fault("target.pullRequest.forge", "write github, gitlab or gitea",
			"is required: the host %s does not say which forge it runs", target.host)
	}
}

func (v *validator) forgeURL(target address) {
	const path, hint = "target.pullRequest.baseURL", "write the address of the forge's web pages, as in https://git.example.com"
	pr := &v.cfg.Target.PullRequest
	if pr.BaseURL == "" {
		scheme, host := "https", target.host
		switch target.scheme {
		case "http":
			scheme = "http"
		case "ssh":
			host, _, _ = strings.Cut(host, ":") // the port is that of SSH
		}
		pr.BaseURL = scheme + "://" + host
		return
	}
	u, err := url.Parse(pr.BaseURL)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		v.fault(path, hint, "is not an http:// or https:// URL")
	case u.User != nil:
		v.fault(path, "name a secret in target.pullRequest.secret", "holds credentials")
	case u.RawQuery != "" || u.Fragment != "":
		v.fault(path, hint, "has a query or a fragment")
	default:
		pr.BaseURL = strings.TrimRight(pr.BaseURL, "/")
	}
}

// forgeSecret asks for a token where target.auth cannot stand in for it: an SSH key
// opens no API, and credentials are not handed to another host unasked.
func (v *validator) forgeSecret(target address) {
	const path, hint = "target.pullRequest.secret", "name a secret with an API token (token or password) that may write pull requests"
	t := v.cfg.Target
	if !t.PullRequest.Secret.IsZero() {
		return
	}
	base, err := url.Parse(t.PullRequest.BaseURL)
	switch {
	case t.Auth.Secret.IsZero():
		v.fault(path, hint, "is required: there is no target.auth to take a token from")
	case target.scheme == "ssh":
		v.fault(path, hint, "is required: target.url is reached over SSH, and its key opens no API")
	case err == nil && !strings.EqualFold(base.Host, target.host):
		v.fault(path, hint, "is required: target.pullRequest.baseURL is on another host than target.url, so target.auth is not used for it")
	}
}
