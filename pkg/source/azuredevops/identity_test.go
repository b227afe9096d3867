// SPDX-License-Identifier: Apache-2.0

package azuredevops

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// An entra is Microsoft Entra, as far as tokens for workloads go: the library is the
// real one, and every request that it makes ends here.
type entra struct {
	*httptest.Server
	paths  []string
	forms  []url.Values
	refuse string // with this code
}

const entraToken = "eyJ0.t0k3n-of-entra"

func newEntra(t *testing.T) *entra {
	t.Helper()
	e := &entra{}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(e.Close)
	for _, name := range []string{
		"AZURE_FEDERATED_TOKEN_FILE", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID", "AZURE_CLIENT_CERTIFICATE_PATH",
		"IDENTITY_ENDPOINT", "IDENTITY_HEADER", "MSI_ENDPOINT", "AZURE_TOKEN_CREDENTIALS", "AZURE_AUTHORITY_HOST",
	} {
		t.Setenv(name, "")
		_ = os.Unsetenv(name)
	}
	return e
}

func (e *entra) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	e.paths, e.forms = append(e.paths, r.URL.Path), append(e.forms, form)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	reply := func(status int, value any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(value)
	}
	const authority = "https://login.microsoftonline.com/tenant-1"
	switch {
	case strings.HasSuffix(r.URL.Path, "/discovery/instance"):
		reply(http.StatusOK, map[string]any{
			"tenant_discovery_endpoint": authority + "/v2.0/.well-known/openid-configuration",
			"metadata":                  []any{map[string]any{"preferred_network": "login.microsoftonline.com", "preferred_cache": "login.windows.net", "aliases": []string{"login.microsoftonline.com"}}},
		})
	case strings.HasSuffix(r.URL.Path, "/openid-configuration"):
		reply(http.StatusOK, map[string]any{
			"token_endpoint": authority + "/oauth2/v2.0/token", "authorization_endpoint": authority + "/oauth2/v2.0/authorize", "issuer": authority + "/v2.0",
		})
	case e.refuse != "":
		reply(http.StatusBadRequest, map[string]any{"error": "invalid_client", "error_description": e.refuse + ": No matching federated identity record found. Trace ID: 0", "error_codes": []int{700213}})
	case strings.HasSuffix(r.URL.Path, "/token") || strings.HasSuffix(r.URL.Path, "/msi"):
		reply(http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": 3599, "expires_on": "32503680000", "access_token": entraToken, "resource": "x"})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// Do is how the library's requests get here.
func (e *entra) Do(req *http.Request) (*http.Response, error) {
	moved := req.Clone(req.Context())
	moved.URL.Scheme, moved.URL.Host, moved.Host = "http", e.Listener.Addr().String(), ""
	return http.DefaultTransport.RoundTrip(moved)
}

func (e *entra) identity(t *testing.T) azcore.TokenCredential {
	t.Helper()
	credential, err := ambient(azcore.ClientOptions{Transport: e})
	if err != nil {
		t.Fatal(err)
	}
	return credential
}

func assertion(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("assertion-of-the-cluster"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestWorkloadIdentity(t *testing.T) {
	e := newEntra(t)
	t.Setenv("AZURE_FEDERATED_TOKEN_FILE", assertion(t))
	t.Setenv("AZURE_CLIENT_ID", "client-1")
	t.Setenv("AZURE_TENANT_ID", "tenant-1")
	authorize := bearer(e.identity(t))
	for range 2 {
		req := httptest.NewRequest(http.MethodGet, "https://dev.azure.com/acme/", nil)
		if err := authorize(req); err != nil {
			t.Fatal(err)
		}
		if got := req.Header.Get("Authorization"); got != "Bearer "+entraToken {
			t.Errorf("sent %q", got)
		}
	}
	tokens := 0
	for i, path := range e.paths {
		if !strings.HasSuffix(path, "/token") {
			continue
		}
		tokens++
		form := e.forms[i]
		if form.Get("client_assertion") != "assertion-of-the-cluster" || form.Get("client_id") != "client-1" || !strings.Contains(form.Get("scope"), scope) {
			t.Errorf("asked with %v", form)
		}
	}
	if tokens != 1 {
		t.Errorf("%d tokens for two requests", tokens)
	}
}

func TestServicePrincipalAndManagedIdentity(t *testing.T) {
	t.Run("secret", func(t *testing.T) {
		e := newEntra(t)
		t.Setenv("AZURE_CLIENT_ID", "client-1")
		t.Setenv("AZURE_TENANT_ID", "tenant-1")
		t.Setenv("AZURE_CLIENT_SECRET", "s3cr3t")
		if err := bearer(e.identity(t))(httptest.NewRequest(http.MethodGet, "/", nil)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("managed", func(t *testing.T) {
		e := newEntra(t)
		t.Setenv("IDENTITY_ENDPOINT", e.URL+"/msi")
		t.Setenv("IDENTITY_HEADER", "header")
		if err := bearer(e.identity(t))(httptest.NewRequest(http.MethodGet, "/", nil)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("none", func(t *testing.T) {
		if credential := newEntra(t).identity(t); credential != nil {
			t.Errorf("got %T", credential)
		}
	})
	t.Run("incomplete", func(t *testing.T) {
		newEntra(t)
		t.Setenv("AZURE_FEDERATED_TOKEN_FILE", "/nowhere")
		if _, err := ambient(azcore.ClientOptions{}); provider.ReasonOf(err) != provider.Misconfigured {
			t.Errorf("got %v", err)
		}
	})
	t.Run("named", func(t *testing.T) {
		newEntra(t)
		t.Setenv("AZURE_FEDERATED_TOKEN_FILE", "/nowhere")
		t.Setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
		if credential, err := ambient(azcore.ClientOptions{}); err != nil || credential == nil {
			t.Errorf("got %v, %v", credential, err)
		}
	})
}

// What Entra says is cut to its code, and nothing secret is in it.
func TestRule08_IdentityErrors(t *testing.T) {
	e := newEntra(t)
	e.refuse = "AADSTS700213"
	t.Setenv("AZURE_FEDERATED_TOKEN_FILE", assertion(t))
	t.Setenv("AZURE_CLIENT_ID", "client-1")
	t.Setenv("AZURE_TENANT_ID", "tenant-1")
	err := bearer(e.identity(t))(httptest.NewRequest(http.MethodGet, "/", nil))
	if provider.ReasonOf(err) != provider.Auth || !strings.HasSuffix(err.Error(), ": AADSTS700213") || strings.Contains(err.Error(), "assertion") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err := bearer(e.identity(t))(req); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Rule 8: the token of our own identity goes to Azure DevOps Services, and not to
// whoever a definition names.
func TestRule08_IdentityIsForServicesOnly(t *testing.T) {
	newEntra(t)
	t.Setenv("AZURE_FEDERATED_TOKEN_FILE", assertion(t))
	t.Setenv("AZURE_CLIENT_ID", "client-1")
	t.Setenv("AZURE_TENANT_ID", "tenant-1")
	for raw, want := range map[string]bool{
		"https://dev.azure.com/acme/p/_git/web":                 true,
		"https://acme@dev.azure.com/acme/p/_git/web":            true,
		"https://acme.visualstudio.com/p/_git/web":              true,
		"http://dev.azure.com/acme/p/_git/web":                  false,
		"https://dev.azure.com:8443/acme/p/_git/web":            false,
		"https://dev.azure.com.evil.example/a/p/_git/web":       false,
		"https://evil.example/dev.azure.com/p/_git/web":         false,
		"https://visualstudio.com/acme/p/_git/web":              false,
		"https://acme.visualstudio.com.evil.example/p/_git/web": false,
	} {
		repo, err := parseURL(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		var options transport.Options
		if err := authorize(nil, repo, &options); err != nil {
			t.Fatal(err)
		}
		if got := options.Authorize != nil; got != want {
			t.Errorf("%s: gets the token %t", raw, got)
		}
	}
}
