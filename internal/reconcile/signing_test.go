// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/internal/secrets"
)

// sign makes the world's commits signed, and returns the public key.
func (w *world) sign() (public string) {
	w.t.Helper()
	signer, private := gittest.NewKey(w.t, "")
	w.secret("apps", "signing", "identity", string(private))
	w.cfg.Target.Commit.Signing.Secret = config.SecretRef{Namespace: "apps", Name: "signing"}
	return string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

func TestCommitsAreSigned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	public := w.sign()
	w.ok()
	w.secret("keys", "files", "allowed_signers", "renderer@localhost "+public)
	cmd := exec.Command("git", "-C", w.repo.Dir, "-c", "gpg.format=ssh", "-c",
		"gpg.ssh.allowedSignersFile="+filepath.Join(w.secrets, "keys/files/allowed_signers"), "verify-commit", "main")
	cmd.Env = gittest.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("git verify-commit: %v\n%s", err, out)
	}
}

// FR-37: without its key the program does not start; it never goes on unsigned.
func TestNoUnsignedFallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sign()
	w.secret("apps", "signing", "identity", "not a key")
	_, err := New(context.Background(), Options{Config: w.cfg, Secrets: secrets.NewStore(w.secrets), Redactor: w.redactor})
	if err == nil || !strings.Contains(err.Error(), "target.commit.signing") {
		t.Errorf("started: %v", err)
	}
}

// An unverified source commit is refused, and what is committed stands. A person's
// unsigned commit must not become trusted by a commit of ours on top of it.
func TestUnverifiedSourceIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	w := newWorld(t)
	w.sign()
	developer, private := gittest.NewKey(t, "")
	w.secret("dev", "key", "identity", string(private))
	key := filepath.Join(w.secrets, "dev/key/identity")
	w.secret("apps", "trusted", "dev.pub", string(ssh.MarshalAuthorizedKey(developer.PublicKey())))
	w.cfg.Source.Verify.Secret = config.SecretRef{Namespace: "apps", Name: "trusted"}

	w.problem(w.unchanged(w.once), "is not signed")

	signed := func(message string, files map[string]string) {
		clone := w.repo.Clone("main")
		clone.Write(files)
		clone.Git("add", ".")
		clone.Git("-c", "gpg.format=ssh", "-c", "user.signingkey="+key, "commit", "--quiet", "--allow-empty", "-S", "-m", message)
		clone.Git("push", "--quiet", "origin", "HEAD:main")
	}
	signed("I have looked at this", nil)
	w.ok()
	w.has("red", "blue")
	w.unchanged(w.ok) // the head is our own commit now

	// A release is signed, so it is no end to everything.
	signed("Pin red", map[string]string{redFile: strings.Replace(w.repo.Read("main", redFile), `"1.0"`, `"0.9"`, 1)})
	w.problem(w.unchanged(w.once), "tenants-red is held")
	if _, err := w.r.Release(context.Background(), "apps/app", nil, "olga"); err != nil {
		t.Fatal(err)
	}
	w.tenants("red=2.0", "blue")
	w.ok()
	w.contains(redFile, "2.0")

	// Unsigned definitions, while the inputs change as well: nothing moves.
	w.define(map[string]string{"evil.yaml": inlineSet("evil")})
	w.tenants("red", "blue", "green")
	for range 2 {
		w.problem(w.unchanged(w.once), "is not signed")
		// A release of ours on top would make them trusted.
		if _, err := w.r.Release(context.Background(), "apps/app", nil, "olga"); err == nil || !strings.Contains(err.Error(), "is not signed") {
			t.Errorf("released on an unverified commit: %v", err)
		}
		w.restart()
	}
	// Signed with a key that nobody knows.
	stranger, private := gittest.NewKey(t, "")
	_ = stranger
	w.secret("dev", "key", "identity", string(private))
	signed("trust me", nil)
	w.problem(w.unchanged(w.once), "not trusted")
}
