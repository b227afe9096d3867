// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

var (
	// ErrUnsigned is a commit without a signature.
	ErrUnsigned = errors.New("is not signed")
	// ErrUnknownKey is a commit signed with a key that is not among those given.
	ErrUnknownKey = errors.New("is signed with a key that is not trusted")
	// ErrBadSignature is a signature that does not belong to the commit's bytes.
	ErrBadSignature = errors.New("has a bad signature")
)

// Keys are the public keys whose signatures count.
type Keys struct {
	pgp openpgp.EntityList
	ssh []ssh.PublicKey
}

// ParseKeys reads public keys from a secret's data: every key that ends in .asc or
// .pub with armoured OpenPGP keys (as Flux has them), or with SSH public keys, one a
// line; and allowed_signers as OpenSSH has it.
func ParseKeys(data map[string][]byte) (*Keys, error) {
	keys := &Keys{}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		text := data[name]
		switch {
		case bytes.Contains(text, []byte("-----BEGIN PGP PUBLIC KEY BLOCK-----")):
			entities, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(text))
			if err != nil {
				return nil, &KeyError{Key: name, Msg: fmt.Sprintf("not armoured OpenPGP public keys: %v", err), Hint: "export them with: gpg --armor --export KEYID"}
			}
			keys.pgp = append(keys.pgp, entities...)
		case name == "allowed_signers" || path.Ext(name) == ".pub":
			if err := keys.addSSH(name, text); err != nil {
				return nil, err
			}
		case path.Ext(name) == ".asc":
			return nil, &KeyError{Key: name, Msg: "holds no OpenPGP public key", Hint: "export it with: gpg --armor --export KEYID"}
		}
	}
	if len(keys.pgp)+len(keys.ssh) == 0 {
		return nil, &KeyError{Key: "allowed_signers", Msg: "the secret holds no public key", Hint: "put armoured OpenPGP public keys into NAME.asc, or SSH public keys into NAME.pub or allowed_signers"}
	}
	return keys, nil
}

// addSSH reads "TYPE KEY COMMENT" lines; in allowed_signers, principals and options
// come first. The principals are those that the user trusts with this list.
func (k *Keys) addSSH(name string, text []byte) error {
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil && name == "allowed_signers" {
			if _, rest, ok := strings.Cut(line, " "); ok {
				key, _, _, _, err = ssh.ParseAuthorizedKey([]byte(rest))
			}
		}
		if err != nil {
			return &KeyError{Key: name, Msg: fmt.Sprintf("line %d is not an SSH public key", i+1), Hint: "it has the form: ssh-ed25519 AAAA…"}
		}
		k.ssh = append(k.ssh, key)
	}
	return nil
}

// A Signature is what a check found.
type Signature struct {
	KeyID string // OpenPGP fingerprint or key ID, or SSH fingerprint; empty when unknown
	Who   string // of the OpenPGP key
}

// Verify checks a commit object, as Git stores it. A nil error means that it is
// signed with one of the keys. Errors are, or wrap, ErrUnsigned, ErrUnknownKey and
// ErrBadSignature.
func (k *Keys) Verify(commit []byte, now time.Time) (Signature, error) {
	signed, signature := Split(commit)
	switch {
	case len(signature) == 0:
		return Signature{}, ErrUnsigned
	case bytes.Contains(signature, []byte("BEGIN SSH SIGNATURE")):
		return k.verifySSH(signed, signature)
	}
	return k.verifyOpenPGP(signed, signature, now)
}

func (k *Keys) verifySSH(signed, armored []byte) (Signature, error) {
	signature, err := sshsig.Unarmor(armored)
	if err != nil {
		return Signature{}, fmt.Errorf("%w: %v", ErrBadSignature, err)
	}
	found := Signature{KeyID: ssh.FingerprintSHA256(signature.PublicKey)}
	if signature.Namespace != namespace {
		return found, fmt.Errorf("%w: it was made for %q", ErrBadSignature, signature.Namespace)
	}
	for _, key := range k.ssh {
		if !bytes.Equal(key.Marshal(), signature.PublicKey.Marshal()) {
			continue
		}
		if err := sshsig.Verify(bytes.NewReader(signed), signature, key, signature.HashAlgorithm, namespace); err != nil {
			return found, fmt.Errorf("%w: %v", ErrBadSignature, err)
		}
		return found, nil
	}
	return found, fmt.Errorf("%w: %s", ErrUnknownKey, found.KeyID)
}

func (k *Keys) verifyOpenPGP(signed, armored []byte, now time.Time) (Signature, error) {
	config := &packet.Config{DefaultHash: crypto.SHA256, Time: func() time.Time { return now }}
	id := issuer(armored)
	signer, err := openpgp.CheckArmoredDetachedSignature(k.pgp, bytes.NewReader(signed), bytes.NewReader(armored), config)
	found := Signature{KeyID: id}
	if signer != nil {
		found.KeyID = fmt.Sprintf("%X", signer.PrimaryKey.Fingerprint)
		for _, identity := range signer.Identities {
			found.Who = max(found.Who, identity.Name) // any one, the same each time
		}
	}
	switch {
	case err == nil:
		return found, nil
	case signer == nil && id != "" && !k.hasOpenPGP(id):
		return found, fmt.Errorf("%w: %s", ErrUnknownKey, id)
	}
	return found, fmt.Errorf("%w: %v", ErrBadSignature, err)
}

func (k *Keys) hasOpenPGP(id string) bool {
	for _, e := range k.pgp {
		if fmt.Sprintf("%016X", e.PrimaryKey.KeyId) == id {
			return true
		}
		for _, sub := range e.Subkeys {
			if fmt.Sprintf("%016X", sub.PublicKey.KeyId) == id {
				return true
			}
		}
	}
	return false
}

// issuer is the ID of the key that a signature says it was made with.
func issuer(armored []byte) string {
	block, err := armor.Decode(bytes.NewReader(armored))
	if err != nil {
		return ""
	}
	p, err := packet.Read(block.Body)
	if err != nil {
		return ""
	}
	if sig, ok := p.(*packet.Signature); ok && sig.IssuerKeyId != nil {
		return fmt.Sprintf("%016X", *sig.IssuerKeyId)
	}
	return ""
}

// Split takes the signature out of a commit object: what remains is what was signed.
func Split(commit []byte) (signed, signature []byte) {
	head, message, _ := bytes.Cut(commit, []byte("\n\n"))
	var kept [][]byte
	inSignature, found := false, false
	for line := range bytes.SplitSeq(head, []byte("\n")) {
		switch {
		case bytes.HasPrefix(line, []byte("gpgsig ")):
			inSignature, found = true, true
			signature = append(append(signature, line[len("gpgsig "):]...), '\n')
		case inSignature && bytes.HasPrefix(line, []byte(" ")):
			signature = append(append(signature, line[1:]...), '\n')
		default:
			inSignature = false
			kept = append(kept, line)
		}
	}
	if !found {
		return commit, nil
	}
	return append(append(bytes.Join(kept, []byte("\n")), "\n\n"...), message...), signature
}
