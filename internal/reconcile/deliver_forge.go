// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/forge"
	"resourceset.example/renderer/internal/forge/gitea"
	"resourceset.example/renderer/internal/forge/github"
	"resourceset.example/renderer/internal/forge/gitlab"
	appkey "resourceset.example/renderer/pkg/source/github"
)

// A forgeClient is what delivery asks of a forge. Each kind is a package of its own
// under internal/forge.
type forgeClient interface {
	// Find returns the open request from a branch to the target branch; if there is
	// none, the newest closed one; if there never was one, nil.
	Find(ctx context.Context, branch string) (*forge.Request, error)
	Create(ctx context.Context, branch string, content forge.Content) (*forge.Request, error)
	// Update changes what differs, and adds the labels that are missing.
	Update(ctx context.Context, r *forge.Request, content forge.Content) error
	// Close comments, and then closes with a last text in one step.
	Close(ctx context.Context, r *forge.Request, body, comment string) error
	Commit(ctx context.Context, hash string) (*forge.Commit, error)
}

// newForge makes the client of a kind of forge.
func newForge(kind string, cfg forge.Config) (forgeClient, error) {
	switch kind {
	case config.ForgeGitHub:
		return github.New(cfg)
	case config.ForgeGitLab:
		return gitlab.New(cfg)
	case config.ForgeGitea:
		return gitea.New(cfg)
	}
	return nil, fmt.Errorf("%q is no forge that is known", kind) // config has checked it
}

// forgeClient is the client with the token as it is now: a rotated one counts at once.
func (r *Reconciler) forgeClient(ctx context.Context) (forgeClient, error) {
	d, ref := r.delivery, r.forgeSecret()
	data, err := r.secrets.Get(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	r.redactor.Add(ref.String(), data)
	token := apiToken(data)
	if appkey.IsApp(data) {
		auth, err := d.credentials.Get(ctx, false)
		if err != nil {
			return nil, err
		}
		token = auth.Password
	}
	made := secretDigest(data) + token
	if d.client != nil && d.made == made {
		return d.client, nil
	}
	client, err := newForge(r.cfg.Target.PullRequest.Forge, forge.Config{
		BaseURL: r.cfg.Target.PullRequest.BaseURL, Repository: r.cfg.TargetRepository(), Base: r.cfg.Target.Branch,
		Token: token, TLS: certificates(data), UserAgent: r.userAgent, Limits: r.limits,
	})
	if err != nil {
		return nil, err
	}
	d.client, d.made = client, made
	return client, nil
}

// forgeSecret names the secret with the forge's API token.
func (r *Reconciler) forgeSecret() config.SecretRef {
	if ref := r.cfg.Target.PullRequest.Secret; !ref.IsZero() {
		return ref
	}
	return r.cfg.Target.Auth.Secret
}

// apiToken is the token in a secret. Where there is an SSH key, password is what
// opens the key, and must go nowhere.
func apiToken(data map[string][]byte) string {
	keys := []string{"token", "bearerToken", "password"}
	if len(data["identity"]) > 0 {
		keys = keys[:2]
	}
	token := ""
	for _, key := range keys {
		token = cmp.Or(token, strings.TrimRight(string(data[key]), "\r\n"))
	}
	return token
}

// certificates are the keys of a secret that TLS is made from; nil without any.
func certificates(data map[string][]byte) map[string][]byte {
	var found map[string][]byte
	for _, key := range []string{"ca.crt", "tls.crt", "tls.key"} {
		if len(data[key]) > 0 {
			if found == nil {
				found = map[string][]byte{}
			}
			found[key] = data[key]
		}
	}
	return found
}
