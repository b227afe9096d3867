// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/reconcile"
	"resourceset.example/renderer/internal/secrets"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/gitwriter"
)

// An app is the service with all its parts, made from one configuration file.
type app struct {
	cfg        *config.Config
	log        *slog.Logger
	redactor   *secrets.Redactor
	store      secretStore
	reconciler *reconcile.Reconciler
	stderr     io.Writer

	afterPass  func(context.Context, *reconcile.Report) // set by serve
	hookFaults map[string]bool                          // receivers that are not served, and were logged
}

// newApp reads the configuration and opens the state folder. Its errors are of
// the configuration: exit code 2.
func newApp(ctx context.Context, file string, stdin io.Reader, stderr io.Writer) (*app, error) {
	cfg, warnings, err := config.Read(file, stdin)
	for _, w := range warnings {
		printWarning(stderr, w)
	}
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	a, err := openApp(ctx, cfg, appOptions{}, stderr)
	if errors.Is(err, gitwriter.ErrLocked) {
		return nil, &exitError{code: exitFault, err: err} // later it may not be
	}
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	return a, nil
}

// A secretStore gives the data of one Kubernetes Secret.
type secretStore interface {
	Get(ctx context.Context, namespace, name string) (map[string][]byte, error)
}

// openSecrets returns the store that the configuration names.
func openSecrets(cfg *config.Config) (secretStore, error) {
	if cfg.Secrets.Kubernetes {
		store, err := secrets.OpenCluster("renderer/" + readBuildInfo().Version)
		if err != nil {
			return nil, fmt.Errorf("secrets.kubernetes: %w", err)
		}
		return store, nil
	}
	return secrets.NewStore(cfg.Secrets.Directory), nil
}

// appOptions are what a preview does differently from the service.
type appOptions struct {
	mirrors     string            // folder of the mirrors, if not the state folder
	redactor    *secrets.Redactor // a new one if nil
	definitions func(context.Context) (*api.Definitions, error)
}

func openApp(ctx context.Context, cfg *config.Config, opts appOptions, stderr io.Writer) (*app, error) {
	store, err := openSecrets(cfg)
	if err != nil {
		return nil, err
	}
	a := &app{cfg: cfg, redactor: opts.redactor, store: store, stderr: stderr}
	if a.redactor == nil {
		a.redactor = &secrets.Redactor{}
	}
	a.log = newLogger(cfg.Log, a.redactor, stderr)
	a.reconciler, err = reconcile.New(ctx, reconcile.Options{
		Config: cfg, Secrets: a.store, Redactor: a.redactor, Log: a.log, Version: readBuildInfo().Version,
		Mirrors: opts.mirrors, Definitions: opts.definitions,
		AfterPass: func(ctx context.Context, report *reconcile.Report) {
			if a.afterPass != nil {
				a.afterPass(ctx, report)
			}
		},
	})
	return a, err
}

func (a *app) close() {
	if err := a.reconciler.Close(); err != nil {
		a.log.Warn("closing the state folder", "error", err)
	}
}

// newLogger writes to stderr what the configuration asks for, without any secret.
func newLogger(cfg config.Log, redactor *secrets.Redactor, w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Level)); err != nil {
		level = slog.LevelInfo // config has checked the names
	}
	opts := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewJSONHandler(w, opts)
	if cfg.Format == "text" {
		handler = slog.NewTextHandler(w, opts)
	}
	return slog.New(redactor.Handler(handler))
}

// once does one full pass and says what came of it.
func (a *app) once(ctx context.Context, stdout io.Writer) error {
	notifier := a.newNotifier()
	defer notifier.close(ctx)
	report := a.reconciler.Once(ctx)
	notifier.observe(report)
	if err := ctx.Err(); err != nil {
		return &exitError{code: exitFault, err: fmt.Errorf("interrupted: %w", err)}
	}
	for _, w := range report.Warnings {
		printWarning(a.stderr, a.scrubbed(w))
	}
	for _, c := range report.Commits {
		fmt.Fprintf(stdout, "%.12s %s\n", c.Hash, a.redactor.Scrub(didWhat(&c)))
	}
	for _, q := range report.Requests {
		fmt.Fprintf(stdout, "%s pull request #%d from %s: %s\n", q.Action, q.Number, q.Branch, q.URL)
	}
	if len(report.Commits)+len(report.Requests) == 0 && report.OK() {
		fmt.Fprintf(a.stderr, "renderer: nothing changed at %s\n", report.Revision)
	}
	if report.OK() {
		return nil
	}
	return &exitError{code: exitFault, err: a.scrubbedAll(report.Err())}
}

// didWhat says on one line what a commit did: in numbers, or in its own words where no
// input set changed.
func didWhat(c *reconcile.CommitReport) string {
	if subject, _, _ := strings.Cut(c.Message, "\n"); subject != "" && c.Added+c.Updated+c.Removed == 0 {
		return subject
	}
	return fmt.Sprintf("%s: %d added, %d updated, %d removed", c.ResourceSet, c.Added, c.Updated, c.Removed)
}

// scrubbedAll scrubs each of joined errors.
func (a *app) scrubbedAll(err error) error {
	errs := flatten(err)
	for i, e := range errs {
		errs[i] = a.scrubbed(e)
	}
	return errors.Join(errs...)
}

// scrubbed is an error whose texts hold no credential, whoever wrote them.
func (a *app) scrubbed(err error) error {
	clean := &scrubbedError{text: a.redactor.Scrub(err.Error()), err: err}
	var s suggester
	if errors.As(err, &s) {
		clean.hint = a.redactor.Scrub(s.Suggestion())
	}
	return clean
}

type scrubbedError struct {
	text, hint string
	err        error
}

func (e *scrubbedError) Error() string      { return e.text }
func (e *scrubbedError) Suggestion() string { return e.hint }
func (e *scrubbedError) Unwrap() error      { return e.err }
