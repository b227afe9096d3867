// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"
)

// The tenant whose manifest is edited by hand: its folder, and the file.
const (
	editedSet  = "app1-feature-flags-tenant2"
	editedFile = "generated/apps/app1/" + editedSet + "/apps_app1-tenant2_helm.toolkit.fluxcd.io_HelmRelease.yaml"
)

// proof renders the whole history again.
func (s *stage) proof(ctx context.Context) error {
	s.title("Prove the trail")
	s.note("Definitions and recorded inputs are in Git, and rendering is pure. So every commit")
	s.note("can be rendered again, and must give the same bytes. Nobody is asked for this:")
	return s.run(ctx, 0, "verify")
}

// handEdit shows that people win, and that everybody can see it.
func (s *stage) handEdit(ctx context.Context) error {
	s.title("Somebody edits a manifest by hand")
	s.note("On call, Pat switches an interval in a generated file and pushes it.")
	edit, err := s.manifests.edit("Look for tenant2's chart every minute, for now", editedFile, func(text string) string {
		return strings.ReplaceAll(text, "interval: 10m", "interval: 1m")
	})
	if err != nil {
		return err
	}
	if err := s.commit(ctx, edit, 0); err != nil {
		return err
	}
	s.seen = edit.Hash
	s.line("")
	s.note("renderer does not fight: it holds that tenant as it was left, and says so")
	s.note("in its log, its exit code and its status (/api/v1/status):")
	said := ""
	err = s.until(ctx, "the hold", func() (bool, error) {
		said, err = s.takenBack(ctx)
		return said != "", err
	})
	if err != nil {
		return err
	}
	s.line("       %s", s.paint(yellow, said))
	s.line("")
	s.note("The proof names the file and who it was:")
	if err := s.run(ctx, 1, "verify", "--since", edit.ParentHashes[0].String()[:12]); err != nil {
		return err
	}
	s.line("")
	s.note("And the history of that tenant shows it among its other changes:")
	if err := s.run(ctx, 0, "history", "--input", "tenant2"); err != nil {
		return err
	}
	s.line("")
	s.note("The hold ends when something else is wanted for tenant2, or when somebody releases it:")
	since := time.Now()
	if err := s.run(ctx, 0, "release", "apps/app1", editedSet); err != nil {
		return err
	}
	return s.landed(ctx, since, 2) // who released it, and what follows
}

// run runs a command of the program with the configuration of the demo, and shows
// what it says.
func (s *stage) run(ctx context.Context, want int, name string, args ...string) error {
	args = append([]string{name, "--config", filepath.Join(s.dir, "config.yaml")}, args...)
	s.line("")
	s.line("   %s", s.paint(bold, "$ renderer "+strings.Join(args, " ")))
	var out bytes.Buffer
	code := s.command(ctx, args, &out, &out)
	for text := range strings.Lines(out.String()) {
		style := ""
		switch {
		case strings.HasPrefix(text, "proved"):
			style = green
		case strings.HasPrefix(text, "altered"):
			style = red
		}
		s.line("       %s", s.paint(style, strings.TrimRight(text, "\n")))
	}
	if code != want && ctx.Err() == nil {
		return fmt.Errorf("renderer %s: exit code %d", name, code)
	}
	return ctx.Err()
}

// takenBack is what the status says of a set that is held as somebody left it; empty
// while there is none.
func (s *stage) takenBack(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.listen+"/api/v1/status", nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var status struct {
		ResourceSets []struct {
			Name      string
			TakenBack []struct{ Set, Commit, Who string }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		return "", fmt.Errorf("status of the service: %w", err)
	}
	for _, set := range status.ResourceSets {
		for _, t := range set.TakenBack {
			return fmt.Sprintf("%s: %s is held as %s left it in %.12s", set.Name, t.Set, t.Who, t.Commit), nil
		}
	}
	return "", nil
}
