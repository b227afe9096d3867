// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

const defaultSSHUser = "git"

// checkAuth refuses credentials that cannot work with the URL, before anything is dialled.
func checkAuth(remote endpoint, auth Auth) error {
	auth = auth.trimmed()
	switch {
	case remote.scheme == schemeSSH:
		if _, err := sshConfig(remote, auth, nil); err != nil {
			return err
		}
	case remote.isHTTP():
		if _, err := tlsConfig(auth); err != nil {
			return fmt.Errorf("%s: %w", remote.display, err)
		}
		if auth.BearerToken != "" && (auth.Password != "" || auth.Username != "") {
			return &AuthError{URL: remote.display, Reason: "both a bearer token and a user name or password are given",
				Hint: "give one of them"}
		}
	}
	return nil
}

// sshConfig holds the key to show and the host keys to accept. A host that known_hosts
// does not name is refused: there is nobody who could answer the question that ssh asks.
func sshConfig(remote endpoint, auth Auth, refused *error) (*ssh.ClientConfig, error) {
	if len(bytes.TrimSpace(auth.Identity)) == 0 {
		return nil, &AuthError{URL: remote.display, Reason: "no private key for ssh",
			Hint: "give the key as identity and the server's host keys as known_hosts"}
	}
	if len(bytes.TrimSpace(auth.KnownHosts)) == 0 {
		return nil, &AuthError{URL: remote.display, Reason: "no known_hosts for ssh",
			Hint: "run `ssh-keyscan " + remote.host + "`, compare the keys with those the server's owner publishes, and store them as known_hosts"}
	}
	signer, err := parseIdentity(auth)
	if err != nil {
		return nil, &AuthError{URL: remote.display, Reason: "private key: " + err.Error(),
			Hint: "identity must be a private key in PEM or OpenSSH format; its passphrase is given apart"}
	}
	hosts, err := parseKnownHosts(auth.KnownHosts)
	if err != nil {
		return nil, &AuthError{URL: remote.display, Reason: "known_hosts: " + err.Error()}
	}
	user := remote.user
	if user == "" {
		user = defaultSSHUser
	}
	address := remote.address("22")
	return &ssh.ClientConfig{
		User:              user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyAlgorithms: hosts.HostKeyAlgorithms(address),
		HostKeyCallback: func(host string, addr net.Addr, key ssh.PublicKey) error {
			err := hosts.HostKeyCallback()(host, addr, key)
			if err != nil {
				err = hostKeyError(remote, key, err)
				if refused != nil {
					*refused = err
				}
			}
			return err
		},
	}, nil
}

func parseIdentity(auth Auth) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(auth.Identity)
	var missing *ssh.PassphraseMissingError
	if !errors.As(err, &missing) {
		return signer, err
	}
	if auth.Passphrase == "" {
		return nil, errors.New("it is encrypted and no passphrase is given")
	}
	if signer, err = ssh.ParsePrivateKeyWithPassphrase(auth.Identity, []byte(auth.Passphrase)); err != nil {
		return nil, errors.New("it is encrypted and the passphrase does not open it")
	}
	return signer, nil
}

// parseKnownHosts goes through a file because the library reads nothing else.
func parseKnownHosts(data []byte) (*knownhosts.HostKeyDB, error) {
	f, err := os.CreateTemp("", "known_hosts-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	db, err := knownhosts.NewDB(f.Name())
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), f.Name(), "line"))
	}
	return db, nil
}

func hostKeyError(remote endpoint, key ssh.PublicKey, err error) error {
	shown := key.Type() + " " + ssh.FingerprintSHA256(key)
	if knownhosts.IsHostUnknown(err) {
		return &AuthError{URL: remote.display, Reason: "known_hosts does not name this server, which shows " + shown,
			Hint: "if that is the fingerprint that the server's owner publishes, add the key to known_hosts"}
	}
	if knownhosts.IsHostKeyChanged(err) {
		return &AuthError{URL: remote.display, Reason: "the server's host key is not the one in known_hosts: it shows " + shown,
			Hint: "somebody may be listening in; compare with the fingerprint that the server's owner publishes before changing known_hosts"}
	}
	return &AuthError{URL: remote.display, Reason: "host key refused: " + err.Error()}
}

// dialSSH starts the service on the server. The connection is cut when the context ends,
// so no server can hold it by being silent, in whatever phase.
func dialSSH(c *conversation, auth Auth, service string) (line, error) {
	var refused error
	config, err := sshConfig(c.remote, auth, &refused)
	if err != nil {
		return nil, err
	}
	address := c.remote.address("22")
	conn, err := (&net.Dialer{Timeout: c.dog.limit, KeepAlive: 30 * time.Second}).DialContext(c.ctx, "tcp", address)
	if err != nil {
		return nil, c.unreachable(err)
	}
	cut := context.AfterFunc(c.ctx, func() { conn.Close() })
	hangUp := func() {
		cut()
		conn.Close()
	}
	handshake, channels, requests, err := ssh.NewClientConn(watchedConn{conn, c.dog}, address, config)
	if err != nil {
		hangUp()
		return nil, c.sshError(err, refused)
	}
	client := ssh.NewClient(handshake, channels, requests)
	s, err := startSSH(c, client, service)
	if err != nil {
		client.Close()
		hangUp()
		return nil, c.sshError(err, nil)
	}
	end := s.end
	s.end = func() { end(); client.Close(); hangUp() }
	return s, nil
}

func startSSH(c *conversation, client *ssh.Client, service string) (*stdio, error) {
	session, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	stderr := &tail{}
	session.Stderr = stderr
	in, err := session.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := session.Start(service + " " + quoteShell(c.remote.path)); err != nil {
		return nil, err
	}
	end := func() {
		if service == serviceReceivePack {
			_, _ = io.Copy(io.Discard, out) // let its hooks finish
		}
		session.Close()
	}
	return &stdio{c: c, in: in, out: out, errors: stderr, end: end}, nil
}

// sshError prefers the host key check's own words to those of the library around them.
func (c *conversation) sshError(err, refused error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		return fmt.Errorf("%s: %w", c.remote.display, cause)
	}
	if refused != nil {
		return refused
	}
	if strings.Contains(err.Error(), "unable to authenticate") {
		return &AuthError{URL: c.remote.display, Reason: "the server does not accept this key",
			Hint: "add the public key to the account or repository, with permission to write where we push"}
	}
	return &ServerError{URL: c.remote.display, Text: c.hide.text(err.Error())}
}

// unreachable is a server that no connection could be made to.
func (c *conversation) unreachable(err error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		return fmt.Errorf("%s: %w", c.remote.display, cause)
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("%s: %w", c.remote.display, ErrTimeout)
	}
	return &ServerError{URL: c.remote.display, Text: c.hide.text(err.Error())}
}

// quoteShell makes a word for the POSIX shell that runs the command at the other end.
func quoteShell(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(s) + "'"
}

// watchedConn tells the watchdog of what arrives during the handshake as well.
type watchedConn struct {
	net.Conn
	dog *watchdog
}

func (w watchedConn) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.dog.alive()
	}
	return n, err
}
