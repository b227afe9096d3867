// SPDX-License-Identifier: Apache-2.0

package azuredevops

import (
	"context"
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"resourceset.example/renderer/pkg/source/provider"
)

// scope is Azure DevOps as Microsoft Entra knows it.
const scope = "499b84ac-1321-427f-aa17-267ca6975798/.default"

// ambient returns the identity that the environment names, or nil if it names none.
// It looks at the variables that Azure's own libraries read:
//
//	AZURE_FEDERATED_TOKEN_FILE            workload identity, as AKS sets it up
//	AZURE_CLIENT_SECRET, …_CERTIFICATE_PATH  a service principal
//	IDENTITY_ENDPOINT, MSI_ENDPOINT       managed identity, as App Service and others set it up
//	AZURE_CLIENT_ID alone                 the managed identity of that name
//	AZURE_TOKEN_CREDENTIALS               the name of one of these, WorkloadIdentityCredential,
//	                                      EnvironmentCredential or ManagedIdentityCredential
//
// Nothing is tried out: what was guessed would answer slowly, or with somebody else's
// identity, and no command line tool is run.
func ambient(options azcore.ClientOptions) (azcore.TokenCredential, error) {
	set := func(name string) bool { return os.Getenv(name) != "" }
	chosen := os.Getenv("AZURE_TOKEN_CREDENTIALS")
	kind := func(name string, otherwise bool) bool {
		return strings.EqualFold(chosen, name) || (!strings.HasSuffix(strings.ToLower(chosen), "credential") && otherwise)
	}
	switch {
	case kind("WorkloadIdentityCredential", set("AZURE_FEDERATED_TOKEN_FILE")):
		return checked(azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: options}))
	case kind("EnvironmentCredential", set("AZURE_CLIENT_SECRET") || set("AZURE_CLIENT_CERTIFICATE_PATH")):
		return checked(azidentity.NewEnvironmentCredential(&azidentity.EnvironmentCredentialOptions{ClientOptions: options}))
	case kind("ManagedIdentityCredential", set("IDENTITY_ENDPOINT") || set("MSI_ENDPOINT") || set("AZURE_CLIENT_ID")):
		managed := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}
		if set("AZURE_CLIENT_ID") {
			managed.ID = azidentity.ClientID(os.Getenv("AZURE_CLIENT_ID"))
		}
		return checked(azidentity.NewManagedIdentityCredential(managed))
	}
	return nil, nil
}

// checked describes why the environment's identity cannot be used. The library's own
// words name variables, and no values.
func checked[C azcore.TokenCredential](credential C, err error) (azcore.TokenCredential, error) {
	if err != nil {
		return nil, &provider.Error{
			Reason: provider.Misconfigured,
			Msg:    "identity of the environment",
			Hint:   "complete the AZURE_ variables, or set spec.secretRef",
			Err:    err,
		}
	}
	return credential, nil
}

// bearer returns what adds a token of an identity to a request. The library keeps
// the token until it is about to expire.
func bearer(credential azcore.TokenCredential) func(*http.Request) error {
	return func(req *http.Request) error {
		token, err := credential.GetToken(req.Context(), policy.TokenRequestOptions{Scopes: []string{scope}})
		if err != nil {
			return describeIdentity(req.Context(), err)
		}
		req.Header.Set("Authorization", "Bearer "+token.Token)
		return nil
	}
}

// entraCode is how Microsoft Entra names a fault.
var entraCode = regexp.MustCompile(`AADSTS\d+`)

// describeIdentity says why there is no token. The library's own words are pages
// long, with a new request number each time.
func describeIdentity(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	described := &provider.Error{
		Reason: provider.Auth,
		Msg:    "the environment's identity gets no token for Azure DevOps",
		Hint:   "check the AZURE_ variables and the federated credential of the identity",
	}
	var refused *azidentity.AuthenticationFailedError
	if errors.As(err, &refused) && refused.RawResponse == nil {
		described.Reason = provider.Unavailable
		described.Hint = "the identity service cannot be reached: check the network, and AZURE_AUTHORITY_HOST"
	}
	if code := entraCode.FindString(err.Error()); code != "" {
		described.Reason = provider.Auth
		described.Msg += ": " + code
	}
	return described
}
