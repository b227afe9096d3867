// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"resourceset.example/renderer/pkg/api"
)

// The story itself is told with the real service, in the tests of the command.

func TestDefinitionsAreValid(t *testing.T) {
	for name, want := range map[string]int{"app1.yaml": 1, "orchestrator.yaml": 2} {
		text, err := definitions.ReadFile("definitions/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defs := api.Parse(name, bytes.ReplaceAll(text, []byte("ORCHESTRATOR"), []byte("http://127.0.0.1:1")))
		for _, f := range append(defs.Faults, defs.Warnings...) {
			t.Error(f)
		}
		if got := len(defs.ResourceSets) + len(defs.Providers) + len(defs.Receivers); got != want {
			t.Errorf("%s: %d objects, want %d", name, got, want)
		}
	}
}

func TestDirectoryMustBeEmpty(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Run(t.Context(), Options{Directory: dir, Out: io.Discard, Serve: nil})
	var notEmpty *NotEmptyError
	if !errors.As(err, &notEmpty) {
		t.Errorf("got %v", err)
	}
}

// When the service cannot start, its reason is the demo's, and the log is named.
func TestServiceFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	err := Run(t.Context(), Options{Directory: dir, Out: io.Discard, Serve: func(context.Context, string, io.Writer) error {
		return errors.New("no luck")
	}})
	if err == nil || !strings.Contains(err.Error(), "no luck") || !strings.Contains(err.Error(), "renderer.log") {
		t.Errorf("got %v", err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := Run(ctx, Options{Directory: filepath.Join(t.TempDir(), "new"), Out: io.Discard, Serve: func(ctx context.Context, _ string, _ io.Writer) error {
		cancel()
		<-ctx.Done()
		return nil
	}})
	if err == nil {
		t.Error("an interrupted story is told as if it were whole")
	}
}

func TestOrchestrator(t *testing.T) {
	var calls []string
	hooks := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		calls = append(calls, r.Header.Get("X-Signature"))
	}))
	defer hooks.Close()
	o, err := startOrchestrator(t.Context(), "secret", hook{url: hooks.URL, token: "key"}, firstTenants())
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	do := func(method, path, body, auth string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, o.url()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", auth)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	const inputs = "/api/v1/flux/inputs?env=prod&app=app1"
	if status, text := do("GET", inputs, "", "Bearer other"); status != 401 || strings.Contains(text, "tenant") {
		t.Errorf("a stranger gets %d %s", status, text)
	}
	if status, _ := do("PUT", "/tenants/tenant4", `{"version":"3.0.0"}`, ""); status != 204 {
		t.Errorf("put: %d", status)
	}
	if status, _ := do("DELETE", "/tenants/tenant1", "", ""); status != 204 {
		t.Errorf("delete: %d", status)
	}
	want := `{"inputs":[{"tenant":"tenant2","version":"1.9.0","featureFlags":["feature1","feature2"]},{"tenant":"tenant4","version":"3.0.0","featureFlags":[]}]}` + "\n"
	if status, text := do("GET", inputs, "", "Bearer secret"); status != 200 || text != want {
		t.Errorf("got %d %s, want %s", status, text, want)
	}
	if len(calls) != 2 || !strings.HasPrefix(calls[0], "sha256=") {
		t.Errorf("webhook calls: %q", calls)
	}
	if err := o.fail(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if status, text := do("GET", inputs, "", "Bearer secret"); status != 200 || !strings.HasPrefix(text, "<html>") {
		t.Errorf("broken: %d %s", status, text)
	}
}
