// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"resourceset.example/renderer/pkg/source/provider"
	"resourceset.example/renderer/pkg/source/transport"
)

// cloudRepository reads the URL of a registry that takes a cloud's identity.
func cloudRepository(cfg provider.Config) (*repository, error) {
	if name := cfg.Object.Spec.ServiceAccountName; name != "" {
		return nil, misconfigured("spec.serviceAccountName is not used: tokens of a ServiceAccount are made by the cluster, which is not asked",
			fmt.Sprintf("take it out, and give the identity of %s to the ServiceAccount that this service runs as", name))
	}
	return parseURL(cfg.Object.Spec.URL, false)
}

// wrongHost keeps a cloud's tokens with the cloud's own hosts.
func wrongHost(host, cloud, form string) error {
	return misconfigured(fmt.Sprintf("%s is not a registry of %s, and gets no token of that cloud", host, cloud),
		fmt.Sprintf("a registry of %s is called %s; for any other one there is the type OCIArtifactTag", cloud, form))
}

// cloudError describes why a cloud gave no credential.
func cloudError(msg, advice string, err error) error {
	described := &provider.Error{Reason: provider.Auth, Msg: msg, Hint: advice}
	var known *provider.Error
	var network *net.OpError
	if errors.As(err, &known) { // from a transport of ours
		described.Msg += ": " + known.Error()
		described.Status, described.Until = known.Status, known.Until
		if refused := known.Status >= 400 && known.Status < 500; !refused || known.Reason == provider.RateLimited {
			described.Reason, described.Hint = known.Reason, known.Hint
		}
		return described
	}
	described.Err = firstLine(err)
	reason := provider.ReasonOf(transport.Describe(err))
	if reason == provider.Canceled || reason == provider.Timeout || errors.As(err, &network) {
		described.Reason = reason
	}
	return described
}

// longestLine is how much of an SDK's error is repeated: some print whole answers.
const longestLine = 300

func firstLine(err error) error {
	text, _, more := strings.Cut(err.Error(), "\n")
	if !more && len(text) <= longestLine {
		return err
	}
	return errors.New(strings.ToValidUTF8(text[:min(len(text), longestLine)], ""))
}

// early is a little before a time: what expires is not handed out shortly before.
func early(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(-2 * time.Minute)
}

// signedRequests sends the requests of an SDK that signs each itself. The signature
// goes to the host that it was made for.
type signedRequests struct{ cfg provider.Config }

func (s signedRequests) Do(req *http.Request) (*http.Response, error) {
	cfg, header := s.cfg, req.Header.Get("Authorization")
	cfg.CertSecret = nil
	client, err := transport.NewClient(cfg, transport.Options{
		Base: req.URL, Identity: cfg.Object.Spec.Type, MaxBody: maxToken,
		Authorize: func(req *http.Request) error {
			req.Header.Set("Authorization", header)
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	return client.Do(req)
}
