// SPDX-License-Identifier: Apache-2.0

package api

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A providerType says which fields a type of provider takes.
type providerType struct {
	scheme         string   // "http" stands for http and https, "git" for these and SSH, others for themselves; empty: no URL at all
	repository     bool     // the URL is that of a repository on a forge
	azure          bool     // the user in a URL is an organisation
	insecure       bool     // spec.insecure is allowed
	serviceAccount bool     // spec.serviceAccountName is allowed
	noSecret       bool     // spec.secretRef is not allowed
	noCertSecret   bool     // spec.certSecretRef is not allowed
	noLabels       bool     // there are none, so that what asks for one is a mistake
	filters        []string // fields of spec.filter that have an effect
}

// ProviderTypes lists the types that a ResourceSetInputProvider can have.
func ProviderTypes() []string { return slices.Sorted(maps.Keys(providerTypes())) }

func providerTypes() map[string]providerType {
	changes := []string{
		"includeBranch", "excludeBranch", "labels", "limit",
		"targetBranch", "title", "author", "draft", "fork", "updatedWithin",
	}
	unlabelled := slices.DeleteFunc(slices.Clone(changes), func(name string) bool { return name == "labels" })
	branches := []string{"includeBranch", "excludeBranch", "limit"}
	tags := []string{"includeTag", "excludeTag", "semver", "limit"}
	environments := []string{"includeEnvironment", "excludeEnvironment", "limit"}

	forge := func(filters []string) providerType {
		return providerType{scheme: "http", repository: true, filters: filters}
	}
	azure := func(filters []string) providerType {
		return providerType{scheme: "http", azure: true, serviceAccount: true, noCertSecret: true, filters: filters}
	}
	aws := func(filters []string) providerType {
		return providerType{scheme: "https", serviceAccount: true, noCertSecret: true, filters: filters}
	}
	git := func(filters ...string) providerType {
		return providerType{scheme: "git", insecure: true, filters: filters}
	}
	cloud := providerType{scheme: "oci", serviceAccount: true, noSecret: true, noCertSecret: true, filters: tags}
	return map[string]providerType{
		TypeStatic:           {noSecret: true, noCertSecret: true},
		TypeExternalArtifact: {noSecret: true, noCertSecret: true, filters: []string{"limit"}},
		TypeExternalService:  {scheme: "http", insecure: true, filters: []string{"limit"}},

		TypeGitHubPullRequest: forge(changes), TypeGitHubBranch: forge(branches), TypeGitHubTag: forge(tags),
		TypeGitLabMergeRequest: forge(changes), TypeGitLabBranch: forge(branches), TypeGitLabTag: forge(tags),
		TypeGitLabEnvironment: forge(environments),
		TypeGiteaPullRequest:  forge(changes), TypeGiteaBranch: forge(branches), TypeGiteaTag: forge(tags),

		TypeAzureDevOpsPullRequest: azure(changes), TypeAzureDevOpsBranch: azure(branches), TypeAzureDevOpsTag: azure(tags),
		TypeAWSCodeCommitPullRequest: aws(unlabelled), TypeAWSCodeCommitBranch: aws(branches), TypeAWSCodeCommitTag: aws(tags),

		TypeBitbucketPullRequest: {scheme: "http", repository: true, noLabels: true, filters: unlabelled},
		TypeBitbucketBranch:      forge(branches), TypeBitbucketTag: forge(tags),

		TypeGitRepositoryBranch: git(branches...), TypeGitRepositoryTag: git(tags...),
		TypeGitRepositoryPath: git("includePath", "excludePath", "limit"),

		TypeOCIArtifactTag: {scheme: "oci", insecure: true, serviceAccount: true, filters: tags},
		TypeACRArtifactTag: cloud, TypeECRArtifactTag: cloud, TypeGARArtifactTag: cloud,
	}
}

// scpURL is Git's short form of an SSH address: git@host:path.
var scpURL = regexp.MustCompile(`^(?:[\w.-]+@)?([\w.-]+\.[\w-]+|localhost):([^/].*)$`)

func (d *decoder) checkURL(spec *yaml.Node, t providerType, s *InputProviderSpec) {
	at := d.line("spec.url", spec)
	switch {
	case t.scheme == "":
		if s.URL != "" {
			d.fault(at, "take it out", "spec.url cannot be used with type %s", s.Type)
		}
		return
	case s.URL == "":
		d.faultMissing(spec, "spec.url", "the type "+s.Type+" needs an address")
		return
	}
	if t.scheme == "git" && !strings.Contains(s.URL, "://") && scpURL.MatchString(s.URL) {
		return // Git's short form of an SSH address
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil && scpURL.MatchString(s.URL), err == nil && !t.accepts(u.Scheme):
		d.fault(at, t.urlHint(s.URL), "spec.url of type %s must begin with %s", s.Type, t.schemes())
	case err != nil:
		d.fault(at, "", "spec.url is no valid URL") // the cause would quote it, password and all
	case u.Host == "":
		d.fault(at, "", "spec.url names no host")
	case u.User != nil && !t.namesUser(u.User):
		d.fault(at, "put the credential into a Secret and name it in secretRef", "spec.url holds a credential")
	case t.insecure && u.Scheme == "http" && !s.Insecure:
		d.fault(at, "use https://, or say insecure: true", "spec.url is http://, which needs spec.insecure")
	case t.repository, t.azure && u.User != nil:
		u.User = nil
		s.URL = repositoryURL(u)
		const hint = "write the address of the repository, as the browser shows it"
		switch parts := strings.FieldsFunc(u.Path, func(r rune) bool { return r == '/' }); {
		case len(parts) == 0:
			d.fault(at, hint, "spec.url names no repository")
		case t.repository && len(parts) < 2: // the CRD takes it, and so may a definition that is not fetched
			d.warn(at, hint, "spec.url names an owner, but no repository")
		}
	}
}

// checkBaseURL checks the annotation against the URL that is to be below it.
func (d *decoder) checkBaseURL(n *yaml.Node, meta Meta, s *InputProviderSpec) {
	base, set := meta.Annotations[AnnotationBaseURL]
	base = strings.TrimSuffix(strings.TrimRight(base, "/"), "/api/v4") // who names the API means that server
	at := d.line("metadata.annotations."+AnnotationBaseURL, n)
	switch {
	case !set:
	case !strings.HasPrefix(s.Type, "GitLab"):
		d.warn(at, "take it out", "annotation %s has no effect with type %s", AnnotationBaseURL, s.Type)
	case s.URL != "" && strings.Contains(base, "://") && !strings.HasPrefix(s.URL, base+"/"):
		d.fault(at, "the server's address is how spec.url begins", "spec.url is not below the annotation %s", AnnotationBaseURL)
	}
}

// namesUser tells the clone URLs of Azure DevOps, which begin with the name of
// the organisation, from those with a password or token.
func (t providerType) namesUser(u *url.Userinfo) bool {
	_, password := u.Password()
	return (t.azure || t.scheme == "git") && !password
}

func (t providerType) accepts(scheme string) bool {
	switch t.scheme {
	case "oci", "https":
		return scheme == t.scheme
	case "git":
		return scheme == "http" || scheme == "https" || scheme == "ssh"
	}
	return scheme == "http" || scheme == "https"
}

func (t providerType) schemes() string {
	switch t.scheme {
	case "oci", "https":
		return t.scheme + "://"
	case "git":
		return "https:// or ssh://"
	}
	return "https:// or http://"
}

// repositoryURL takes off what a clone URL has and a project's address has not.
func repositoryURL(u *url.URL) string {
	clean := *u
	clean.RawPath, clean.RawQuery, clean.Fragment = "", "", ""
	clean.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), ".git")
	return strings.TrimRight(clean.String(), "/")
}

// urlHint is the address that was probably meant.
func (t providerType) urlHint(raw string) string {
	if scp := scpURL.FindStringSubmatch(raw); scp != nil && !strings.Contains(raw, "://") {
		raw = "ssh://" + scp[1] + "/" + scp[2]
	} else if !strings.Contains(raw, "://") {
		raw = "//" + raw
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	fixed := &url.URL{Scheme: "https", Host: u.Hostname(), Path: u.Path}
	if t.scheme == "oci" {
		fixed.Scheme, fixed.Host = "oci", u.Host
		return "write " + fixed.String()
	}
	return "write " + repositoryURL(fixed)
}
