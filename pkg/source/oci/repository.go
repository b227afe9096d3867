// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"resourceset.example/renderer/pkg/source/provider"
)

// repositoryPattern is what the OCI distribution specification lets a repository be
// called; the library lets ".." be a part of it.
var repositoryPattern = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)

// A repository is what spec.url names.
type repository struct {
	name name.Repository
	base *url.URL // of the registry
}

// parseURL reads oci://host/path. Without TLS only what says so is asked: unlike
// the library, which guesses from the host.
func parseURL(raw string, insecure bool) (*repository, error) {
	rest, ok := strings.CutPrefix(raw, "oci://")
	if !ok {
		return nil, misconfigured("spec.url does not begin with oci://", "write oci://HOST/REPOSITORY")
	}
	rest = strings.TrimSuffix(rest, "/")
	host, path, ok := strings.Cut(rest, "/")
	switch {
	case strings.Contains(rest, "@") && !strings.Contains(path, "@"):
		return nil, misconfigured("spec.url holds a user name or password",
			"put them into a Secret and name it in spec.secretRef; what is in Git is no secret any more")
	case !ok || host == "" || path == "":
		return nil, misconfigured("spec.url names no repository", "write oci://HOST/REPOSITORY")
	case strings.ContainsAny(path, ":@"):
		bare, _, _ := strings.Cut(path, "@")
		bare, _, _ = strings.Cut(bare, ":")
		return nil, misconfigured("spec.url names a tag or digest, but the tags are what is looked for",
			fmt.Sprintf("write oci://%s/%s, and filter.includeTag or filter.semver", host, bare))
	}
	repo, err := name.NewRepository(rest)
	if err != nil || !repositoryPattern.MatchString(path) {
		return nil, misconfigured(fmt.Sprintf("spec.url: %q is not the name of a repository", path),
			"it has small letters, digits, and . _ - / between them")
	}
	scheme := "https"
	if insecure {
		scheme = "http"
	}
	return &repository{name: repo, base: &url.URL{Scheme: scheme, Host: repo.RegistryStr(), Path: "/"}}, nil
}

// tags is the address of the first page of the list of tags. No registry gives
// more than a thousand; those that give fewer say where the rest is.
func (r *repository) tags() string {
	return r.base.String() + "v2/" + r.name.RepositoryStr() + "/tags/list?n=1000"
}

func (r *repository) manifest(tag string) string {
	return r.base.String() + "v2/" + r.name.RepositoryStr() + "/manifests/" + tag
}

// pull is the permission to ask a token service for.
func (r *repository) pull() string { return "repository:" + r.name.RepositoryStr() + ":pull" }

func misconfigured(msg, hint string) error {
	return &provider.Error{Reason: provider.Misconfigured, Msg: msg, Hint: hint}
}
