// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/provider/providertest"
)

// The tests of this file run the clouds' own SDKs against servers that answer as
// the clouds do. What is replaced is the check of the registry's host name, which
// is a test's own here: the registry is reached under the URL of the fake.

// stranger is the identity of nobody: no test reads that of the machine it runs on,
// or asks a cloud for one.
func stranger(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	for key, value := range map[string]string{
		"HOME": home, "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": filepath.Join(home, "none"),
		"AWS_SHARED_CREDENTIALS_FILE": filepath.Join(home, "none"), "AWS_PROFILE": "",
	} {
		t.Setenv(key, value)
	}
	for _, key := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST",
		"GOOGLE_APPLICATION_CREDENTIALS",
	} {
		t.Setenv(key, "")
		os.Unsetenv(key)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// withLogin is a provider of the fake registry with the login of a cloud.
func withLogin(t *testing.T, cfg provider.Config, from login) (*Tags, error) {
	t.Helper()
	repo, err := parseURL(cfg.Object.Spec.URL, true)
	if err != nil {
		t.Fatal(err)
	}
	return newTags(cfg, repo, from)
}

func oneTag(t *testing.T, p *Tags, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	result, err := p.Fetch(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []api.Input{{"id": provider.Checksum("1.0.0"), "tag": "1.0.0", "digest": digestOf("1")}}
	if diff := cmp.Diff(want, result.Inputs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Rule 8: the identity of this process is for the cloud's own hosts.
func TestRule08_CloudHosts(t *testing.T) {
	type maker func(provider.Config) (*Tags, error)
	for url, test := range map[string]struct {
		make maker
		want bool
	}{
		"oci://123456789012.dkr.ecr.eu-west-1.amazonaws.com/app":              {NewECRTags, true},
		"oci://123456789012.dkr.ecr-fips.us-gov-west-1.amazonaws.com/app":     {NewECRTags, true},
		"oci://123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn/app":          {NewECRTags, true},
		"oci://123456789012.dkr-ecr.eu-west-1.on.aws/app":                     {NewECRTags, true},
		"oci://public.ecr.aws/aws/app":                                        {NewECRTags, true},
		"oci://123456789012.dkr.ecr.eu-west-1.amazonaws.com.evil.example/app": {NewECRTags, false},
		"oci://dkr.ecr.eu-west-1.amazonaws.com/app":                           {NewECRTags, false},
		"oci://acme.azurecr.io/app":                                           {NewACRTags, true},
		"oci://acme-hash123.azurecr.io/app":                                   {NewACRTags, true},
		"oci://acme.azurecr.cn/app":                                           {NewACRTags, true},
		"oci://acme.azurecr.io.evil.example/app":                              {NewACRTags, false},
		"oci://azurecr.io/app":                                                {NewACRTags, false},
		"oci://evil.example/acme.azurecr.io/app":                              {NewACRTags, false},
		"oci://europe-west3-docker.pkg.dev/project/images/app":                {NewGARTags, true},
		"oci://eu.gcr.io/project/app":                                         {NewGARTags, true},
		"oci://pkg.dev.evil.example/app":                                      {NewGARTags, false},
		"oci://evilgcr.io/app":                                                {NewGARTags, false},
		"oci://pkg.dev/app":                                                   {NewGARTags, false},
	} {
		cfg := provider.Config{Object: &api.ResourceSetInputProvider{Spec: api.InputProviderSpec{URL: url}}}
		if _, err := test.make(cfg); (err == nil) != test.want || err != nil && provider.ReasonOf(err) != provider.Misconfigured {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// An ecrAPI answers GetAuthorizationToken as ECR does, to requests that are signed,
// and the one call of STS that IRSA needs.
func ecrAPI(t *testing.T, expires time.Time) (*httptest.Server, *[]string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "Action=AssumeRoleWithWebIdentity") {
			asked = append(asked, "STS")
			if !strings.Contains(string(body), "WebIdentityToken=token-of-the-pod") {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "text/xml")
			fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>`+
				`<Credentials><AccessKeyId>ASIAOFTHEPOD</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>session</SessionToken>`+
				`<Expiration>%s</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
				time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
			return
		}
		asked = append(asked, r.Header.Get("X-Amz-Target"))
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		signature := r.Header.Get("Authorization")
		if !strings.HasPrefix(signature, "AWS4-HMAC-SHA256 Credential=ASIAOFTHEPOD/") || !strings.Contains(signature, "/eu-west-1/ecr/aws4_request") {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"UnrecognizedClientException","message":"The security token included in the request is invalid."}`)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"authorizationData": []any{map[string]any{
			"authorizationToken": base64.StdEncoding.EncodeToString([]byte("AWS:" + testPassword)),
			"expiresAt":          float64(expires.Unix()), "proxyEndpoint": "https://123456789012.dkr.ecr.eu-west-1.amazonaws.com",
		}}})
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_ECR", server.URL)
	t.Setenv("AWS_ENDPOINT_URL_STS", server.URL)
	return server, &asked
}

func irsa(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/renderer")
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", write(t, "token-of-the-pod"))
}

func TestECR(t *testing.T) {
	stranger(t)
	irsa(t)
	_, asked := ecrAPI(t, time.Now().Add(12*time.Hour))
	registry, cfg := podinfo(t)
	registry.SetTag(testRepo, "1.0.0", digestOf("1"))
	registry.RequireLogin(forgetest.Basic, "AWS", testPassword)
	from := &ecrLogin{cfg: cfg, region: "eu-west-1"}
	for range 2 {
		p, err := withLogin(t, cfg, from)
		oneTag(t, p, err)
	}
	want := []string{"STS", "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"}
	if diff := cmp.Diff(want, *asked); diff != "" {
		t.Errorf("the token is good for hours, and was asked for (-want +got):\n%s", diff)
	}
}

// A password that has run out is not sent any more: ECR answers 403 to it, which
// looks like a permission that is missing.
func TestECRTokenRunsOut(t *testing.T) {
	stranger(t)
	irsa(t)
	_, asked := ecrAPI(t, time.Now().Add(time.Minute)) // so soon that it is not used for another request
	registry, cfg := podinfo(t)
	registry.SetTag(testRepo, "1.0.0", digestOf("1"))
	registry.RequireLogin(forgetest.Basic, "AWS", testPassword)
	p, err := withLogin(t, cfg, &ecrLogin{cfg: cfg, region: "eu-west-1"})
	oneTag(t, p, err)
	before := len(*asked)
	p.reader.client.expires = time.Now()
	oneTag(t, p, nil)
	if len(*asked) == before {
		t.Error("an old password was used again")
	}
}

func TestECRFaults(t *testing.T) {
	registry, cfg := podinfo(t)
	registry.RequireLogin(forgetest.Basic, "AWS", testPassword)
	refused := func(t *testing.T, reason provider.Reason) {
		t.Helper()
		p, err := withLogin(t, cfg, &ecrLogin{cfg: cfg, region: "eu-west-1"})
		if err == nil {
			_, err = p.Fetch(t.Context(), nil)
		}
		if provider.ReasonOf(err) != reason || !strings.Contains(err.Error(), "ECR in eu-west-1 gives no token") {
			t.Errorf("got %s: %v, want %s", provider.ReasonOf(err), err, reason)
		}
	}
	t.Run("no identity", func(t *testing.T) {
		stranger(t)
		ecrAPI(t, time.Time{})
		refused(t, provider.Auth)
	})
	t.Run("not allowed", func(t *testing.T) {
		stranger(t)
		ecrAPI(t, time.Time{})
		t.Setenv("AWS_ACCESS_KEY_ID", "AKIASOMEBODYELSE")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
		refused(t, provider.Auth)
	})
	t.Run("down", func(t *testing.T) {
		stranger(t)
		server, _ := ecrAPI(t, time.Time{})
		server.Close()
		t.Setenv("AWS_ACCESS_KEY_ID", "AKIASOMEBODYELSE")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
		refused(t, provider.Unavailable)
	})
}

// entra is a token endpoint of Microsoft Entra, for workload identity.
func entra(t *testing.T) *httptest.Server {
	t.Helper()
	var server *httptest.Server
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration") {
			_ = json.NewEncoder(w).Encode(map[string]string{
				"authorization_endpoint": server.URL + "/tenant/oauth2/v2.0/authorize", "token_endpoint": server.URL + "/tenant/oauth2/v2.0/token",
				"issuer": server.URL + "/tenant/v2.0",
			})
			return
		}
		_ = r.ParseForm()
		if r.PostForm.Get("client_assertion") != "token-of-the-pod" || r.PostForm.Get("scope") != azureAudience+" openid offline_access profile" &&
			r.PostForm.Get("scope") != azureAudience {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":"invalid_request","error_description":"AADSTS90014: unexpected %s"}`, r.PostForm.Get("scope"))
			return
		}
		fmt.Fprint(w, `{"token_type":"Bearer","expires_in":3600,"access_token":"entra-token-of-the-pod"}`)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestACR(t *testing.T) {
	stranger(t)
	authority := entra(t)
	t.Setenv("AZURE_CLIENT_ID", "client")
	t.Setenv("AZURE_TENANT_ID", "tenant")
	t.Setenv("AZURE_FEDERATED_TOKEN_FILE", write(t, "token-of-the-pod"))
	registry, cfg := podinfo(t)
	registry.SetTag(testRepo, "1.0.0", digestOf("1"))
	registry.RequireLogin(forgetest.Bearer, "nobody", "has no password")
	registry.AcceptRefreshToken("refresh-token-of-the-registry")
	exchanges := 0
	registry.Handle("/oauth2/exchange", func(w http.ResponseWriter, r *http.Request) {
		exchanges++
		_ = r.ParseForm()
		if r.PostForm.Get("grant_type") != "access_token" || r.PostForm.Get("access_token") != "entra-token-of-the-pod" || r.PostForm.Get("service") != r.Host {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"errors":[{"code":"UNAUTHORIZED","message":"you sent %s"}]}`, r.PostForm.Get("access_token"))
			return
		}
		fmt.Fprint(w, `{"refresh_token":"refresh-token-of-the-registry"}`)
	})
	repo, err := parseURL(cfg.Object.Spec.URL, true)
	if err != nil {
		t.Fatal(err)
	}
	from := &acrLogin{cfg: cfg, base: repo.base, noDiscovery: true, azure: azcore.ClientOptions{
		Cloud:     cloud.Configuration{ActiveDirectoryAuthorityHost: authority.URL + "/"},
		Transport: authority.Client(),
	}}
	for range 2 {
		p, err := withLogin(t, cfg, from)
		oneTag(t, p, err)
	}
	if exchanges != 1 {
		t.Errorf("%d exchanges, want 1", exchanges)
	}
	t.Run("refresh token is not taken any more", func(t *testing.T) {
		registry.AcceptRefreshToken("another")
		p, err := withLogin(t, cfg, from)
		if err == nil {
			_, err = p.Fetch(t.Context(), nil)
		}
		if provider.ReasonOf(err) != provider.Auth || exchanges != 2 || strings.Contains(err.Error(), "refresh-token") {
			t.Errorf("%d exchanges, got %v", exchanges, err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		registry.Handle("/oauth2/exchange", func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm()
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"message":"you sent %s"}`, r.PostForm.Get("access_token"))
		})
		from.expires = time.Time{}
		p, err := withLogin(t, cfg, from)
		if err == nil {
			_, err = p.Fetch(t.Context(), nil)
		}
		if provider.ReasonOf(err) != provider.Auth || strings.Contains(err.Error(), "entra-token") {
			t.Errorf("got %v", err)
		}
	})
}

func TestGAR(t *testing.T) {
	stranger(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		_ = r.ParseForm()
		w.Header().Set("Content-Type", "application/json")
		if r.PostForm.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || r.PostForm.Get("assertion") == "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_grant","error_description":"Invalid JWT Signature."}`)
			return
		}
		fmt.Fprintf(w, `{"access_token":%q,"expires_in":3600,"token_type":"Bearer"}`, testPassword)
	}))
	defer tokens.Close()
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "acme", "client_email": "renderer@acme.iam.gserviceaccount.com", "token_uri": tokens.URL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", write(t, string(account)))
	registry, cfg := podinfo(t)
	registry.SetTag(testRepo, "1.0.0", digestOf("1"))
	registry.RequireLogin(forgetest.Bearer, googleUser, testPassword)
	from := &garLogin{}
	for range 2 {
		p, err := withLogin(t, cfg, from)
		oneTag(t, p, err)
	}
	if asked != 1 {
		t.Errorf("%d tokens, want 1", asked)
	}
	t.Run("refused", func(t *testing.T) {
		tokens.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_grant","error_description":"Account has been deleted"}`)
		})
		p, err := withLogin(t, cfg, &garLogin{})
		if err == nil {
			_, err = p.Fetch(t.Context(), nil)
		}
		if provider.ReasonOf(err) != provider.Auth || !strings.Contains(err.Error(), "Google gives no access token") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no file", func(t *testing.T) {
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none"))
		p, err := withLogin(t, cfg, &garLogin{})
		if err == nil {
			_, err = p.Fetch(t.Context(), nil)
		}
		if provider.ReasonOf(err) != provider.Auth {
			t.Errorf("got %v", err)
		}
	})
}

// The rest of the contract with the login of a cloud: the types differ in it only.
func TestCloudContract(t *testing.T) {
	stranger(t)
	irsa(t)
	ecrAPI(t, time.Now().Add(12*time.Hour))
	for name, fault := range map[string]forgetest.Fault{
		"page": forgetest.Page(), "null": forgetest.JSON("null"), "401": forgetest.Status(401, "no"), "503": forgetest.Status(503, "no"),
	} {
		t.Run(name, func(t *testing.T) {
			registry, cfg := podinfo(t)
			registry.RequireLogin(forgetest.Basic, "AWS", testPassword)
			registry.Break(fault)
			var p providertest.Fetcher
			p, err := withLogin(t, cfg, &ecrLogin{cfg: cfg, region: "eu-west-1"})
			if err != nil {
				t.Fatal(err)
			}
			if result, err := p.Fetch(t.Context(), nil); err == nil || result.Inputs != nil {
				t.Errorf("got %v, %v", result.Inputs, err)
			}
		})
	}
}
