// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"strings"
)

// A Signature is whether a commit carries one, of which kind, and by which key it
// says to be made. It is not verified.
type Signature struct {
	State  string `json:"state"`            // "unsigned" or "signed"
	Format string `json:"format,omitempty"` // "openpgp", "ssh" or "x509"
	Key    string `json:"key,omitempty"`    // key ID or fingerprint; empty where it cannot be read
}

// States of a signature.
const (
	Unsigned = "unsigned"
	Signed   = "signed"
)

// signatureOf reads the armoured signature of a commit.
func signatureOf(armoured string) Signature {
	text := strings.TrimSpace(armoured)
	switch {
	case text == "":
		return Signature{State: Unsigned}
	case strings.HasPrefix(text, "-----BEGIN SSH SIGNATURE-----"):
		return Signature{State: Signed, Format: "ssh", Key: sshKey(text)}
	case strings.HasPrefix(text, "-----BEGIN SIGNED MESSAGE-----"):
		return Signature{State: Signed, Format: "x509"}
	case strings.HasPrefix(text, "-----BEGIN PGP"):
		return Signature{State: Signed, Format: "openpgp", Key: openPGPKey(text)}
	}
	return Signature{State: Signed}
}

// sshKey is the fingerprint of the public key inside an SSH signature (the form
// that ssh-keygen -l prints).
func sshKey(text string) string {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return ""
	}
	data, ok := strings.CutPrefix(string(block.Bytes), "SSHSIG")
	if !ok || len(data) < 8 {
		return ""
	}
	size := binary.BigEndian.Uint32([]byte(data[4:8]))
	if uint64(size) > uint64(len(data)-8) {
		return ""
	}
	sum := sha256.Sum256([]byte(data[8 : 8+size]))
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// openPGPKey is the issuer that the first packet of an OpenPGP signature names: a
// fingerprint (subpacket 33) or a key ID (16) of RFC 4880 and RFC 9580.
func openPGPKey(text string) string {
	data := openPGPBody(text)
	packet := openPGPPacket(data)
	if len(packet) < 6 || packet[0] < 4 {
		return ""
	}
	keyID := ""
	rest := packet[4:]
	for range 2 { // the hashed and the unhashed area
		if len(rest) < 2 {
			break
		}
		n := int(binary.BigEndian.Uint16(rest))
		rest = rest[2:]
		if n > len(rest) {
			break
		}
		for area := rest[:n]; len(area) > 0; {
			size, skip := subpacketLength(area)
			if size < 1 || skip+size > len(area) {
				break
			}
			sub := area[skip : skip+size]
			area = area[skip+size:]
			switch kind := sub[0] & 0x7f; {
			case kind == 33 && len(sub) > 2:
				return strings.ToUpper(hex.EncodeToString(sub[2:]))
			case kind == 16 && len(sub) == 9:
				keyID = strings.ToUpper(hex.EncodeToString(sub[1:]))
			}
		}
		rest = rest[n:]
	}
	return keyID
}

// openPGPBody decodes the base64 of an armoured text; armour headers and the
// checksum line are left out.
func openPGPBody(text string) []byte {
	_, body, ok := strings.Cut(strings.ReplaceAll(text, "\r", ""), "\n\n")
	if !ok {
		return nil
	}
	body, _, _ = strings.Cut(body, "\n-----END")
	var b strings.Builder
	for line := range strings.SplitSeq(body, "\n") {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "=") {
			b.WriteString(line)
		}
	}
	data, err := base64.StdEncoding.DecodeString(b.String())
	if err != nil {
		return nil
	}
	return data
}

// openPGPPacket is the body of the first packet, if that is a signature.
func openPGPPacket(data []byte) []byte {
	if len(data) < 2 || data[0]&0x80 == 0 {
		return nil
	}
	var size, skip int
	if data[0]&0x40 != 0 {
		if data[0]&0x3f != 2 {
			return nil
		}
		size, skip = subpacketLength(data[1:])
		skip++
	} else {
		if data[0]>>2&0xf != 2 {
			return nil
		}
		switch data[0] & 3 {
		case 0:
			size, skip = int(data[1]), 2
		case 1:
			if len(data) < 3 {
				return nil
			}
			size, skip = int(binary.BigEndian.Uint16(data[1:])), 3
		default:
			return nil
		}
	}
	if size < 0 || skip+size > len(data) {
		return nil
	}
	return data[skip : skip+size]
}

// subpacketLength is a length in the form of one, two or five octets, and how many.
func subpacketLength(data []byte) (size, octets int) {
	switch {
	case len(data) >= 1 && data[0] < 192:
		return int(data[0]), 1
	case len(data) >= 2 && data[0] < 255:
		return (int(data[0])-192)<<8 + int(data[1]) + 192, 2
	case len(data) >= 5 && data[0] == 255:
		return int(binary.BigEndian.Uint32(data[1:])), 5
	}
	return -1, 0
}
