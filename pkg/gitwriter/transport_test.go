// SPDX-License-Identifier: Apache-2.0

package gitwriter_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/pkg/gitwriter"
)

// transports are the ways to one repository.
func transports(t *testing.T, repo *gittest.Repo) map[string]gitwriter.Config {
	server := gittest.SSHServer(t)
	sshAuth := gitwriter.Auth{Identity: server.Identity, KnownHosts: server.KnownHosts}
	return map[string]gitwriter.Config{
		"file":     {URL: repo.URL()},
		"http":     {URL: repo.HTTP("", "")},
		"password": {URL: repo.HTTP("bot", "s3cr@t"), Auth: gitwriter.Auth{Username: "bot", Password: "s3cr@t\n"}},
		"ssh":      {URL: server.URL + repo.Dir, Auth: sshAuth},
	}
}

// On every transport: create the branch, follow somebody else, update, refuse nothing,
// and read everything back.
func TestEveryTransport(t *testing.T) {
	t.Parallel()
	for name := range transports(t, gittest.NewRepo(t)) {
		t.Run(name, func(t *testing.T) {
			repo := gittest.NewRepo(t)
			m := open(t, transports(t, repo)[name])
			first, err := m.Update(t.Context(), commits(write("first", map[string]string{"gen/a.yaml": "a: 1\n"})))
			if err != nil {
				t.Fatal(err)
			}
			theirs := repo.Commit("main", "theirs", map[string]string{"README.md": "hello\n"})
			second, err := m.Update(t.Context(), commits(write("second", map[string]string{"gen/a.yaml": "a: 2\n"})))
			if err != nil {
				t.Fatal(err)
			}
			if first.New.IsZero() || second.Old.String() != theirs || second.New.String() != repo.Head("main") {
				t.Errorf("first %+v, theirs %s, second %+v, head %s", first, theirs, second, repo.Head("main"))
			}
			snapshot, err := m.Fetch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range map[string]string{"README.md": "hello\n", "gen/a.yaml": "a: 2\n"} {
				if got, err := snapshot.ReadFile(path); err != nil || string(got) != want {
					t.Errorf("%s: %q, %v", path, got, err)
				}
			}
		})
	}
}

func TestHTTPStatusBecomesTypedError(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	password := repo.HTTP("bot", "right")
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/signin"):
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>Sign in</html>"))
		case strings.HasPrefix(r.URL.Path, "/forbidden"):
			http.Error(w, "not you, bot:wrong-password", http.StatusForbidden)
		default:
			http.Error(w, "<html>", http.StatusBadGateway)
		}
	}))
	t.Cleanup(page.Close)
	wrong := gitwriter.Auth{Username: "bot", Password: "wrong-password"}
	var denied *gitwriter.AuthError
	var missing *gitwriter.NotFoundError
	var broken *gitwriter.ServerError
	for _, test := range []struct {
		url    string
		target any
		want   string
	}{
		{password, &denied, "status 401: who are you?"},
		{page.URL + "/forbidden", &denied, "status 403: not you, bot:***"},
		{repo.HTTP("", "") + "x", &missing, "not found"},
		{"file:///does/not/exist", &missing, "not found"},
		{page.URL + "/signin", &broken, `the answer is "text/html" and not Git's`},
		{page.URL + "/down", &broken, "status 502"},
		{"http://127.0.0.1:1/x.git", &broken, "refused"},
	} {
		m := open(t, gitwriter.Config{URL: test.url, Auth: wrong})
		_, err := m.Fetch(t.Context())
		if !errors.As(err, test.target) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %T %v", test.url, err, err)
		}
	}
}

// FR-86: credentials with a line break, or inside the URL, appear in no error.
func TestFR86ErrorsHoldNoCredentials(t *testing.T) {
	t.Parallel()
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		http.Error(w, "no "+password+" "+url.QueryEscape(password)+" "+r.Header.Get("Authorization"), http.StatusForbidden)
	}))
	t.Cleanup(echo.Close)
	host := strings.TrimPrefix(echo.URL, "http://")
	for name, cfg := range map[string]gitwriter.Config{
		"host down":     {URL: "https://bot:s3cr%40t-in-url@127.0.0.1:1/x.git"},
		"echoed":        {URL: "http://bot:s3cr%40t-in-url@" + host + "/x.git"},
		"echoed token":  {URL: echo.URL + "/x.git", Auth: gitwriter.Auth{BearerToken: "s3cr@t-token\r\n"}},
		"echoed secret": {URL: echo.URL + "/x.git", Auth: gitwriter.Auth{Username: "bot", Password: "s3cr@t-word\n"}},
	} {
		_, err := open(t, cfg).Fetch(t.Context())
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		for _, form := range []string{"s3cr", "czNjckB0", "Ym90OnMzY3JAdA"} {
			if strings.Contains(err.Error(), form) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	bad := "https://bot:s3cr%zzt@host/x.git"
	if err := gitwriter.CheckURL(bad); err == nil || strings.Contains(err.Error(), "s3cr") {
		t.Errorf("%v", err)
	}
}

// FR-81: a redirect to another host is not followed, so nothing of ours gets there.
func TestFR81RedirectToAnotherHostIsRefused(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(evil.Close)
	// The same machine under another name is another host.
	target := strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target+r.URL.RequestURI(), http.StatusFound)
	}))
	t.Cleanup(server.Close)
	m := open(t, gitwriter.Config{URL: server.URL + "/x.git", Auth: gitwriter.Auth{Username: "bot", Password: "secret"}})
	_, err := m.Fetch(t.Context())
	if err == nil || !strings.Contains(err.Error(), "redirect refused: to another host") {
		t.Errorf("%v", err)
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests reached the other host", n)
	}
}

func TestRedirectOnOneHostIsFollowed(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	backend := gittest.HTTPHandler(t, filepath.Dir(repo.Dir), "bot", "secret")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/old/") {
			http.Redirect(w, r, strings.Replace(r.URL.RequestURI(), "/old/", "/", 1), http.StatusMovedPermanently)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	m := open(t, gitwriter.Config{URL: server.URL + "/old/repo.git", Auth: gitwriter.Auth{Username: "bot", Password: "secret"}})
	if _, err := m.Update(t.Context(), commits(write("x", map[string]string{"a": "1"}))); err != nil {
		t.Error(err)
	}
}

// FR-92: a server that accepts and never answers is given up.
func TestFR92SilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	address := gittest.SilentListener(t)
	key := gittest.SSHServer(t)
	for name, cfg := range map[string]gitwriter.Config{
		"http":  {URL: "http://" + address + "/x.git"},
		"https": {URL: "https://" + address + "/x.git"},
		"ssh":   {URL: "ssh://git@" + address + "/x.git", Auth: gitwriter.Auth{Identity: key.Identity, KnownHosts: key.KnownHosts}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg.Timeout = 150 * time.Millisecond
			start := time.Now()
			_, err := open(t, cfg).Fetch(t.Context())
			if !errors.Is(err, gitwriter.ErrTimeout) {
				t.Errorf("%v", err)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("given up after %s", took)
			}
		})
	}
}

// FR-92, push: the list is served, the push is not answered.
func TestFR92SilentPushIsGivenUp(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{"a": "1"})
	backend := gittest.HTTPHandler(t, filepath.Dir(repo.Dir), "", "")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "receive-pack") {
			_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that we hung up
			<-r.Context().Done()
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	m := open(t, gitwriter.Config{URL: server.URL + "/repo.git", Timeout: 500 * time.Millisecond})
	_, err := m.Update(t.Context(), commits(write("x", map[string]string{"b": "1"})))
	if !errors.Is(err, gitwriter.ErrTimeout) {
		t.Errorf("%v", err)
	}
}

func TestSSHHostKeys(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	repo.Commit("main", "base", map[string]string{"a": "1"})
	server, other := gittest.SSHServer(t), gittest.SSHServer(t)
	changed := strings.Replace(string(other.KnownHosts), other.Address[len("127.0.0.1:"):], server.Address[len("127.0.0.1:"):], 1)
	private, encrypted := gittest.NewKey(t, "open sesame")
	_ = private
	for _, test := range []struct {
		name string
		auth gitwriter.Auth
		want string
	}{
		{"unknown", gitwriter.Auth{Identity: server.Identity, KnownHosts: other.KnownHosts}, "known_hosts does not name this server"},
		{"changed", gitwriter.Auth{Identity: server.Identity, KnownHosts: []byte(changed)}, "host key is not the one in known_hosts"},
		{"other key", gitwriter.Auth{Identity: other.Identity, KnownHosts: server.KnownHosts}, "does not accept this key"},
		{"passphrase", gitwriter.Auth{Identity: encrypted, Passphrase: "open sesame\n", KnownHosts: server.KnownHosts}, "does not accept this key"},
	} {
		m := open(t, gitwriter.Config{URL: server.URL + repo.Dir, Auth: test.auth})
		_, err := m.Fetch(t.Context())
		var denied *gitwriter.AuthError
		if !errors.As(err, &denied) || !strings.Contains(err.Error(), test.want) || denied.Suggestion() == "" {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	for _, test := range []struct {
		name string
		auth gitwriter.Auth
		want string
	}{
		{"no known_hosts", gitwriter.Auth{Identity: server.Identity}, "no known_hosts"},
		{"no key", gitwriter.Auth{KnownHosts: server.KnownHosts}, "no private key"},
		{"no passphrase", gitwriter.Auth{Identity: encrypted, KnownHosts: server.KnownHosts}, "no passphrase is given"},
		{"wrong passphrase", gitwriter.Auth{Identity: encrypted, Passphrase: "x", KnownHosts: server.KnownHosts}, "does not open it"},
		{"not a key", gitwriter.Auth{Identity: []byte("hello"), KnownHosts: server.KnownHosts}, "private key"},
	} {
		_, err := gitwriter.Open(gitwriter.Config{URL: server.URL + repo.Dir, Directory: t.TempDir(), Auth: test.auth})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestSSHMissingRepository(t *testing.T) {
	t.Parallel()
	server := gittest.SSHServer(t)
	m := open(t, gitwriter.Config{URL: server.URL + "/does/not/exist.git",
		Auth: gitwriter.Auth{Identity: server.Identity, KnownHosts: server.KnownHosts}})
	_, err := m.Fetch(t.Context())
	var missing *gitwriter.NotFoundError
	if !errors.As(err, &missing) {
		t.Errorf("%T %v", err, err)
	}
}

func TestTLSWithOwnCertificates(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t)
	server := httptest.NewUnstartedServer(gittest.HTTPHandler(t, filepath.Dir(repo.Dir), "", ""))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	auth := gitwriter.Auth{CAFile: ca, ClientCert: ca, ClientKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})}
	target := server.URL + "/repo.git"
	m := open(t, gitwriter.Config{URL: target, Auth: auth})
	if _, err := m.Update(t.Context(), commits(write("x", map[string]string{"a": "1"}))); err != nil {
		t.Error(err)
	}
	for name, auth := range map[string]gitwriter.Auth{"no CA": {}, "no client certificate": {CAFile: ca}} {
		if _, err := open(t, gitwriter.Config{URL: target, Auth: auth}).Fetch(t.Context()); err == nil || errors.Is(err, gitwriter.ErrTimeout) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := gitwriter.Open(gitwriter.Config{URL: target, Directory: t.TempDir(), Auth: gitwriter.Auth{CAFile: []byte("x")}}); err == nil {
		t.Error("a CA file without certificates was taken")
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"https://git.example.com/org/fleet.git", "http://h:8080/x", "ssh://git@h:2222/x.git", "ssh://h/~me/x.git",
		"git@github.com:org/x.git", "h:x", "file:///srv/git/x.git", " https://h/x ",
	} {
		if err := gitwriter.CheckURL(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "x", "/srv/x", "https:///x", "https://h", "file://host/x", "git://h/x", "ssh://-oProxyCommand=x/y",
		"-h:x", "h:-x", "ftp://h/x", "https://h/x\ny", "file://"} {
		if err := gitwriter.CheckURL(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
