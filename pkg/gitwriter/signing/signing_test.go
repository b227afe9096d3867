// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/pkg/gitwriter"
)

const email = "renderer@example.com"

// tool skips where a program that is not part of every machine is missing.
func tool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed", name)
	}
}

// gpgHome is a GnuPG home with a short path, as its socket needs one.
func gpgHome(t *testing.T) string {
	t.Helper()
	tool(t, "gpg")
	home, err := os.MkdirTemp("", "gpg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run()
		os.RemoveAll(home)
	})
	return home
}

func gpg(t *testing.T, home string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("gpg", append([]string{"--homedir", home, "--batch", "--yes", "--pinentry-mode", "loopback"}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("gpg %v: %v\n%s", args, err, exit.Stderr)
		}
		t.Fatal(err)
	}
	return out
}

// commit makes a signed commit in a new repository and returns the repository.
func commit(t *testing.T, signer *Signer) *gittest.Repo {
	t.Helper()
	repo := gittest.NewRepo(t)
	mirror, err := gitwriter.Open(gitwriter.Config{URL: repo.URL(), Branch: "main", Directory: t.TempDir(), Signer: signer})
	if err != nil {
		t.Fatal(err)
	}
	defer mirror.Close()
	_, err = mirror.Update(context.Background(), func(context.Context, *gitwriter.Snapshot) ([]gitwriter.Commit, error) {
		return []gitwriter.Commit{{
			Message: "apps/app: add ünïcødé\n\nTrigger: once\n",
			Author:  gitwriter.Signature{Name: "renderer", Email: email},
			Write:   map[string][]byte{"a.yaml": []byte("a: 1\n")},
		}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

func raw(t *testing.T, repo *gittest.Repo) []byte {
	t.Helper()
	out, err := exec.Command("git", "-C", repo.Dir, "cat-file", "commit", "main").Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Real GnuPG makes the key, and real git verifies what was signed with it.
func TestOpenPGPWithGit(t *testing.T) {
	t.Parallel()
	home := gpgHome(t)
	const passphrase = "correct horse"
	gpg(t, home, "--passphrase", passphrase, "--quick-gen-key", "Renderer <"+email+">", "ed25519", "sign", "1d")
	private := gpg(t, home, "--passphrase", passphrase, "--armor", "--export-secret-keys", email)
	public := gpg(t, home, "--armor", "--export", email)

	signer, err := NewSigner(map[string][]byte{"git.asc": private, "passphrase": []byte(passphrase + "\n")}, email, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	repo := commit(t, signer)
	cmd := exec.Command("git", "-C", repo.Dir, "verify-commit", "main")
	cmd.Env = append(gittest.Env(), "GNUPGHOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "Good signature") {
		t.Errorf("git verify-commit: %v\n%s", err, out)
	}

	keys, err := ParseKeys(map[string][]byte{"team.asc": public})
	if err != nil {
		t.Fatal(err)
	}
	text := raw(t, repo)
	if found, err := keys.Verify(text, time.Now()); err != nil || found.KeyID != signer.KeyID || !strings.Contains(found.Who, email) {
		t.Errorf("Verify: %+v, %v", found, err)
	}
	if _, err := keys.Verify([]byte(strings.Replace(string(text), "Trigger: once", "Trigger: twice", 1)), time.Now()); !errors.Is(err, ErrBadSignature) {
		t.Errorf("a changed commit: %v", err)
	}

	// What must not start.
	for name, test := range map[string]struct {
		data  map[string][]byte
		email string
		now   func() time.Time
		want  string
	}{
		"wrong passphrase": {map[string][]byte{"git.asc": private, "passphrase": []byte("wrong")}, email, time.Now, "does not unlock"},
		"no passphrase":    {map[string][]byte{"git.asc": private}, email, time.Now, "no passphrase"},
		"other committer":  {map[string][]byte{"git.asc": private, "passphrase": []byte(passphrase)}, "x@example.com", time.Now, "not of the committer"},
		"expired":          {map[string][]byte{"git.asc": private, "passphrase": []byte(passphrase)}, email, func() time.Time { return time.Now().AddDate(1, 0, 0) }, "expired"},
		"public key only":  {map[string][]byte{"git.asc": public}, email, time.Now, "no private key"},
		"not a key":        {map[string][]byte{"git.asc": []byte("hello")}, email, time.Now, "not an armoured"},
		"nothing":          {nil, email, time.Now, "neither"},
	} {
		_, err := NewSigner(test.data, test.email, test.now)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), passphrase) {
			t.Errorf("%s: %v", name, err)
		}
	}

	// Somebody else's key does not count.
	other := gpgHome(t)
	gpg(t, other, "--passphrase", "", "--quick-gen-key", "Other <other@example.com>", "ed25519", "sign", "1d")
	keys, err = ParseKeys(map[string][]byte{"other.asc": gpg(t, other, "--armor", "--export")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Verify(text, time.Now()); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("an unknown key: %v", err)
	}
}

// Real ssh-keygen makes the key, and real git verifies what was signed with it.
func TestSSHWithGit(t *testing.T) {
	t.Parallel()
	tool(t, "ssh-keygen")
	for kind, bits := range map[string]string{"ed25519": "256", "rsa": "2048", "ecdsa": "256"} {
		dir := t.TempDir()
		file := filepath.Join(dir, "key")
		const passphrase = "battery staple"
		if out, err := exec.Command("ssh-keygen", "-q", "-t", kind, "-b", bits, "-N", passphrase, "-C", email, "-f", file).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v\n%s", err, out)
		}
		private, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		public, err := os.ReadFile(file + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		signer, err := NewSigner(map[string][]byte{"identity": private, "password": []byte(passphrase)}, email, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		repo := commit(t, signer)
		allowed := filepath.Join(dir, "allowed_signers")
		signers := []byte(email + " " + string(public))
		if err := os.WriteFile(allowed, signers, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("git", "-C", repo.Dir, "-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", "main")
		cmd.Env = gittest.Env()
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), `Good "git" signature`) {
			t.Errorf("%s: git verify-commit: %v\n%s", kind, err, out)
		}
		for name, data := range map[string][]byte{"allowed_signers": signers, "bot.pub": public} {
			keys, err := ParseKeys(map[string][]byte{name: data})
			if err != nil {
				t.Fatal(err)
			}
			text := raw(t, repo)
			if found, err := keys.Verify(text, time.Now()); err != nil || found.KeyID != signer.KeyID {
				t.Errorf("%s with %s: %+v, %v", kind, name, found, err)
			}
			if _, err := keys.Verify([]byte(strings.Replace(string(text), "once", "twice", 1)), time.Now()); !errors.Is(err, ErrBadSignature) {
				t.Errorf("%s: a changed commit: %v", kind, err)
			}
		}
		if _, err := NewSigner(map[string][]byte{"identity": private, "password": []byte("x")}, email, time.Now); err == nil {
			t.Error("a wrong passphrase unlocked the key")
		}
	}
}

// Commits that git itself signed are accepted, and unsigned ones refused.
func TestVerifyWhatGitSigned(t *testing.T) {
	t.Parallel()
	tool(t, "ssh-keygen")
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	public, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ParseKeys(map[string][]byte{"dev.pub": public})
	if err != nil {
		t.Fatal(err)
	}
	repo := gittest.NewRepo(t)
	clone := repo.Clone("main")
	clone.Write(map[string]string{"a": "1"})
	clone.CommitAndPush("unsigned")
	if _, err := keys.Verify(raw(t, repo), time.Now()); !errors.Is(err, ErrUnsigned) {
		t.Errorf("unsigned: %v", err)
	}
	clone.Git("-c", "gpg.format=ssh", "-c", "user.signingkey="+file, "commit", "--quiet", "--allow-empty", "-S", "-m", "signed")
	clone.Git("push", "--quiet", "origin", "HEAD:main")
	if _, err := keys.Verify(raw(t, repo), time.Now()); err != nil {
		t.Errorf("signed by git: %v", err)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add([]byte("tree 1\ngpgsig -----BEGIN SSH SIGNATURE-----\n x\n\nmessage"))
	f.Add([]byte("tree 1\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n aaaa\n -----END PGP SIGNATURE-----\n\nm"))
	f.Add([]byte("\n\n"))
	keys := &Keys{}
	f.Fuzz(func(t *testing.T, commit []byte) {
		if _, err := keys.Verify(commit, time.Unix(0, 0)); err == nil {
			t.Errorf("no key at all, and accepted: %q", commit)
		}
	})
}
