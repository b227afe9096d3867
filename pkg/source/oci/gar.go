// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"regexp"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"resourceset.example/renderer/pkg/source/provider"
)

// googleRegistry are Artifact Registry and the names of Container Registry, which
// it answers to as well.
var googleRegistry = regexp.MustCompile(`^(?:[a-z0-9-]+\.pkg\.dev|(?:[a-z0-9-]+\.)?gcr\.io)$`)

const (
	googleUser  = "oauth2accesstoken"
	googleScope = "https://www.googleapis.com/auth/cloud-platform"
)

// NewGARTags returns the provider of a definition of type GARArtifactTag.
func NewGARTags(cfg provider.Config) (*Tags, error) {
	repo, err := cloudRepository(cfg)
	if err != nil {
		return nil, err
	}
	if host := repo.base.Hostname(); !googleRegistry.MatchString(host) {
		return nil, wrongHost(host, "Artifact Registry", "LOCATION-docker.pkg.dev")
	}
	return newTags(cfg, repo, &garLogin{})
}

// A garLogin takes the Google identity of this process as it is.
type garLogin struct {
	mu    sync.Mutex
	token *oauth2.Token
}

func (l *garLogin) advice() string {
	return "the Google identity of this process (workload identity federation, metadata server or GOOGLE_APPLICATION_CREDENTIALS) " +
		"needs the role roles/artifactregistry.reader on the repository"
}

func (l *garLogin) credential(ctx context.Context, rejected bool) (authn.AuthConfig, time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rejected || !l.token.Valid() || !l.token.Expiry.IsZero() && !time.Now().Before(early(l.token.Expiry)) {
		// The token's source keeps the context that it was made with, so it lives no
		// longer than this call.
		found, err := google.FindDefaultCredentials(ctx, googleScope)
		if err != nil {
			return authn.AuthConfig{}, time.Time{}, l.describe(err)
		}
		if l.token, err = found.TokenSource.Token(); err != nil {
			return authn.AuthConfig{}, time.Time{}, l.describe(err)
		}
	}
	return authn.AuthConfig{Username: googleUser, Password: l.token.AccessToken}, l.token.Expiry, nil
}

func (l *garLogin) describe(err error) error {
	return cloudError("Google gives no access token", l.advice(), err)
}
