// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/pkg/expand"
)

// Signatures made by the real programs name the key that those show.
func TestSignature(t *testing.T) {
	t.Parallel()
	t.Run("ssh", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		key := filepath.Join(dir, "key")
		output(t, dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
		want := strings.Fields(output(t, dir, "ssh-keygen", "-l", "-f", key+".pub"))[1]
		if err := os.WriteFile(filepath.Join(dir, "text"), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		output(t, dir, "ssh-keygen", "-Y", "sign", "-n", "git", "-f", key, "text")
		armoured, err := os.ReadFile(filepath.Join(dir, "text.sig"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Signature{State: Signed, Format: "ssh", Key: want}, signatureOf(string(armoured))); diff != "" {
			t.Errorf("signature (-want +got):\n%s", diff)
		}
	})
	t.Run("openpgp", func(t *testing.T) {
		t.Parallel()
		if _, err := exec.LookPath("gpg"); err != nil {
			t.Skip("no gpg here")
		}
		dir := t.TempDir()
		gpg := func(args ...string) string {
			return output(t, dir, "gpg", append([]string{"--homedir", dir, "--batch", "--quiet", "--passphrase", ""}, args...)...)
		}
		gpg("--quick-generate-key", "a@example.com", "ed25519", "sign", "never")
		var want string
		for line := range strings.SplitSeq(gpg("--list-keys", "--with-colons"), "\n") {
			if fields := strings.Split(line, ":"); fields[0] == "fpr" {
				want = fields[9]
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "text"), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		gpg("--armor", "--detach-sign", "text")
		armoured, err := os.ReadFile(filepath.Join(dir, "text.asc"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Signature{State: Signed, Format: "openpgp", Key: want}, signatureOf(string(armoured))); diff != "" {
			t.Errorf("signature (-want +got):\n%s", diff)
		}
	})
	if diff := cmp.Diff(Signature{State: Unsigned}, signatureOf("")); diff != "" {
		t.Errorf("none (-want +got):\n%s", diff)
	}
}

func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, gittest.Env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func TestClaim(t *testing.T) {
	message := "update 2\n\nResourceSet: a/b in the text is no trailer\n\nResourceSet: apps/one\nSource-Revision: main@sha1:" + strings.Repeat("a", 40) +
		"\nInputs-Digest: sha256:1\nInput-Added: x\nInput-Added: +7 more\nResourceSet: apps/two\nInput-Removed: y\nTrigger: webhook\n"
	got := claimOf(message)
	want := &claim{revision: "main@sha1:" + strings.Repeat("a", 40), trigger: "webhook", sets: []setClaim{
		{resourceSet: "apps/one", digest: "sha256:1", added: inputList{names: []string{"x"}, cut: true}},
		{resourceSet: "apps/two", removed: inputList{names: []string{"y"}}},
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(claim{}, setClaim{}, inputList{})); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
	for _, other := range []string{"", "text", "text\n\nResourceSet: apps/one\n", "text\n\nResourceSet: a/b\nSource-Revision: x\nand text"} {
		if c := claimOf(other); c != nil {
			t.Errorf("%q: %+v", other, c)
		}
	}
}

func TestIsResourceSet(t *testing.T) {
	for name, want := range map[string]bool{
		"apps/one": true, "": false, "apps": false, "/one": false, "apps/": false, "../one": false, "apps/..": false,
		"a/b/c": false, "./one": false, "apps//one": false,
	} {
		if got := isResourceSet(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}

// Law: what is left out of two locks is what they share; both stay readable, and
// the sets that differ are all there.
func FuzzWithoutCommon(f *testing.F) {
	lock := benchLock(1)
	text := string(lock.Encode())
	lock.Sets[3].Inputs["sha"] = "other"
	f.Add(text, string(lock.Encode()))
	f.Add(text, text)
	f.Add(text, strings.ReplaceAll(text, "\n", "\r\n"))
	f.Add("\nsets:\n  - a", "\nsets:\n  - \n\n")
	f.Fuzz(func(t *testing.T, a, b string) {
		one, two := withoutCommon(a, b)
		before, err1 := expand.ReadLock([]byte(a))
		after, err2 := expand.ReadLock([]byte(b))
		if err1 != nil || err2 != nil {
			return
		}
		less1, err1 := expand.ReadLock([]byte(one))
		less2, err2 := expand.ReadLock([]byte(two))
		if err1 != nil || err2 != nil {
			t.Fatalf("not readable any more: %v, %v", err1, err2)
		}
		want := setEvents(Event{}, "f", before, after)
		if diff := cmp.Diff(want, setEvents(Event{}, "f", less1, less2)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func FuzzSignatureOf(f *testing.F) {
	f.Add("-----BEGIN PGP SIGNATURE-----\n\nwsBzBAABCgAdFiEE\n=abcd\n-----END PGP SIGNATURE-----")
	f.Add("-----BEGIN SSH SIGNATURE-----\nU1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTk=\n-----END SSH SIGNATURE-----")
	f.Fuzz(func(t *testing.T, text string) {
		if s := signatureOf(text); (s.State == Unsigned) != (strings.TrimSpace(text) == "") {
			t.Errorf("%q is %+v", text, s)
		}
	})
}

func FuzzDecodeTree(f *testing.F) {
	f.Add([]byte("100644 a\x00aaaaaaaaaaaaaaaaaaaa40000 b\x00bbbbbbbbbbbbbbbbbbbb"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := decodeTree(data)
		var again []byte
		for _, e := range entries {
			again = append(again, e.mode+" "+e.name+"\x00"+string(e.hash[:])...)
		}
		if err == nil && string(again) != string(data) {
			t.Errorf("%q became %q", data, again)
		}
	})
}
