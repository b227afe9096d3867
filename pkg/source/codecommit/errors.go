// SPDX-License-Identifier: Apache-2.0

package codecommit

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// errorType returns what AWS calls an error, which it answers with status 400 mostly:
// "com.amazonaws.codecommit#RepositoryDoesNotExistException", or without the package,
// or in a header.
func errorType(header http.Header, body []byte) (name, message string) {
	var told struct {
		Type    string `json:"__type"`
		Message string `json:"message"` // or "Message": names match in any case
	}
	_ = json.Unmarshal(body, &told) // what is no JSON has no type
	name = told.Type
	if name == "" {
		name, _, _ = strings.Cut(header.Get("X-Amzn-Errortype"), ":")
	}
	if _, after, ok := cutLast(name, "#"); ok {
		name = after
	}
	return strings.TrimSuffix(name, "Exception"), told.Message
}

// explain says what an error of AWS means.
func explain(resp *http.Response, body []byte) *provider.Error {
	name, message := errorType(resp.Header, body)
	known := &provider.Error{Msg: strings.TrimSuffix(name+": "+message, ": ")}
	switch name {
	case "RepositoryDoesNotExist", "InvalidRepositoryName", "PullRequestDoesNotExist":
		known.Reason, known.Hint = provider.NotFound, "check account, region and name of the repository in spec.url"
	case "UnrecognizedClient", "InvalidSignature", "SignatureDoesNotMatch", "MissingAuthenticationToken", "IncompleteSignature", "InvalidClientTokenId":
		known.Reason, known.Hint = provider.Auth, "the access key is wrong, or was deleted: renew the secret of spec.secretRef, or check the identity of the environment; a clock that is wrong does it too"
	case "ExpiredToken", "RequestExpired":
		known.Reason, known.Hint = provider.Auth, "the credential has expired, or the clock is wrong"
	case "AccessDenied", "NotAuthorized", "OptInRequired":
		known.Reason, known.Hint = provider.Auth, "allow codecommit:ListPullRequests and codecommit:GetPullRequest on the repository (codecommit:GitPull for branches and tags)"
	case "Throttling", "ThrottlingError", "Throttled", "TooManyRequests", "RequestLimitExceeded", "SlowDown", "LimitExceeded":
		known.Reason = provider.RateLimited
	case "EncryptionIntegrityChecksFailed", "EncryptionKeyAccessDenied", "EncryptionKeyDisabled", "EncryptionKeyNotFound", "EncryptionKeyUnavailable":
		known.Reason, known.Hint = provider.Unavailable, "check the key that encrypts the repository, and who may use it"
	default:
		return nil
	}
	return known
}

func implausible(msg string) error {
	return &provider.Error{
		Reason: provider.Implausible, Msg: msg, Hint: "check that spec.url is a repository of CodeCommit; the last good list stands",
	}
}

// describe turns any error of the SDK into one of the provider package.
func describe(ctx context.Context, err error) error {
	var known *provider.Error
	switch {
	case errors.As(err, &known):
		return known
	case ctx.Err() != nil:
		return transport.Describe(ctx.Err())
	}
	// All that the transport lets through is an answer with status 200: what the SDK
	// makes nothing of is not the answer of CodeCommit.
	return implausible("the answer is not that of CodeCommit's API")
}
