// SPDX-License-Identifier: Apache-2.0

package gittest

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A client that is killed while it pushes must not leave a server process behind.
func TestServerOutlivesKilledClient(t *testing.T) {
	repo := NewRepo(t)
	handler, asked := HTTPHandler(t, filepath.Dir(repo.Dir), "", ""), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		handler.ServeHTTP(w, r)
	}))
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /%s/git-receive-pack HTTP/1.1\r\nHost: git\r\nContent-Type: application/x-git-receive-pack-request\r\nContent-Length: 5000\r\n\r\n0000", filepath.Base(repo.Dir))
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	<-asked
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		server.Close() // waits for requests under way
	}()
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Error("the request of a client that is gone is still under way")
	}
}
