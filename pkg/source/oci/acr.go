// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/google/go-containerregistry/pkg/authn"

	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// azureRegistry are the registries of all of Azure's clouds.
var azureRegistry = regexp.MustCompile(`^[a-z0-9]+(?:-[a-z0-9-]+)?\.azurecr\.(io|cn|us|de)$`)

const (
	// azureAudience is what a token of Microsoft Entra is for that a registry takes.
	azureAudience = "https://containerregistry.azure.net/.default"
	// azureLifetime is less than a registry's refresh token lives, which is three hours.
	azureLifetime = time.Hour
)

// NewACRTags returns the provider of a definition of type ACRArtifactTag.
func NewACRTags(cfg provider.Config) (*Tags, error) {
	repo, err := cloudRepository(cfg)
	if err != nil {
		return nil, err
	}
	host := repo.base.Hostname()
	match := azureRegistry.FindStringSubmatch(host)
	if match == nil {
		return nil, wrongHost(host, "ACR", "NAME.azurecr.io")
	}
	return newTags(cfg, repo, &acrLogin{cfg: cfg, base: repo.base, azure: azcore.ClientOptions{Cloud: azureCloud(match[1])}})
}

func azureCloud(suffix string) cloud.Configuration {
	switch suffix {
	case "cn":
		return cloud.AzureChina
	case "us":
		return cloud.AzureGovernment
	}
	return cloud.Configuration{} // the public one, or that of AZURE_AUTHORITY_HOST
}

// An acrLogin exchanges the Entra identity of this process for a refresh token of
// the registry.
type acrLogin struct {
	cfg   provider.Config
	base  *url.URL
	azure azcore.ClientOptions
	// noDiscovery is for authorities that the SDK does not know.
	noDiscovery bool

	mu      sync.Mutex
	entra   azcore.TokenCredential
	config  authn.AuthConfig
	expires time.Time
}

func (l *acrLogin) advice() string {
	return "the Entra identity of this process (workload identity, managed identity or AZURE_… variables) needs the role AcrPull " +
		"(or Container Registry Repository Reader) on the registry"
}

func (l *acrLogin) credential(ctx context.Context, rejected bool) (authn.AuthConfig, time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !rejected && time.Now().Before(l.expires) {
		return l.config, l.expires, nil
	}
	token, err := l.entraToken(ctx)
	if err != nil {
		return authn.AuthConfig{}, time.Time{}, err
	}
	refresh, err := l.exchange(ctx, token)
	if err != nil {
		return authn.AuthConfig{}, time.Time{}, err
	}
	l.config, l.expires = authn.AuthConfig{IdentityToken: refresh}, time.Now().Add(azureLifetime)
	return l.config, l.expires, nil
}

func (l *acrLogin) entraToken(ctx context.Context) (string, error) {
	if l.entra == nil {
		var err error
		if l.entra, err = l.identity(); err != nil {
			return "", l.describe(err)
		}
	}
	token, err := l.entra.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{azureAudience}})
	if err != nil {
		return "", l.describe(err)
	}
	return token.Token, nil
}

// identity is the chain that a service needs. The SDK's default one also runs the
// programs that a developer may be signed in with.
func (l *acrLogin) identity() (azcore.TokenCredential, error) {
	var chain []azcore.TokenCredential
	if c, err := azidentity.NewEnvironmentCredential(&azidentity.EnvironmentCredentialOptions{
		ClientOptions: l.azure, DisableInstanceDiscovery: l.noDiscovery}); err == nil {
		chain = append(chain, c)
	}
	if c, err := azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
		ClientOptions: l.azure, DisableInstanceDiscovery: l.noDiscovery}); err == nil {
		chain = append(chain, c)
	}
	managed, err := azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{ClientOptions: l.azure})
	if err != nil {
		return nil, err
	}
	return azidentity.NewChainedTokenCredential(append(chain, managed), nil)
}

func (l *acrLogin) describe(err error) error {
	return cloudError("Microsoft Entra gives no token for the registry", l.advice(), err)
}

// exchange gets the registry's refresh token for one of Entra. What the registry
// says is not repeated: it was sent a credential.
func (l *acrLogin) exchange(ctx context.Context, entra string) (string, error) {
	cfg := l.cfg
	client, err := transport.NewClient(cfg, transport.Options{
		Base: l.base, Identity: cfg.Object.Spec.Type, MaxBody: maxToken,
		Authorize: func(*http.Request) error { return nil }, // the body is the credential: no redirects
	})
	if err != nil {
		return "", err
	}
	defer client.CloseIdleConnections()
	form := url.Values{"grant_type": {"access_token"}, "service": {l.base.Host}, "access_token": {entra}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.base.String()+"oauth2/exchange", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		return "", l.refused(err)
	}
	body, err := transport.ReadBody(resp)
	if err != nil {
		return "", l.refused(err)
	}
	return decodeRefreshToken(body)
}

func (l *acrLogin) refused(err error) error {
	described := *transport.Fault(err)
	if described.Status != 0 {
		described.Msg = fmt.Sprintf("token exchange with %s answered %d", l.base.Host, described.Status)
	}
	switch described.Status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		described.Reason, described.Hint = provider.Auth, l.advice()
	}
	return &described
}

// oneWord is what any token is made of.
var oneWord = regexp.MustCompile(`^[!-~]+$`)

func decodeRefreshToken(body []byte) (string, error) {
	var answer struct {
		RefreshToken string `json:"refresh_token"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || !oneWord.MatchString(answer.RefreshToken) {
		return "", &provider.Error{
			Reason: provider.Implausible, Msg: "the registry's token exchange gave no token",
			Hint: "check that spec.url is a registry of ACR; the last good list stands",
		}
	}
	return answer.RefreshToken, nil
}
