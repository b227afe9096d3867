// SPDX-License-Identifier: Apache-2.0

package gittest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSH is a running SSH server, and what a client needs to use it.
type SSH struct {
	URL        string // ssh://git@127.0.0.1:port, to be followed by the repository's path
	Address    string // 127.0.0.1:port
	Identity   []byte // a private key that the server accepts, in OpenSSH format
	KnownHosts []byte // the server's host key
}

// SSHServer serves every repository that this process may read, by absolute path, on
// loopback. It accepts one key, made for it, and runs git's own programs.
func SSHServer(t testing.TB) SSH {
	t.Helper()
	hostKey, _ := NewKey(t, "")
	clientKey, identity := NewKey(t, "")
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if !bytes.Equal(key.Marshal(), clientKey.PublicKey().Marshal()) {
				return nil, errors.New("unknown key")
			}
			return nil, nil
		},
	}
	config.AddHostKey(hostKey)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &sshServer{t: t, config: config}
	go server.serve(listener)
	t.Cleanup(func() {
		listener.Close()
		server.hangUp()
	})
	address := listener.Addr().String()
	return SSH{
		URL: "ssh://git@" + address, Address: address, Identity: identity,
		KnownHosts: []byte(knownhosts.Line([]string{address}, hostKey.PublicKey()) + "\n"),
	}
}

// NewKey makes an Ed25519 key, as a signer and in OpenSSH format. With a passphrase the
// latter is encrypted.
func NewKey(t testing.TB, passphrase string) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Signer(t, private), MarshalKey(t, private, passphrase)
}

// Signer is a private key that signs.
func Signer(t testing.TB, private ed25519.PrivateKey) ssh.Signer {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// MarshalKey writes a private key in OpenSSH format, encrypted if there is a passphrase.
func MarshalKey(t testing.TB, private any, passphrase string) []byte {
	t.Helper()
	var block *pem.Block
	var err error
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "test")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "test", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block)
}

type sshServer struct {
	t      testing.TB
	config *ssh.ServerConfig

	mu    sync.Mutex
	conns []net.Conn
}

func (s *sshServer) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // closed: the test is over
		}
		s.mu.Lock()
		s.conns = append(s.conns, conn)
		s.mu.Unlock()
		go s.handle(conn)
	}
}

func (s *sshServer) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		conn.Close()
	}
}

func (s *sshServer) handle(conn net.Conn) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return // a client that we do not let in, or that does not trust us
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go s.session(channel, requests)
	}
}

func (s *sshServer) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for request := range requests {
		if request.Type != "exec" {
			_ = request.Reply(false, nil)
			continue
		}
		var payload struct{ Command string }
		if err := ssh.Unmarshal(request.Payload, &payload); err != nil {
			_ = request.Reply(false, nil)
			return
		}
		_ = request.Reply(true, nil)
		status := runService(channel, payload.Command)
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		return
	}
}

// runService runs what git's own shell for such accounts would run, and nothing else.
func runService(channel ssh.Channel, command string) uint32 {
	name, quoted, _ := strings.Cut(command, " ")
	path := strings.NewReplacer(`'\''`, "'", `'\!'`, "!", "'", "").Replace(quoted)
	if (name != "git-upload-pack" && name != "git-receive-pack") || !filepath.IsAbs(path) {
		_, _ = io.WriteString(channel.Stderr(), "permission denied: "+command+"\n")
		return 128
	}
	cmd := exec.Command("git", strings.TrimPrefix(name, "git-"), path)
	cmd.Env = Env()
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 1
	}
	if err := cmd.Start(); err != nil {
		return 1
	}
	go func() {
		_, _ = io.Copy(stdin, channel)
		stdin.Close()
	}()
	if err := cmd.Wait(); err != nil {
		return 128
	}
	return 0
}
