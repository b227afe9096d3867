// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"crypto/tls"
	"crypto/x509"

	"resourceset.example/renderer/pkg/source/provider"
)

// tlsConfig reads the certificate secret: "ca.crt" adds to the system's
// authorities, "tls.crt" and "tls.key" are the client's own certificate.
func tlsConfig(secret provider.Secret) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if secret == nil {
		return config, nil
	}
	ca, crt, key := secret["ca.crt"], secret["tls.crt"], secret["tls.key"]
	if len(ca) == 0 && len(crt) == 0 && len(key) == 0 {
		return nil, certError("has none of the keys ca.crt, tls.crt and tls.key", nil)
	}
	if len(ca) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, certError("system certificate authorities", err)
		}
		if !pool.AppendCertsFromPEM(ca) {
			return nil, certError("ca.crt holds no certificate in PEM", nil)
		}
		config.RootCAs = pool
	}
	if len(crt) == 0 && len(key) == 0 {
		return config, nil
	}
	if len(crt) == 0 || len(key) == 0 {
		return nil, certError("needs both tls.crt and tls.key for a client certificate, and has one", nil)
	}
	pair, err := tls.X509KeyPair(crt, key)
	if err != nil {
		return nil, certError("tls.crt and tls.key", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

func certError(msg string, err error) error {
	return &provider.Error{
		Reason: provider.Misconfigured,
		Msg:    "certificate secret: " + msg,
		Hint:   "spec.certSecretRef names a Secret with ca.crt, or tls.crt and tls.key, or all three",
		Err:    err,
	}
}
