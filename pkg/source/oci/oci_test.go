// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

const (
	testRepo     = "acme/app"
	testUser     = "robot"
	testPassword = "s3cr3t-of-the-robot"
)

func digestOf(text string) string {
	return "sha256:" + strings.Repeat(forgetest.SHA(text), 2)[:64]
}

// podinfo is a registry with one empty repository, and how to reach it.
func podinfo(t *testing.T) (*forgetest.Registry, provider.Config) {
	t.Helper()
	server := forgetest.NewRegistry()
	t.Cleanup(server.Close)
	server.Create(testRepo)
	return server, provider.Config{
		Object: &api.ResourceSetInputProvider{
			Meta: api.Meta{Name: "tags", Namespace: "apps"},
			Spec: api.InputProviderSpec{Type: api.TypeOCIArtifactTag, URL: server.Ref(testRepo), Insecure: true},
		},
		RetryWait: time.Millisecond,
	}
}

func TestContract(t *testing.T) {
	for _, scheme := range []string{forgetest.Basic, forgetest.Bearer} {
		t.Run(scheme, func(t *testing.T) {
			providertest.Contract(t, func(t *testing.T, items int) providertest.Fixture {
				const pageSize = 8
				server, cfg := podinfo(t)
				server.RequireLogin(scheme, testUser, testPassword)
				server.LimitPages(pageSize)
				cfg.Secret = provider.Secret{"username": []byte(testUser), "password": []byte(testPassword)}
				n := 0
				add := func() { // counted backwards, for the order is that of names backwards
					n++
					server.SetTag(testRepo, fmt.Sprintf("t%03d", 999-n), digestOf(fmt.Sprint(n)))
				}
				for range items {
					add()
				}
				return providertest.Fixture{
					Server: server, Config: cfg, Add: add, CredentialKey: "password", KeyField: "tag", PageSize: pageSize,
					New: func(cfg provider.Config) (providertest.Fetcher, error) { return NewTags(cfg) },
				}
			})
		})
	}
}

func fetch(t *testing.T, cfg provider.Config, previous []api.Input) provider.Result {
	t.Helper()
	p, err := NewTags(cfg)
	if err != nil {
		t.Fatal(err)
	}
	result, err := p.Fetch(t.Context(), previous)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func refusal(t *testing.T, cfg provider.Config) *provider.Error {
	t.Helper()
	p, err := NewTags(cfg)
	var result provider.Result
	if err == nil {
		result, err = p.Fetch(t.Context(), nil)
	}
	var known *provider.Error
	if !errors.As(err, &known) || result.Inputs != nil || known.Hint == "" {
		t.Fatalf("got %v, %v: want an error with a hint", result.Inputs, err)
	}
	return known
}

func calls(server *forgetest.Registry, method string) int {
	n := 0
	for _, r := range server.Requests() {
		if r.Method == method && !strings.HasPrefix(r.URL.Path, "/token") {
			n++
		}
	}
	return n
}

// FR-11: pages by a Link that is relative and has a query of its own; and one more
// request for each tag that is exported, not for the others.
func TestTags(t *testing.T) {
	server, cfg := podinfo(t)
	server.LimitPages(100)
	for n := range 250 {
		server.SetTag(testRepo, fmt.Sprintf("1.0.%d", n), digestOf(fmt.Sprint(n)))
	}
	server.SetTag(testRepo, "latest", digestOf("latest"))
	cfg.Object.Spec.Filter = api.Filter{Semver: ">=1.0.0", Limit: 2}
	got := fetch(t, cfg, nil)
	want := []api.Input{
		{"id": provider.Checksum("1.0.249"), "tag": "1.0.249", "digest": digestOf("249")},
		{"id": provider.Checksum("1.0.248"), "tag": "1.0.248", "digest": digestOf("248")},
	}
	if diff := cmp.Diff(want, got.Inputs); diff != "" || got.Matched != 250 {
		t.Errorf("matched %d (-want +got):\n%s", got.Matched, diff)
	}
	if heads, lists := calls(server, http.MethodHead), calls(server, http.MethodGet); heads != 2 || lists != 5 {
		t.Errorf("%d digests and %d pages were asked for, want 2 and 5 (three, two of them twice)", heads, lists)
	}
}

// Rule 1: null is no list of tags, whoever says so; an empty list is one.
func TestRule01_NullIsNoList(t *testing.T) {
	server, cfg := podinfo(t)
	server.SetTag(testRepo, "a", digestOf("a"))
	before := fetch(t, cfg, nil).Inputs
	for _, body := range []string{`{"name":"acme/app","tags":null}`, `{"name":"acme/app"}`, `{"tags":null}`, `{"name":"acme/app","tags":{}}`, `{"name":"acme/app","tags":[null]}`} {
		server.Break(forgetest.JSON(body))
		p, err := NewTags(cfg)
		if got := providertest.Failure(t, p, err, before...); got.Reason != provider.Implausible {
			t.Errorf("%s: got %v", body, got)
		}
	}
	server.Break(forgetest.JSON(`{"name":"acme/app","tags":[]}`))
	if got := fetch(t, cfg, before).Inputs; len(got) != 0 {
		t.Errorf("got %v of an empty list", got)
	}
}

// FR-07: a registry whose Link always points at itself.
func TestRule01_EndlessList(t *testing.T) {
	server, cfg := podinfo(t)
	server.SetTag(testRepo, "a", digestOf("a"))
	server.Break(forgetest.Link(func(r *http.Request) string { return "<" + r.URL.String() + `>; rel="next"` }))
	if err := refusal(t, cfg); err.Reason != provider.Implausible || !strings.Contains(err.Error(), "page 1 leads back") {
		t.Errorf("got %v", err)
	}
	if n := len(server.Requests()); n > 10 {
		t.Errorf("%d requests", n)
	}
}

// FR-11: an absolute Link is followed, and one to another host is not.
func TestRule08_LinkToAnotherHost(t *testing.T) {
	server, cfg := podinfo(t)
	server.SetTag(testRepo, "a", digestOf("a"))
	server.SetTag(testRepo, "b", digestOf("b"))
	server.LimitPages(1)
	link := func(host string) forgetest.Fault {
		return forgetest.Link(func(r *http.Request) string {
			if r.URL.Query().Get("page") == "2" {
				return ""
			}
			return fmt.Sprintf(`<%s/v2/acme/app/tags/list?n=1&page=2>; rel="next"`, host)
		})
	}
	server.Break(link(server.URL))
	if got := fetch(t, cfg, nil); len(got.Inputs) != 2 {
		t.Errorf("got %v", got.Inputs)
	}
	server.Break(link("http://127.0.0.2:1"))
	if err := refusal(t, cfg); err.Reason != provider.Redirected {
		t.Errorf("got %v", err)
	}
}

// FR-02: the second call fails for one item, and so nothing is exported.
func TestRule01_DigestFails(t *testing.T) {
	server, cfg := podinfo(t)
	for n := range 5 {
		server.SetTag(testRepo, fmt.Sprintf("v%d", n), digestOf(fmt.Sprint(n)))
	}
	ofOne := func(fault forgetest.Fault) forgetest.Fault {
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasSuffix(r.URL.Path, "/manifests/v3") {
				fault(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		}
	}
	digest := func(text string) forgetest.Fault {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Docker-Content-Digest", text)
		}
	}
	for name, test := range map[string]struct {
		fault forgetest.Fault
		want  provider.Reason
	}{
		"gone":        {forgetest.Status(http.StatusNotFound, "manifest unknown"), provider.NotFound},
		"unavailable": {forgetest.Status(http.StatusServiceUnavailable, ""), provider.Unavailable},
		"forbidden":   {forgetest.Status(http.StatusForbidden, ""), provider.Auth},
		"page":        {forgetest.Page(), provider.Implausible},
		"no digest":   {digest("latest"), provider.Implausible},
		"short":       {digest("sha256:abc"), provider.Implausible},
		"nothing":     {forgetest.JSON("{}"), provider.Implausible},
	} {
		t.Run(name, func(t *testing.T) {
			server.Break(ofOne(test.fault))
			if err := refusal(t, cfg); err.Reason != test.want || !strings.Contains(err.Error(), "tag v3") {
				t.Errorf("got %s: %v, want %s", err.Reason, err, test.want)
			}
		})
	}
}

// FR-08: the newest tag vanishes.
func TestDowngrade(t *testing.T) {
	server, cfg := podinfo(t)
	server.SetTag(testRepo, "1.3.1", digestOf("1"))
	server.SetTag(testRepo, "1.3.2", digestOf("2"))
	cfg.Object.Spec.Filter = api.Filter{Semver: ">=1.0.0", Limit: 1}
	before := fetch(t, cfg, nil)
	server.DeleteTag(testRepo, "1.3.2")
	after := fetch(t, cfg, before.Inputs)
	if after.Inputs[0]["tag"] != "1.3.1" || after.Inputs[0]["digest"] != digestOf("1") || len(after.Warnings) != 1 {
		t.Errorf("got %v with %q", after.Inputs, after.Warnings)
	}
	cfg.Object.Annotations = map[string]string{api.AnnotationHoldDowngrades: "true"}
	held := fetch(t, cfg, before.Inputs)
	if diff := cmp.Diff(before.Inputs, held.Inputs); diff != "" || len(held.Warnings) != 1 {
		t.Errorf("warnings %q, (-before +held):\n%s", held.Warnings, diff)
	}
}

// Tokens run out within minutes, and a token service is asked for a new one then.
func TestTokens(t *testing.T) {
	server, cfg := podinfo(t)
	server.SetTag(testRepo, "a", digestOf("a"))
	server.RequireLogin(forgetest.Bearer, testUser, testPassword)
	auth := "cm9ib3Q6czNjcjN0LW9mLXRoZS1yb2JvdA=="
	host := strings.TrimPrefix(server.URL, "http://")
	for name, config := range map[string]string{
		"auth":           fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, auth),
		"user":           fmt.Sprintf(`{"auths":{%q:{"username":%q,"password":%q}}}`, "http://"+host+"/v2/", testUser, testPassword+`\n`),
		"identity token": fmt.Sprintf(`{"auths":{"other.example":{},%q:{"identitytoken":"refresh-me-please"}}}`, host+"/acme"),
	} {
		t.Run(name, func(t *testing.T) {
			server.AcceptRefreshToken("refresh-me-please")
			cfg.Secret = provider.Secret{dockerConfigKey: []byte(strings.ReplaceAll(config, `\\n`, `\n`))}
			p, err := NewTags(cfg)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				server.Expire()
				if result, err := p.Fetch(t.Context(), nil); err != nil || len(result.Inputs) != 1 {
					t.Errorf("got %v, %v", result.Inputs, err)
				}
			}
			server.Forget()
			if _, err := p.Fetch(t.Context(), nil); err != nil || len(server.Requests()) != 2 {
				t.Errorf("%d requests with a token that is good, want 2; %v", len(server.Requests()), err)
			}
		})
	}
	if got := server.Scopes(); len(got) == 0 || got[0] != "repository:acme/app:pull" {
		t.Errorf("asked for %q", got)
	}
}

// What a docker config must not do, and what is wrong with one.
func TestDockerConfigFaults(t *testing.T) {
	server, cfg := podinfo(t)
	server.RequireLogin(forgetest.Bearer, testUser, testPassword)
	for name, test := range map[string]struct {
		config string
		want   provider.Reason
	}{
		"not JSON":    {"s3cr3t", provider.Misconfigured},
		"no auths":    {`{"credsStore":"pass"}`, provider.Misconfigured},
		"no base64":   {`{"auths":{"*.0.0.*:*":{"auth":"s3cr3t"}}}`, provider.Misconfigured},
		"line break":  {`{"auths":{"*.0.0.*:*":{"username":"a","password":"s3\ncr3t"}}}`, provider.Misconfigured},
		"other host":  {`{"auths":{"ghcr.io":{"username":"robot","password":"s3cr3t-of-the-robot"}}}`, provider.Auth},
		"other path":  {`{"auths":{"*.0.0.*:*/acm":{"username":"robot","password":"s3cr3t-of-the-robot"}}}`, provider.Auth},
		"wrong":       {`{"auths":{"*.0.0.*:*":{"username":"robot","password":"s3cr3t"}}}`, provider.Auth},
		"wrong token": {`{"auths":{"*.0.0.*:*":{"registrytoken":"s3cr3t"}}}`, provider.Auth},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Secret = provider.Secret{dockerConfigKey: []byte(test.config)}
			if err := refusal(t, cfg); err.Reason != test.want || strings.Contains(err.Error(), "s3") && strings.Contains(err.Error(), "cr3t") {
				t.Errorf("got %s: %v, want %s", err.Reason, err, test.want)
			}
		})
	}
}

func TestDockerConfigKeys(t *testing.T) {
	for _, test := range []struct {
		key, registry, repo string
		want                int
	}{
		{"ghcr.io", "ghcr.io", "acme/app", 0},
		{"https://ghcr.io/v2/", "ghcr.io", "acme/app", 0},
		{"GHCR.io", "ghcr.io", "acme/app", 0},
		{"https://index.docker.io/v1/", "index.docker.io", "library/redis", 0},
		{"docker.io", "index.docker.io", "library/redis", 0},
		{"ghcr.io/acme", "ghcr.io", "acme/app", 4},
		{"ghcr.io/acme/app", "ghcr.io", "acme/app", 8},
		{"ghcr.io/ac", "ghcr.io", "acme/app", -1},
		{"*.azurecr.io", "acme.azurecr.io", "app", 0},
		{"*.io", "acme.azurecr.io", "app", -1},
		{"ghcr.io.evil.example", "ghcr.io", "app", -1},
		{"registry:5000", "registry", "app", -1},
		{"", "registry", "app", -1},
	} {
		if got := matches(test.key, test.registry, test.repo); got != test.want {
			t.Errorf("%q for %s/%s: %d, want %d", test.key, test.registry, test.repo, got, test.want)
		}
	}
}

// FR-86, rule 8: the realm is somewhere else; what must not go there does not.
func TestRule08_TokenService(t *testing.T) {
	server, cfg := podinfo(t)
	for name, realm := range map[string]string{
		"none": "", "no host": "token", "file": "file:///etc/passwd", "private": "http://10.0.0.1/token", "with a user": "http://a:b@127.0.0.1/token",
	} {
		t.Run(name, func(t *testing.T) {
			server.Break(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.Header().Set("Www-Authenticate", fmt.Sprintf("Bearer realm=%q", realm))
				w.WriteHeader(http.StatusUnauthorized)
			})
			if err := refusal(t, cfg); err.Reason != provider.Implausible {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("what it says", func(t *testing.T) {
		server.Heal()
		server.RequireLogin(forgetest.Bearer, testUser, testPassword)
		server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.URL.Path == "/token" {
				forgetest.JSON(`{"tokken":"s3cr3t-of-the-robot"}`)(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		})
		if err := refusal(t, cfg); strings.Contains(fmt.Sprintf("%v %+v", err, err), "s3cr3t") {
			t.Errorf("the error repeats the answer: %v", err)
		}
	})
}

func TestURLs(t *testing.T) {
	for url, want := range map[string]string{
		"oci://ghcr.io/acme/app":      "https://ghcr.io/v2/acme/app/tags/list?n=1000",
		"oci://ghcr.io/acme/app/":     "https://ghcr.io/v2/acme/app/tags/list?n=1000",
		"oci://docker.io/redis":       "https://index.docker.io/v2/library/redis/tags/list?n=1000",
		"oci://127.0.0.1:5000/aa":     "https://127.0.0.1:5000/v2/aa/tags/list?n=1000",
		"oci://10.0.0.1/aa":           "https://10.0.0.1/v2/aa/tags/list?n=1000",
		"https://ghcr.io/acme/app":    "oci://HOST",
		"oci://ghcr.io":               "oci://HOST",
		"oci://ghcr.io/acme/app:1.0":  "oci://ghcr.io/acme/app,",
		"oci://ghcr.io/a@sha256:abc":  "oci://ghcr.io/a,",
		"oci://me:s3cr3t@ghcr.io/app": "spec.secretRef",
		"oci://ghcr.io/Acme":          "small letters",
		"oci://ghcr.io/a/../b":        "small letters",
		"oci://ghcr.io/a?b=c":         "small letters",
	} {
		repo, err := parseURL(url, false)
		var known *provider.Error
		switch {
		case err == nil && repo.tags() != want:
			t.Errorf("%s: got %s, want %s", url, repo.tags(), want)
		case err != nil && (!errors.As(err, &known) || !strings.Contains(known.Hint, want) || strings.Contains(known.Error(), "s3cr3t")):
			t.Errorf("%s: got %v (%s), want %q", url, err, known.Hint, want)
		}
	}
}

// A registry that somebody else wrote, with images that were pushed to it.
func TestAgainstARegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	image, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image})
	for tag, push := range map[string]func(name.Reference) error{
		"1.0.0": func(ref name.Reference) error { return remote.Write(ref, image) },
		"2.0.0": func(ref name.Reference) error { return remote.WriteIndex(ref, index) },
	} {
		ref, err := name.ParseReference(host + "/acme/app:" + tag)
		if err == nil {
			err = push(ref)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	one, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	two, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	_, cfg := podinfo(t)
	cfg.Object.Spec.URL = "oci://" + host + "/acme/app"
	want := []api.Input{
		{"id": provider.Checksum("2.0.0"), "tag": "2.0.0", "digest": two.String()},
		{"id": provider.Checksum("1.0.0"), "tag": "1.0.0", "digest": one.String()},
	}
	if diff := cmp.Diff(want, fetch(t, cfg, nil).Inputs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRegistryWithoutDigests(t *testing.T) {
	server, cfg := podinfo(t)
	server.SetTag(testRepo, "a", "")
	server.HideDigests()
	const want = "sha256:0f9ca70b1a9e2e1ec96a6c1bc0d8bb7ee2bd4a1ec6de4dbb8e2a4f4b5a4b7f50"
	if got := fetch(t, cfg, nil).Inputs[0]["digest"]; len(got.(string)) != len(want) || !strings.HasPrefix(got.(string), "sha256:") {
		t.Errorf("got %v", got)
	}
}

// FR-101: two providers of one repository and credential.
func TestShared(t *testing.T) {
	server, cfg := podinfo(t)
	server.SetTag(testRepo, "1.0.0", digestOf("1"))
	cfg.Shared = &provider.Shared{}
	other := cfg
	object := *cfg.Object
	object.Spec.Filter.Semver = "1.x"
	other.Object = &object
	a, err := NewTags(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewTags(other)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 2; n++ {
		pass := provider.WithPass(t.Context())
		for _, p := range []*Tags{a, b} {
			if _, err := p.Fetch(pass, nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(server.Requests()); got != 2*n {
			t.Errorf("%d requests after pass %d, want %d", got, n, 2*n)
		}
	}
}

func TestServiceAccountIsRefused(t *testing.T) {
	_, cfg := podinfo(t)
	cfg.Object.Spec.ServiceAccountName = "puller"
	if err := refusal(t, cfg); err.Reason != provider.Misconfigured {
		t.Errorf("got %v", err)
	}
	cfg.Object.Spec.URL = "oci://acme.azurecr.io/app"
	if _, err := NewACRTags(cfg); provider.ReasonOf(err) != provider.Misconfigured {
		t.Errorf("got %v", err)
	}
}

func TestChallenges(t *testing.T) {
	for text, want := range map[string]string{
		`Bearer realm="https://auth.example/token",service="reg, istry",scope="repository:a/b:pull,push"`: "bearer https://auth.example/token|reg, istry|repository:a/b:pull,push",
		`Basic realm="x", Bearer realm=y`: "bearer y||",
		`Basic`:                           "basic ||",
		`Negotiate abc==, basic realm="a \"b\" c"`: "basic a \"b\" c||",
		`Digest realm="x"`:                         "",
		`bearer realm="never ends`:                 "bearer never ends||",
		`=,="`:                                     "",
		``:                                         "",
	} {
		c, ok := pick(challenges([]string{text}))
		got := ""
		if ok {
			got = fmt.Sprintf("%s %s|%s|%s", c.scheme, c.parameters["realm"], c.parameters["service"], c.parameters["scope"])
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func FuzzChallenges(f *testing.F) {
	f.Add(`Bearer realm="https://auth.example/token",service="a",scope="repository:a/b:pull"`)
	f.Add(`Basic, a=b "`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range challenges([]string{text}) {
			if c.scheme == "" || strings.ContainsAny(c.scheme, " ,=\"") {
				t.Errorf("scheme %q", c.scheme)
			}
		}
	})
}

func FuzzPage(f *testing.F) {
	f.Add([]byte(`{"name":"acme/app","tags":["1.0.0","latest"]}`))
	f.Add([]byte(`{"name":"acme/app","tags":null}`))
	f.Add([]byte(`{"tags":[]}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		page, err := decodePage(body)
		if err != nil {
			if page != nil {
				t.Error("a page beside an error")
			}
			return
		}
		if !strings.Contains(string(body), "ags") && !strings.Contains(strings.ToLower(string(body)), "tags") && !strings.Contains(string(body), `\u`) {
			t.Errorf("a list out of %q", body)
		}
		for _, tag := range page.Items {
			if !tagPattern.MatchString(tag) {
				t.Errorf("tag %q", tag)
			}
		}
	})
}

func FuzzDockerConfig(f *testing.F) {
	f.Add([]byte(`{"auths":{"ghcr.io":{"auth":"YTpi"}}}`))
	f.Add([]byte(`{"auths":{"ghcr.io/acme":{"username":"a","password":"b"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := fromDockerConfig(data, "ghcr.io", "acme/app")
		again, second := fromDockerConfig(data, "ghcr.io", "acme/app")
		if config != again || (err == nil) != (second == nil) {
			t.Error("two readings differ")
		}
		for _, value := range []string{config.Username, config.Password, config.IdentityToken, config.RegistryToken} {
			if strings.ContainsAny(value, "\r\n") {
				t.Errorf("%q would be more than one line of a header", value)
			}
		}
	})
}
