// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An apiServer answers for one Secret, in the words of the Kubernetes API.
type apiServer struct {
	*httptest.Server
	status int // 0: as it should be
	value  string
	asked  []string
	hang   bool
}

func newAPIServer(t *testing.T) (*apiServer, *Cluster) {
	s := &apiServer{value: "s3cr3t-t0ken"}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked = append(s.asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		if s.hang {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if s.status != 0 {
			reason := map[int]string{401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 500: "InternalError"}[s.status]
			w.WriteHeader(s.status)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no"}`, reason, s.status)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "git", "namespace": "flux-system"},
			"data": map[string]string{"token": base64.StdEncoding.EncodeToString([]byte(s.value)), "empty": ""},
		})
	}))
	t.Cleanup(s.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: {token: bearer-of-the-pod}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, s.URL, base64.StdEncoding.EncodeToString(authority))
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	c, err := OpenCluster("renderer/test")
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// Only a get of the one name is asked for, so that a Role for that is enough.
func TestClusterGet(t *testing.T) {
	s, c := newAPIServer(t)
	data, err := c.Get(t.Context(), "flux-system", "git")
	if err != nil {
		t.Fatal(err)
	}
	if string(data["token"]) != "s3cr3t-t0ken" || len(data) != 2 || len(data["empty"]) != 0 {
		t.Errorf("got %q", data)
	}
	want := "GET /api/v1/namespaces/flux-system/secrets/git Bearer bearer-of-the-pod"
	if len(s.asked) != 1 || s.asked[0] != want {
		t.Errorf("asked %q, want %q", s.asked, want)
	}
	data["token"][0] = 'X' // the caller's own
	if again, err := c.Get(t.Context(), "flux-system", "git"); err != nil || string(again["token"]) != "s3cr3t-t0ken" {
		t.Errorf("got %q, %v", again, err)
	}
	if _, err := c.Get(t.Context(), "../x", "git"); err == nil || len(s.asked) != 1 {
		t.Errorf("asked %q, %v", s.asked, err)
	}
}

func TestClusterErrors(t *testing.T) {
	for status, want := range map[int]string{
		401: "does not know us",
		403: "resourceNames [git], verbs [get]",
		404: "make a Secret git in namespace flux-system",
		500: "in trouble",
	} {
		s, c := newAPIServer(t)
		s.status = status
		_, err := c.Get(t.Context(), "flux-system", "git")
		var hint interface{ Suggestion() string }
		if !errors.As(err, &hint) {
			t.Fatalf("%d: %v has no hint", status, err)
		}
		if text := err.Error() + "\n" + hint.Suggestion(); !strings.Contains(text, want) || !strings.Contains(text, "flux-system/git") {
			t.Errorf("%d: got %q, want %q", status, text, want)
		}
		if errors.Is(err, ErrNotFound) != (status == 404) {
			t.Errorf("%d: not found: %t", status, errors.Is(err, ErrNotFound))
		}
	}
}

// A rotated Secret counts soon; one that the server cannot be asked about stays
// usable for a while; one that it denies does not.
func TestClusterOutage(t *testing.T) {
	s, c := newAPIServer(t)
	now := time.Now()
	c.now = func() time.Time { return now }
	get := func() string {
		data, err := c.Get(t.Context(), "flux-system", "git")
		if err != nil {
			return "error"
		}
		return string(data["token"])
	}
	steps := []struct {
		after  time.Duration
		status int
		value  string
		want   string
	}{
		{0, 0, "one-value", "one-value"},
		{freshFor / 2, 0, "another-value", "one-value"},
		{freshFor, 0, "another-value", "another-value"},
		{freshFor, 500, "", "another-value"},
		{usableFor - 3*freshFor, 500, "", "another-value"},
		{3 * freshFor, 500, "", "error"},
		{freshFor, 0, "back", "back"},
		{freshFor, 404, "", "error"},
		{freshFor, 500, "", "error"},
		{freshFor, 0, "back", "back"},
		{freshFor, 403, "", "error"},
		{freshFor, 500, "", "error"},
	}
	for i, step := range steps {
		now = now.Add(step.after)
		s.status, s.value = step.status, step.value
		if got := get(); got != step.want {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
}

// FR-92: a server that never answers ends with the context, and what was known is
// not used in the place of a cancelled request.
func TestClusterHangs(t *testing.T) {
	s, c := newAPIServer(t)
	s.hang = true
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Get(ctx, "flux-system", "git"); err == nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestNoCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "missing"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := OpenCluster("renderer/test"); err == nil || !strings.Contains(err.Error(), "no Kubernetes cluster") {
		t.Errorf("got %v", err)
	}
}
