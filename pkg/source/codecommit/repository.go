// SPDX-License-Identifier: Apache-2.0

package codecommit

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"resourceset.example/renderer/pkg/source/provider"
)

// A repository is what spec.url names.
type repository struct {
	name, region string
	aws          bool     // the host is one of AWS
	fips         bool     // of those with validated cryptography
	git          *url.URL // the repository for Git
	console      string   // host of the console
}

var (
	// awsHost is where CodeCommit answers Git, also at a VPC's own endpoint.
	awsHost = regexp.MustCompile(`^(?:[a-z0-9-]+\.)?git-codecommit(-fips)?\.([a-z]{2}(?:-[a-z]+)+-[0-9]+)\.(?:vpce\.)?amazonaws\.com(\.cn)?$`)
	// repositoryName is what names may be.
	repositoryName = regexp.MustCompile(`^[\w.-]{1,100}$`)
)

// elsewhere is the region where an endpoint outside of AWS claims to be.
const elsewhere = "us-east-1"

// parseURL reads the address of a repository as Git has it:
// https://git-codecommit.REGION.amazonaws.com/v1/repos/NAME. Any other host answers
// for both Git and the API, as emulators do.
func parseURL(raw string) (*repository, error) {
	if rest, ok := strings.CutPrefix(raw, "ssh://"); ok {
		_, rest, _ = cutLast(rest, "@")
		return nil, &provider.Error{
			Reason: provider.Misconfigured,
			Msg:    "spec.url is an SSH address, but the API is asked over HTTPS",
			Hint:   "write https://" + rest,
		}
	}
	u, err := provider.ParseURL(raw)
	if err != nil {
		return nil, err
	}
	name, ok := strings.CutPrefix(path.Clean("/"+u.Path), "/v1/repos/")
	host := strings.ToLower(u.Hostname())
	if !ok || !repositoryName.MatchString(name) || name == "." || name == ".." {
		return nil, &provider.Error{
			Reason: provider.Misconfigured,
			Msg:    fmt.Sprintf("spec.url names no repository of CodeCommit: its path is %q", u.Path),
			Hint:   "write https://git-codecommit.REGION.amazonaws.com/v1/repos/NAME, the address to clone by HTTPS",
		}
	}
	repo := &repository{
		name: name, region: elsewhere, console: elsewhere + ".console.aws.amazon.com",
		git: &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/v1/repos/" + name},
	}
	if found := awsHost.FindStringSubmatch(host); found != nil && u.Scheme == "https" {
		repo.aws, repo.fips, repo.region = true, found[1] != "", found[2]
		repo.console = repo.region + ".console.aws.amazon.com"
		switch {
		case found[3] != "":
			repo.console = repo.region + ".console.amazonaws.cn"
		case strings.HasPrefix(repo.region, "us-gov-"):
			repo.console = repo.region + ".console.amazonaws-us-gov.com"
		}
	}
	return repo, nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):], true
	}
	return "", text, false
}

// page is the page of a pull request in the console.
func (r *repository) page(id string) string {
	return fmt.Sprintf("https://%s/codesuite/codecommit/repositories/%s/pull-requests/%s/details?region=%s", r.console, r.name, id, r.region)
}
