// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"resourceset.example/renderer/internal/audit"
	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/reconcile"
	"resourceset.example/renderer/internal/secrets"
	"resourceset.example/renderer/pkg/gitwriter"
)

// A trail is where history and verify read: the configuration, and the histories
// of the target and of the definitions.
type trail struct {
	cfg      *config.Config
	redactor *secrets.Redactor
	target   *audit.Repository
	source   *audit.Repository // the same when they share a branch; nil when not asked for
}

// trailFlags are the flags of both commands.
type trailFlags struct{ config, repository, source, output string }

func (f *trailFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.config, "config", "c", "config.yaml", "read the configuration from `FILE`, - for standard input")
	cmd.Flags().StringVar(&f.repository, "repository", "", "read the target's history from the clone in `DIR`, without any network")
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "print as `FORMAT`: table or json")
}

// open reads the configuration, and the histories from clones or from the servers.
// Secrets are looked at only for the latter.
func (f *trailFlags) open(ctx context.Context, withSource bool, stdin io.Reader, stderr io.Writer) (*trail, error) {
	if f.output != "table" && f.output != "json" {
		return nil, usageErrorf("unknown output format %q: use table or json", f.output)
	}
	cfg, err := loadConfig(f.config, stdin, stderr)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	t := &trail{cfg: cfg, redactor: &secrets.Redactor{}}
	if withSource && f.repository != "" && f.source == "" && !cfg.SameRepository() {
		return nil, &exitError{code: exitUsage, err: &noSourceError{url: cfg.Source.URL}}
	}
	if t.target, err = t.history(ctx, f.repository, "history", cfg.Target.URL, cfg.Target.Branch, cfg.Target.Auth); err != nil {
		return nil, &exitError{code: exitUsage, err: t.scrubbed(err)}
	}
	if !withSource {
		return t, nil
	}
	if f.source == "" && cfg.SameTree() {
		t.source = t.target
		return t, nil
	}
	dir := f.source
	if dir == "" && cfg.SameRepository() {
		dir = f.repository
	}
	if t.source, err = t.history(ctx, dir, "history-source", cfg.Source.URL, cfg.Source.Branch, cfg.Source.Auth); err != nil {
		return nil, &exitError{code: exitUsage, err: errors.Join(t.scrubbed(err), t.close())}
	}
	return t, nil
}

// A noSourceError is a verification that lacks the definitions.
type noSourceError struct{ url string }

func (e *noSourceError) Error() string {
	return "the definitions are in another repository (" + e.url + "), and --source-repository is not given"
}

// Suggestion is what to do about it.
func (e *noSourceError) Suggestion() string {
	return "clone that repository, and name its folder with --source-repository"
}

// loadConfig reads the configuration without asking for the secrets it names: a
// clone is read without any.
func loadConfig(file string, stdin io.Reader, stderr io.Writer) (*config.Config, error) {
	name, data, err := file, []byte(nil), error(nil)
	if file == "-" {
		name = "standard input"
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	cfg, warnings, err := config.Load(name, data)
	for _, w := range warnings {
		printWarning(stderr, w)
	}
	return cfg, err
}

// history opens a clone; without one, it fetches the branch into the state folder.
func (t *trail) history(ctx context.Context, dir, cache, url, branch string, auth config.Auth) (*audit.Repository, error) {
	if dir != "" {
		return audit.Open(dir, branch)
	}
	store, err := openSecrets(t.cfg)
	if err != nil {
		return nil, err
	}
	agent := "renderer/" + readBuildInfo().Version
	dir, err = gitwriter.FetchHistory(ctx, gitwriter.Config{
		URL: url, Branch: branch, Directory: filepath.Join(t.cfg.State.Directory, cache),
		UserAgent:   agent,
		Credentials: reconcile.NewGitCredentials(url, auth, store, t.redactor, agent).Get,
	})
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, fmt.Errorf("the repository has no branch %q", branch)
	}
	return audit.Open(dir, gitwriter.HistoryBranch)
}

func (t *trail) close() error {
	err := t.target.Close()
	if t.source != nil && t.source != t.target {
		err = errors.Join(err, t.source.Close())
	}
	return err
}

// scrubbed is an error without any credential, whoever wrote it.
func (t *trail) scrubbed(err error) error {
	clean := &scrubbedError{text: t.redactor.Scrub(err.Error()), err: err}
	var s suggester
	if errors.As(err, &s) {
		clean.hint = t.redactor.Scrub(s.Suggestion())
	}
	return clean
}
