// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"

	"resourceset.example/renderer/internal/forgetest"
)

// An event is posted for what was pushed and for a provider that fails, once, to the
// address of the configuration; the program waits for it before it ends.
func TestEvents(t *testing.T) {
	var mu sync.Mutex
	var got []string
	var commits []eventv1.Event
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e eventv1.Event
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Errorf("no event: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, e.Severity+" "+e.InvolvedObject.Kind+" "+e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name+" "+e.Reason)
		if e.InvolvedObject.Kind == "ResourceSet" {
			commits = append(commits, e)
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer receiver.Close()

	f, github, repo := newPreviews(t)
	openMany(repo)
	f.extra = "events: [{url: \"" + receiver.URL + "\"}]\n"
	f.once(0)
	github.Break(forgetest.Page())
	f.once(1)

	mu.Lock()
	defer mu.Unlock()
	want := []string{
		"info ResourceSet podinfo-preview/podinfo ReconciliationSucceeded",
		"error ResourceSetInputProvider podinfo-preview/podinfo-pull-requests ReconciliationFailed",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if revision := commits[0].Metadata["fluxcd.controlplane.io/revision"]; revision != "main@sha1:"+f.repo.Head("main") {
		t.Errorf("revision %q", revision)
	}
}
