// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// A CA issues certificates for a test.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes a certificate authority.
func NewCA() (*CA, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "test authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	ca := &CA{}
	der, key, err := ca.sign(template)
	if err != nil {
		return nil, err
	}
	ca.key = key
	ca.cert, err = x509.ParseCertificate(der)
	return ca, err
}

// PEM is the authority's certificate, as "ca.crt" holds it.
func (ca *CA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
}

// Issue makes a certificate for a loopback server or a client, as "tls.crt" and
// "tls.key" hold them. A server behind a test's proxy has further host names.
func (ca *CA) Issue(name string, hosts ...string) (certPEM, keyPEM []byte, err error) {
	der, key, err := ca.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    append([]string{"localhost"}, hosts...),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}

// sign signs with the authority's key, or with the new key if there is none yet.
func (ca *CA) sign(template *x509.Certificate) ([]byte, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(24 * time.Hour)
	parent, signer := ca.cert, ca.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	return der, key, err
}

// ServerTLS is what a server of these host names shows; it asks for a client
// certificate of the same authority if clients is true.
func (ca *CA) ServerTLS(clients bool, hosts ...string) (*tls.Config, error) {
	cert, key, err := ca.Issue("server", hosts...)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if clients {
		config.ClientCAs = x509.NewCertPool()
		config.ClientCAs.AddCert(ca.cert)
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}
