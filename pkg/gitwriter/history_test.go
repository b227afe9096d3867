// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"resourceset.example/renderer/internal/gittest"
)

// The mirror has one commit, and gets earlier ones when it is asked to. It can still
// be pushed from and fetched into afterwards.
func TestDeepen(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	repo := gittest.NewRepo(t)
	clone := repo.Clone("main")
	for i := range 14 {
		clone.Write(map[string]string{fmt.Sprintf("dir/%02d", i): "x", "same/file": "y"})
		clone.CommitAndPush(fmt.Sprintf("commit %d", i))
	}
	for name, url := range map[string]string{"file": repo.URL(), "http": repo.HTTP("u", "p")} {
		cfg := Config{URL: url, Branch: "main", Directory: t.TempDir()}
		if name == "http" {
			cfg.Auth = Auth{Username: "u", Password: "p"}
		}
		m, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		ctx := context.Background()
		head, err := m.Fetch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		count := func(s *Snapshot) (n int, end error) {
			for s != nil {
				n++
				if s, end = s.Parent(); end != nil {
					return n, end
				}
			}
			return n, nil
		}
		if n, err := count(head); n != 1 || !errors.Is(err, ErrShallow) {
			t.Fatalf("%s: a new mirror has %d commits, %v", name, n, err)
		}
		if head, err = m.Deepen(ctx, 5); err != nil {
			t.Fatal(err)
		}
		if n, err := count(head); n != 6 || !errors.Is(err, ErrShallow) {
			t.Errorf("%s: after 5 there are %d commits, %v", name, n, err)
		}
		parent, err := head.Parent()
		if err != nil {
			t.Fatal(err)
		}
		if text, err := parent.ReadFile("dir/12"); name == "file" && (err != nil || string(text) != "x") {
			t.Errorf("%s: the earlier tree: %q, %v", name, text, err)
		}
		if _, err := m.Update(ctx, func(context.Context, *Snapshot) ([]Commit, error) {
			return []Commit{{Message: "ours", Write: map[string][]byte{"ours-" + name: []byte("1")}}}, nil
		}); err != nil {
			t.Fatal(err)
		}
		if head, err = m.Deepen(ctx, 1000); err != nil {
			t.Fatal(err)
		}
		if n, err := count(head); n < 15 || err != nil {
			t.Errorf("%s: with all there are %d commits, %v", name, n, err)
		}
		repo.Commit("main", "foreign after "+name, map[string]string{"foreign-" + name: "1"})
		if _, err := m.Fetch(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
