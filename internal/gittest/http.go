// SPDX-License-Identifier: Apache-2.0

package gittest

import (
	"crypto/subtle"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// HTTPServer serves the repositories below a folder over smart HTTP on loopback and
// returns the URL of the folder. With a user it asks for basic authentication.
func HTTPServer(t testing.TB, root, user, password string) string {
	t.Helper()
	server := httptest.NewServer(HTTPHandler(t, root, user, password))
	t.Cleanup(server.Close)
	return server.URL
}

// HTTPHandler is the server of HTTPServer, for tests that put something before it.
func HTTPHandler(t testing.TB, root, user, password string) http.Handler {
	t.Helper()
	backend := &cgi.Handler{
		Path: filepath.Join(Run(t, root, "--exec-path"), "git-http-backend"),
		Dir:  root,
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1",
			"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull},
		Stderr: logWriter{t},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user != "" && !authorized(r, user, password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, endless(r))
	})
}

// endless takes the length from a request, so that the end of its body is the end of
// what the backend gets. A backend that knows the length reads on for ever, with all of
// a processor, when the client is killed before it has sent that much (git 2.39).
func endless(r *http.Request) *http.Request {
	if r.ContentLength <= 0 {
		return r
	}
	r = r.Clone(r.Context())
	r.ContentLength = -1
	return r
}

func authorized(r *http.Request, user, password string) bool {
	u, p, _ := r.BasicAuth()
	return u == user && subtle.ConstantTimeCompare([]byte(p), []byte(password)) == 1
}

// HTTP serves the repository alone and returns its URL.
func (r *Repo) HTTP(user, password string) string {
	r.t.Helper()
	return HTTPServer(r.t, filepath.Dir(r.Dir), user, password) + "/" + filepath.Base(r.Dir)
}

// logWriter shows what a server process writes to its standard error in the test's log.
type logWriter struct{ t testing.TB }

func (l logWriter) Write(p []byte) (int, error) {
	if text := strings.TrimSpace(string(p)); text != "" && l.t.Context().Err() == nil {
		l.t.Log("server: " + text)
	}
	return len(p), nil
}
