// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// namespace is what Git signs SSH signatures for.
const namespace = "git"

// A Signer signs commits with one key.
type Signer struct {
	// KeyID names the key as Git shows it: an OpenPGP fingerprint, or an SSH key's
	// SHA256 fingerprint.
	KeyID string
	sign  func(commit []byte) ([]byte, error)
	check func(signed, signature []byte) error
}

// Sign returns an armoured signature of a commit object.
func (s *Signer) Sign(_ context.Context, commit []byte) ([]byte, error) { return s.sign(commit) }

// A KeyError is a signing key that cannot be used. It never holds key material.
type KeyError struct {
	Key  string // of the secret: "git.asc", "identity"
	Msg  string
	Hint string
}

func (e *KeyError) Error() string { return fmt.Sprintf("signing key %s: %s", e.Key, e.Msg) }

// Suggestion is what to do about it.
func (e *KeyError) Suggestion() string { return e.Hint }

// NewSigner makes a signer of a secret's data, under Flux's keys: git.asc and
// passphrase for OpenPGP, identity and password for SSH. The committer's e-mail
// address has to be one of the OpenPGP key's, or forges would show the signature
// as somebody else's. now is the clock that decides whether a key has expired.
func NewSigner(data map[string][]byte, email string, now func() time.Time) (*Signer, error) {
	pgp, ssh := data["git.asc"], data["identity"]
	switch {
	case len(pgp) > 0 && len(ssh) > 0:
		return nil, &KeyError{Key: "git.asc", Msg: "the secret holds identity as well", Hint: "keep the key that is to sign, OpenPGP or SSH"}
	case len(pgp) > 0:
		return newOpenPGP(pgp, line(data["passphrase"]), email, now)
	case len(ssh) > 0:
		return newSSH(ssh, line(data["password"]))
	}
	return nil, &KeyError{Key: "git.asc", Msg: "the secret has neither git.asc nor identity", Hint: "put an armoured OpenPGP private key into git.asc, or an SSH private key into identity"}
}

// line is a value without the line break that files end in.
func line(value []byte) []byte { return bytes.TrimRight(value, "\r\n") }

func newOpenPGP(armored, passphrase []byte, email string, now func() time.Time) (*Signer, error) {
	fail := func(hint, format string, args ...any) (*Signer, error) {
		return nil, &KeyError{Key: "git.asc", Msg: fmt.Sprintf(format, args...), Hint: hint}
	}
	entities, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(armored))
	if err != nil {
		return fail("export it with: gpg --armor --export-secret-keys KEYID", "not an armoured OpenPGP key: %v", err)
	}
	if len(entities) != 1 {
		return fail("export one key only", "holds %d keys", len(entities))
	}
	entity := entities[0]
	if entity.PrivateKey == nil {
		return fail("export it with: gpg --armor --export-secret-keys KEYID", "holds no private key")
	}
	if err := unlock(entity, passphrase); err != nil {
		return fail("put the passphrase into the key passphrase of the same secret", "%v", err)
	}
	if !hasAddress(entity, email) {
		return fail("set target.commit.author.email to an address of the key, or add the address to the key",
			"is not of the committer %s", email)
	}
	if _, ok := entity.SigningKey(now()); !ok {
		return fail("extend its expiry date, or make a new key", "has expired, is revoked, or is not for signing")
	}
	sign := func(commit []byte) ([]byte, error) {
		if _, ok := entity.SigningKey(now()); !ok {
			return nil, &KeyError{Key: "git.asc", Msg: "has expired since the start", Hint: "extend its expiry date, or make a new key"}
		}
		var out bytes.Buffer
		config := &packet.Config{DefaultHash: crypto.SHA256, Time: now}
		if err := detachSign(&out, entity, commit, config); err != nil {
			return nil, err
		}
		return out.Bytes(), nil
	}
	own := &Keys{pgp: openpgp.EntityList{entity}}
	check := func(signed, signature []byte) error {
		_, err := own.verifyOpenPGP(signed, signature, now())
		return err
	}
	return &Signer{KeyID: fmt.Sprintf("%X", entity.PrimaryKey.Fingerprint), sign: sign, check: check}, nil
}

// detachSign is openpgp.ArmoredDetachSign without the line of its own headers.
func detachSign(out *bytes.Buffer, entity *openpgp.Entity, commit []byte, config *packet.Config) error {
	w, err := armor.Encode(out, openpgp.SignatureType, nil)
	if err != nil {
		return err
	}
	if err := openpgp.DetachSign(w, entity, bytes.NewReader(commit), config); err != nil {
		return errors.Join(err, w.Close())
	}
	return w.Close()
}

// unlock decrypts the private parts of a key.
func unlock(entity *openpgp.Entity, passphrase []byte) error {
	keys := []*packet.PrivateKey{entity.PrivateKey}
	for _, sub := range entity.Subkeys {
		if sub.PrivateKey != nil {
			keys = append(keys, sub.PrivateKey)
		}
	}
	for _, key := range keys {
		if key.Dummy() || !key.Encrypted {
			continue
		}
		if len(passphrase) == 0 {
			return errors.New("is locked, and there is no passphrase")
		}
		if err := key.Decrypt(passphrase); err != nil {
			return errors.New("the passphrase does not unlock it")
		}
	}
	return nil
}

func hasAddress(entity *openpgp.Entity, email string) bool {
	for _, id := range entity.Identities {
		if id.UserId != nil && strings.EqualFold(id.UserId.Email, email) {
			return true
		}
	}
	return false
}

func newSSH(private, passphrase []byte) (*Signer, error) {
	fail := func(hint, format string, args ...any) (*Signer, error) {
		return nil, &KeyError{Key: "identity", Msg: fmt.Sprintf(format, args...), Hint: hint}
	}
	key, err := ssh.ParsePrivateKey(private)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		if len(passphrase) == 0 {
			return fail("put the passphrase into the key password of the same secret", "is locked, and there is no passphrase")
		}
		if key, err = ssh.ParsePrivateKeyWithPassphrase(private, passphrase); err != nil {
			return fail("put the passphrase into the key password of the same secret", "the passphrase does not unlock it")
		}
	}
	if err != nil {
		return fail("make one with: ssh-keygen -t ed25519", "not an SSH private key")
	}
	if !slices.Contains([]string{ssh.KeyAlgoED25519, ssh.KeyAlgoRSA, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521}, key.PublicKey().Type()) {
		return fail("make one with: ssh-keygen -t ed25519", "keys of type %s do not sign commits", key.PublicKey().Type())
	}
	sign := func(commit []byte) ([]byte, error) {
		signature, err := sshsig.Sign(bytes.NewReader(commit), key, sshsig.HashSHA512, namespace)
		if err != nil {
			return nil, err
		}
		return sshsig.Armor(signature), nil
	}
	own := &Keys{}
	own.ssh = append(own.ssh, key.PublicKey())
	check := func(signed, signature []byte) error {
		_, err := own.verifySSH(signed, signature)
		return err
	}
	return &Signer{KeyID: ssh.FingerprintSHA256(key.PublicKey()), sign: sign, check: check}, nil
}

// Signed reports whether a commit object is signed with this very key.
func (s *Signer) Signed(commit []byte) bool {
	signed, signature := Split(commit)
	return len(signature) > 0 && s.check(signed, signature) == nil
}
