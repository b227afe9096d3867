// SPDX-License-Identifier: Apache-2.0

package gitwriter_test

import (
	"bytes"
	"log/slog"
	"testing"

	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/pkg/gitwriter"
)

// Somebody else's change on top of ours is fetched as what it is, a few objects: a new
// mirror would cost a clone for every commit to the definitions.
func TestFetchOntoForeignCommit(t *testing.T) {
	repo := gittest.NewRepo(t)
	repo.Commit("main", "definitions", map[string]string{"defs/a.yaml": "a: 1\n", "defs/b.yaml": "b: 1\n"})
	var log bytes.Buffer
	m := open(t, gitwriter.Config{URL: repo.URL(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if _, err := m.Update(t.Context(), commits(write("ours", map[string]string{"gen/x.yaml": "x: 1\n"}))); err != nil {
		t.Fatal(err)
	}
	head := repo.Commit("main", "theirs", map[string]string{"defs/a.yaml": "a: 2\n"})
	snapshot, err := m.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if snapshot.Hash().String() != head {
		t.Errorf("fetched %s, want %s", snapshot.Hash(), head)
	}
	if data, err := snapshot.ReadFile("defs/a.yaml"); err != nil || string(data) != "a: 2\n" {
		t.Errorf("defs/a.yaml: %q, %v", data, err)
	}
	if log.Len() > 0 {
		t.Errorf("logged: %s", log.String())
	}

	// What the branch has had before is not sent again.
	result, err := m.Update(t.Context(), commits(write("back", map[string]string{"defs/a.yaml": "a: 2\n", "gen/y.yaml": "x: 1\n"})))
	if err != nil {
		t.Fatal(err)
	}
	if result.Objects != 3 { // a commit, the root, gen
		t.Errorf("%d objects were sent, want 3", result.Objects)
	}
}
