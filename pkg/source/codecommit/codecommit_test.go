// SPDX-License-Identifier: Apache-2.0

package codecommit

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

const (
	accessKey = "AKIAIOSFODNN7EXAMPLE"
	secretKey = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	pageSize  = 8
)

// web starts a region with one repository.
func web(t *testing.T) (*forgetest.CodeCommit, *forgetest.Repo, provider.Config) {
	t.Helper()
	return webIn(t, elsewhere)
}

func webIn(t *testing.T, region string) (*forgetest.CodeCommit, *forgetest.Repo, provider.Config) {
	t.Helper()
	server := forgetest.NewCodeCommit(region)
	t.Cleanup(server.Close)
	server.LimitPages(pageSize)
	server.RequireKeys(accessKey, secretKey, "")
	return server, server.Repo("web"), provider.Config{
		Object: &api.ResourceSetInputProvider{
			Meta: api.Meta{Name: "web", Namespace: "apps"},
			Spec: api.InputProviderSpec{URL: server.URL + "/v1/repos/web"},
		},
		Secret:    provider.Secret{"accesskey": []byte(accessKey), "secretkey": []byte(secretKey)},
		UserAgent: "renderer/test", RetryWait: time.Millisecond,
	}
}

func newPullRequests(t *testing.T, cfg provider.Config) *PullRequests {
	t.Helper()
	p, err := NewPullRequests(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// lists counts only requests of lists, for the contract knows of no others.
type lists struct {
	*forgetest.CodeCommit
}

func (l lists) Requests() []*http.Request {
	return slices.DeleteFunc(l.CodeCommit.Requests(), func(r *http.Request) bool {
		return strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetPullRequest")
	})
}

func TestContract(t *testing.T) {
	requests := providertest.Requests(pageSize, NewPullRequests)
	requests.PageOf = forgetest.CodeCommitPage
	providertest.Contracts(t, "secretkey", func(t *testing.T) (providertest.Server, *forgetest.Repo, provider.Config) {
		server, repo, cfg := web(t)
		return lists{server}, repo, cfg
	}, requests, providertest.Branches(0, NewBranches), providertest.Tags(0, NewTags))
}

func TestFields(t *testing.T) {
	server, repo, cfg := web(t)
	repo.Open(forgetest.PR{
		Branch: "feat/ui-footer", SHA: "bf5d6e01cf802734853f6f3417b237e3ad0ba35d", Title: `feat(ui): "Add" footer`, Author: "ada", Target: "release/6.x",
	})
	repo.Open(forgetest.PR{Ghost: true, SHA: "6063e25000000000000000000000000000000000"}) // FR-21: stays a text
	cfg.Object.Spec.Filter.Labels, cfg.Object.Spec.Skip.Labels = []string{"none-here"}, []string{"!none-here"}
	got := providertest.Fetch(t, newPullRequests(t, cfg), nil).Inputs
	want := api.Input{
		"id": "1", "sha": "bf5d6e01cf802734853f6f3417b237e3ad0ba35d", "branch": "feat/ui-footer", "targetBranch": "release/6.x",
		"title": `feat(ui): "Add" footer`, "author": "ada", "labels": []any{}, "draft": false, "fork": false,
		"url":       "https://us-east-1.console.aws.amazon.com/codesuite/codecommit/repositories/web/pull-requests/1/details?region=us-east-1",
		"createdAt": "2026-01-05T09:01:00Z", "updatedAt": "2026-01-05T09:01:00Z",
	}
	if len(got) != 2 {
		t.Fatalf("got %v", got)
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got[1]["author"] != "ghost" || got[1]["sha"] != "6063e25000000000000000000000000000000000" {
		t.Errorf("got %v", got[1])
	}
	if a, b := slices.Sorted(maps.Keys(got[0])), slices.Sorted(maps.Keys(got[1])); !slices.Equal(a, b) {
		t.Errorf("fields %v and %v differ", a, b)
	}
	if cfg.Object.Spec.Filter.Labels == nil {
		t.Error("the definition was changed")
	}
	if agent := server.Requests()[0].UserAgent(); agent != "renderer/test" {
		t.Errorf("asked as %q", agent)
	}
}

// FR-02: a pull request that cannot be read fails the fetch; one that is closed or
// gone since it was listed does not.
func TestRule01_Details(t *testing.T) {
	onSecond := func(fault forgetest.Fault) forgetest.Fault {
		var asked atomic.Int32
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetPullRequest") {
				if seen := asked.Add(1); seen == 2 || seen > 3 {
					fault(w, r, next)
					return
				}
			}
			next.ServeHTTP(w, r)
		}
	}
	for name, test := range map[string]struct {
		fault forgetest.Fault
		want  provider.Reason
	}{
		"down":       {forgetest.Status(http.StatusServiceUnavailable, "later"), provider.Unavailable},
		"null":       {forgetest.JSON("null"), provider.Implausible},
		"no fields":  {forgetest.JSON(`{"pullRequest":{}}`), provider.Implausible},
		"another":    {forgetest.JSON(`{"pullRequest":{"pullRequestId":"77","pullRequestStatus":"OPEN"}}`), provider.Implausible},
		"throttled":  {forgetest.Answer(http.StatusBadRequest, "application/x-amz-json-1.1", `{"__type":"ThrottlingException","message":"Rate exceeded"}`), provider.RateLimited},
		"forbidden":  {forgetest.Answer(http.StatusBadRequest, "application/x-amz-json-1.1", `{"__type":"AccessDeniedException","Message":"no"}`), provider.Auth},
		"always 404": {forgetest.Answer(http.StatusBadRequest, "application/x-amz-json-1.1", `{"__type":"com.amazonaws.codecommit#PullRequestDoesNotExistException"}`), provider.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			server, repo, cfg := web(t)
			for range 3 {
				repo.Open(forgetest.PR{})
			}
			p := newPullRequests(t, cfg)
			before := providertest.Fetch(t, p, nil)
			server.Break(onSecond(test.fault))
			result, err := p.Fetch(t.Context(), before.Inputs)
			if provider.ReasonOf(err) != test.want || result.Inputs != nil || !strings.Contains(err.Error(), "pull request ") {
				t.Errorf("got %v, %v", result.Inputs, err)
			}
		})
	}
	// One that the list has again is a contradiction: there is no third time.
	t.Run("listed but never there", func(t *testing.T) {
		server, repo, cfg := web(t)
		repo.Open(forgetest.PR{})
		asked := 0
		server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetPullRequest") {
				asked++
				forgetest.Answer(http.StatusBadRequest, "application/x-amz-json-1.1", `{"__type":"PullRequestDoesNotExistException"}`)(w, r, nil)
				return
			}
			next.ServeHTTP(w, r)
		})
		p, err := NewPullRequests(cfg)
		if got := providertest.Failure(t, p, err); got.Reason != provider.NotFound || !strings.Contains(got.Error(), "pull request 1: ") || asked != 2 {
			t.Errorf("got %v after asking %d times, want 2", got, asked)
		}
	})
	t.Run("closed meanwhile", func(t *testing.T) {
		server, repo, cfg := web(t)
		for range 3 {
			repo.Open(forgetest.PR{})
		}
		server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "ListPullRequests") {
				next.ServeHTTP(w, r)
				repo.Close(2)
				return
			}
			next.ServeHTTP(w, r)
		})
		if got := providertest.Texts(providertest.Fetch(t, newPullRequests(t, cfg), nil), "id"); got != "1 3" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("gone meanwhile", func(t *testing.T) {
		server, repo, cfg := web(t)
		repo.Open(forgetest.PR{})
		server.Break(forgetest.Times(2, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetPullRequest") {
				forgetest.Answer(http.StatusBadRequest, "application/x-amz-json-1.1", `{"__type":"PullRequestDoesNotExistException"}`)(w, r, nil)
				return
			}
			next.ServeHTTP(w, r)
		}))
		if got := providertest.Texts(providertest.Fetch(t, newPullRequests(t, cfg), nil), "id"); got != "1" {
			t.Errorf("got %q", got)
		}
	})
}

// FR-101: providers on one repository share what one of them read.
func TestSharedListing(t *testing.T) {
	server, repo, cfg := web(t)
	repo.Open(forgetest.PR{})
	repo.SetBranch("main", forgetest.SHA("main"))
	cfg.Shared = &provider.Shared{}
	ctx := provider.WithPass(t.Context())
	one, two := newPullRequests(t, cfg), newPullRequests(t, cfg)
	branches, err := NewBranches(cfg)
	if err != nil {
		t.Fatal(err)
	}
	tags, err := NewTags(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []providertest.Fetcher{one, two, branches, tags} {
		if _, err := p.Fetch(ctx, nil); err != nil {
			t.Error(err)
		}
	}
	if server.Calls() != 3 { // the list, its pull request, and the refs
		t.Errorf("%d requests for four providers", server.Calls())
	}
}

func TestRefs(t *testing.T) {
	_, repo, cfg := web(t)
	sha := func(letter string) string { return strings.Repeat(letter, 40) }
	// FR-10: two names with one checksum.
	repo.SetBranch("fix/cbc", sha("c"))
	repo.SetBranch("fix/bdb", sha("b"))
	repo.SetBranch("main", sha("a"))
	repo.SetTag("v1.2.0", sha("d")) // annotated: its commit counts
	repo.SetTag("1.10.0", sha("e"))
	cfg.Object.Spec.Filter = api.Filter{ExcludeBranch: "^main$"}
	branches, err := NewBranches(cfg)
	if err != nil {
		t.Fatal(err)
	}
	want := []api.Input{
		{"id": "178979487", "branch": "fix/bdb", "sha": sha("b")},
		{"id": "178979487", "branch": "fix/cbc", "sha": sha("c")},
	}
	if diff := cmp.Diff(want, providertest.Fetch(t, branches, nil).Inputs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cfg.Object.Spec.Filter = api.Filter{Semver: ">=1.0.0"}
	tags, err := NewTags(cfg)
	if err != nil {
		t.Fatal(err)
	}
	result := providertest.Fetch(t, tags, nil)
	if providertest.Texts(result, "tag") != "1.10.0 v1.2.0" || providertest.Texts(result, "sha") != sha("e")+" "+sha("d") {
		t.Errorf("got %v", result.Inputs)
	}
}

// A list of refs is whole, or it is none; one of a repository without commits is.
func TestRule01_Refs(t *testing.T) {
	const (
		service = "001e# service=git-upload-pack\n0000"
		main    = "004b1111111111111111111111111111111111111111 refs/heads/main\x00agent=git/2.1\n"
	)
	for body, want := range map[string]int{
		service + main + "0000": 1,
		service + "0000":        0,
		service + "004b0000000000000000000000000000000000000000 capabilities^{}\x00agent=git/2.1\n0000": 0,
		service + main:            -1, // no mark at the end
		service + main[:20]:       -1,
		service:                   -1,
		"":                        -1,
		"0000":                    0,
		service + "0009ERR x0000": -1,
		`{"refs":[]}`:             -1,
	} {
		page, err := decodeRefs([]byte(body))
		if want < 0 {
			if provider.ReasonOf(err) != provider.Implausible {
				t.Errorf("%q: got %v, %v", body, page, err)
			}
			continue
		}
		if err != nil || len(page.Items) != want {
			t.Errorf("%q: got %v, %v", body, page, err)
		}
	}
}

// The signature is that of git-remote-codecommit, byte for byte.
func TestGitCredential(t *testing.T) {
	now := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	keys := aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey, SessionToken: "tok/en"}
	username, password := gitCredential(keys, "eu-west-1", "git-codecommit.eu-west-1.amazonaws.com", "/v1/repos/web", now)
	if username != accessKey+"%tok/en" || password != "20260105T090000Z51e657917462bc5df3b7258000308c13c7a4e6e4912b477cbedd854a5b6c4501" {
		t.Errorf("got %q and %q", username, password)
	}
}

// TestWebIdentity runs the SDK's own way to temporary credentials (IRSA) against a
// local token service, and signs the API's requests with what that gives.
func TestWebIdentity(t *testing.T) {
	server, repo, cfg := webIn(t, "eu-west-1")
	server.RequireKeys("ASIATEMPORARY", "temporary-secret", "temporary-token")
	repo.Open(forgetest.PR{})
	asked := 0
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		_ = r.ParseForm()
		if r.Form.Get("Action") != "AssumeRoleWithWebIdentity" || r.Form.Get("WebIdentityToken") != "token-of-the-cluster" || r.Form.Get("RoleArn") != "arn:aws:iam::111111111111:role/renderer" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>Not authorized: token-of-the-cluster</Message></Error></ErrorResponse>`)
			return
		}
		_, _ = fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
<Credentials><AccessKeyId>ASIATEMPORARY</AccessKeyId><SecretAccessKey>temporary-secret</SecretAccessKey><SessionToken>temporary-token</SessionToken><Expiration>%s</Expiration></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	defer sts.Close()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("token-of-the-cluster"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_ROLE_ARN": "arn:aws:iam::111111111111:role/renderer", "AWS_WEB_IDENTITY_TOKEN_FILE": file, "AWS_ENDPOINT_URL_STS": sts.URL,
		"AWS_ENDPOINT_URL_CODECOMMIT": server.URL, "AWS_CONFIG_FILE": file + ".none", "AWS_SHARED_CREDENTIALS_FILE": file + ".none",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	cfg.Secret = nil
	cfg.Object.Spec.URL = "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/web"
	p := newPullRequests(t, cfg)
	for range 2 {
		if got := providertest.Texts(providertest.Fetch(t, p, nil), "id"); got != "1" {
			t.Errorf("got %q", got)
		}
	}
	if asked != 1 {
		t.Errorf("%d temporary credentials for two fetches", asked)
	}
	// Rule 8: what a definition names is no host of AWS, so it gets no signature of ours.
	server.Forget()
	elsewhere := cfg
	elsewhere.Object = &api.ResourceSetInputProvider{Spec: api.InputProviderSpec{URL: server.URL + "/v1/repos/web"}}
	if _, err := newPullRequests(t, elsewhere).Fetch(t.Context(), nil); provider.ReasonOf(err) != provider.Auth || server.Calls() != 0 {
		t.Errorf("got %v, and %d requests", err, server.Calls())
	}
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::111111111111:role/another")
	_, err := newPullRequests(t, cfg).Fetch(t.Context(), nil)
	if provider.ReasonOf(err) != provider.Auth || !strings.Contains(err.Error(), "AccessDenied") || strings.Contains(err.Error(), "token-of") {
		t.Errorf("got %v", err)
	}
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "")
	t.Setenv("AWS_ROLE_ARN", "")
	if _, err := newPullRequests(t, cfg).Fetch(t.Context(), nil); provider.ReasonOf(err) != provider.Auth {
		t.Errorf("no identity at all: got %v", err)
	}
}

func TestParseURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/web":                       "eu-west-1 web aws",
		"https://git-codecommit.us-gov-west-1.amazonaws.com/v1/repos/a.b_c-d/":              "us-gov-west-1 a.b_c-d aws",
		"https://git-codecommit-fips.us-east-2.amazonaws.com/v1/repos/web":                  "us-east-2 web aws fips",
		"https://git-codecommit.cn-north-1.amazonaws.com.cn/v1/repos/web":                   "cn-north-1 web aws",
		"https://vpce-0a1-b2.git-codecommit.eu-west-1.vpce.amazonaws.com/v1/repos/web":      "eu-west-1 web aws",
		"http://git-codecommit.eu-west-1.amazonaws.com/v1/repos/web":                        "us-east-1 web",
		"https://git-codecommit.eu-west-1.amazonaws.com.evil.example/v1/repos/web":          "us-east-1 web",
		"https://evil.example/git-codecommit.eu-west-1.amazonaws.com/../v1/repos/web":       "us-east-1 web",
		"https://x.evil.example.git-codecommit.eu-west-1.amazonaws.com.evil.c/v1/repos/web": "us-east-1 web",
	} {
		got, err := parseURL(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		text := got.region + " " + got.name
		if got.aws {
			text += " aws"
		}
		if got.fips {
			text += " fips"
		}
		if text != want {
			t.Errorf("%s: got %q, want %q", raw, text, want)
		}
	}
	for raw, hint := range map[string]string{
		"https://git-codecommit.eu-west-1.amazonaws.com/web":                  "/v1/repos/NAME",
		"https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/a/b":         "/v1/repos/NAME",
		"https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/..":          "/v1/repos/NAME",
		"ssh://APKA@git-codecommit.eu-west-1.amazonaws.com/v1/repos/web":      "https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/web",
		"codecommit::eu-west-1://web":                                         "https://host/path",
		"https://u:t0k3n@git-codecommit.eu-west-1.amazonaws.com/v1/repos/web": "spec.secretRef",
	} {
		_, err := parseURL(raw)
		var known *provider.Error
		if !errors.As(err, &known) || known.Reason != provider.Misconfigured || !strings.Contains(known.Hint, hint) {
			t.Errorf("%s: got %v, want a hint with %q", raw, err, hint)
		}
		if err != nil && strings.Contains(err.Error(), "t0k3n") {
			t.Errorf("%v holds the credential", err)
		}
	}
}

func TestExplain(t *testing.T) {
	for body, want := range map[string]provider.Reason{
		`{"__type":"RepositoryDoesNotExistException","message":"web does not exist"}`: provider.NotFound,
		`{"__type":"com.amazonaws.codecommit#RepositoryDoesNotExistException"}`:       provider.NotFound,
		`{"__type":"UnrecognizedClientException","Message":"x"}`:                      provider.Auth,
		`{"__type":"ExpiredTokenException"}`:                                          provider.Auth,
		`{"__type":"ThrottlingException"}`:                                            provider.RateLimited,
		`{"__type":"EncryptionKeyDisabledException"}`:                                 provider.Unavailable,
		`{"__type":"SomethingElse"}`:                                                  "",
		`not JSON`:                                                                    "",
	} {
		got := provider.Reason("")
		if known := explain(&http.Response{Header: http.Header{}}, []byte(body)); known != nil {
			got = known.Reason
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
	header := http.Header{"X-Amzn-Errortype": {"AccessDeniedException:http://internal.amazon.com/coral/"}}
	if known := explain(&http.Response{Header: header}, nil); known == nil || known.Reason != provider.Auth {
		t.Errorf("from a header: got %+v", known)
	}
}

func FuzzDecodeRefs(f *testing.F) {
	for _, seed := range []string{
		"001e# service=git-upload-pack\n0000003d1111111111111111111111111111111111111111 refs/heads/main\n0000",
		"001e# service=git-upload-pack\n00000000", "0000", "", "004b0000000000000000000000000000000000000000 capabilities^{}\x00agent=git/2.1\n0000",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		page, err := decodeRefs(body)
		if err != nil {
			return
		}
		for i, ref := range page.Items {
			if ref.Name == "" || len(ref.SHA) != 40 || page.Keys[i] != ref.key() {
				t.Errorf("read %+v", ref)
			}
		}
	})
}

func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{"https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/web", "ssh://a@h/v1/repos/x", "http://h/v1/repos/%2e%2e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		repo, err := parseURL(raw)
		if err != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || !repositoryName.MatchString(repo.name) || repo.git.User != nil || repo.git.RawQuery != "" {
			t.Errorf("%q: got %+v", raw, repo)
		}
		if host := strings.ToLower(u.Hostname()); repo.aws && (u.Scheme != "https" || !strings.HasSuffix(host, ".amazonaws.com") && !strings.HasSuffix(host, ".amazonaws.com.cn")) {
			t.Errorf("%q is taken for AWS", raw)
		}
	})
}
