// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"testing"

	"resourceset.example/renderer/internal/gittest"
	"resourceset.example/renderer/pkg/gitwriter"
)

// Without a clone, history and verify fetch the whole branch: over smart HTTP and SSH,
// and later only what is new.
func TestHistoryOfRemotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rendered()
	server := gittest.SSHServer(t)
	remotes := map[string]gitwriter.Config{
		"http": {URL: w.repo.HTTP("bot", "s3cret"), Auth: gitwriter.Auth{Username: "bot", Password: "s3cret"}},
		"ssh":  {URL: server.URL + w.repo.Dir, Auth: gitwriter.Auth{Identity: server.Identity, KnownHosts: server.KnownHosts}},
	}
	directories := map[string]string{"http": t.TempDir(), "ssh": t.TempDir()}
	for n := 1; n <= 2; n++ {
		for name, cfg := range remotes {
			cfg.Branch, cfg.Directory = "main", directories[name]
			dir, err := gitwriter.FetchHistory(t.Context(), cfg)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			r, err := Open(dir, gitwriter.HistoryBranch)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			report, err := r.Verify(context.Background(), Verification{Target: target, Source: r, SourcePath: "clusters", Exclude: target})
			if err != nil || report.Proved != n || !report.OK() {
				t.Errorf("%s: want %d proved, %v:\n%s", name, n, err, show(report))
			}
			events, err := r.History(t.Context(), target, Filter{})
			if err != nil || len(events) == 0 || events[0].Commit != w.repo.Head("main") {
				t.Errorf("%s: history: %+v, %v", name, events, err)
			}
			r.Close()
		}
		if n == 1 {
			w.tenants("red=2", "blue", "green")
			w.rendered()
		}
	}
}
