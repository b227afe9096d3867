// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/reconcile"
	"resourceset.example/renderer/internal/secrets"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/gitwriter"
	"resourceset.example/renderer/pkg/source"
)

func newDiffCommand() *cobra.Command {
	var file, definitions, output, color string
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "Print what the next pass would commit",
		Long: `Does a full pass without the last step: reads the definitions, fetches the inputs,
renders, and prints the difference to what is committed. Nothing is pushed.

With --definitions it answers what would change if other definitions were merged:
those of a folder (a checkout of the repository, or a folder of definitions), or
those of another revision of the source repository: a branch, a tag, a commit, or a
reference such as refs/pull/12/head. That is for CI on a pull request; -o markdown
prints a comment for it.

Exits 0 without differences, 1 with some (removals that are held back are some),
2 on an error.`,
		Example: `  renderer diff --config config.yaml
  renderer diff --config config.yaml --definitions . -o markdown
  renderer diff --config config.yaml --definitions refs/pull/12/head`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			print, ok := diffPrinters()[output]
			if !ok {
				return usageErrorf("unknown output format %q: use text, json or markdown", output)
			}
			if definitions == "" && cmd.Flags().Changed("definitions") {
				// An unset variable in CI must not pass for "nothing changes".
				return usageErrorf("--definitions is empty: name a folder or a revision, or leave it out")
			}
			colored, err := useColor(color, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			preview, err := preview(cmd.Context(), file, definitions, cmd.InOrStdin(), cmd.ErrOrStderr())
			if err != nil {
				return &exitError{code: exitUsage, err: err}
			}
			if err := print(cmd.OutOrStdout(), preview, colored); err != nil {
				return &exitError{code: exitUsage, err: err}
			}
			return diffOutcome(preview)
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "config.yaml", "read the configuration from `FILE`, - for standard input")
	cmd.Flags().StringVar(&definitions, "definitions", "", "compare with the definitions in `DIR_OR_REV`")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "print as `FORMAT`: text, json or markdown")
	cmd.Flags().StringVar(&color, "color", "auto", "colour the text: auto, always or never (`WHEN`)")
	return cmd
}

// preview runs the pass. Its mirrors are in a folder of their own, so that it can
// run beside the service.
func preview(ctx context.Context, file, definitions string, stdin io.Reader, stderr io.Writer) (*reconcile.Preview, error) {
	cfg, warnings, err := config.Read(file, stdin)
	for _, w := range warnings {
		printWarning(stderr, w)
	}
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "renderer-diff-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	quiet := *cfg
	quiet.Log.Level = "error"
	opts := appOptions{mirrors: scratch, redactor: &secrets.Redactor{}}
	if definitions != "" {
		opts.definitions = func(ctx context.Context) (*api.Definitions, error) {
			return otherDefinitions(ctx, cfg, definitions, filepath.Join(scratch, "definitions"), opts.redactor)
		}
	}
	a, err := openApp(ctx, &quiet, opts, stderr)
	if err != nil {
		return nil, err
	}
	defer a.close()
	p, err := a.reconciler.Preview(ctx)
	if err != nil {
		return nil, a.scrubbedAll(err)
	}
	for _, w := range p.Report.Warnings {
		printWarning(stderr, a.scrubbed(w))
	}
	for _, problem := range p.Report.Problems {
		printError(stderr, a.scrubbed(problem))
	}
	return p, nil
}

// otherDefinitions reads those that --definitions names.
func otherDefinitions(ctx context.Context, cfg *config.Config, name, scratch string, redactor *secrets.Redactor) (*api.Definitions, error) {
	opts := source.Options{Path: cfg.Source.Path}
	if cfg.SameTree() {
		opts.Exclude = cfg.Target.Path
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		root, err := os.OpenRoot(name)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		if _, err := root.Stat(filepath.FromSlash(path.Clean(cfg.Source.Path))); errors.Is(err, fs.ErrNotExist) {
			opts = source.Options{Path: "."} // a folder of definitions, not a checkout
		}
		return source.ReadFolder(ctx, root, opts)
	}
	store, err := openSecrets(cfg)
	if err != nil {
		return nil, err
	}
	if filepath.IsAbs(name) || strings.HasPrefix(name, ".") {
		return nil, &noSuchDefinitionsError{name: name} // a path, and no revision
	}
	auth, err := reconcile.NewGitCredentials(cfg.Source.URL, cfg.Source.Auth, store, redactor, "").Get(ctx, false)
	if err != nil {
		return nil, err
	}
	remote, err := gitwriter.NewRemote(gitwriter.Config{URL: cfg.Source.URL, Auth: auth})
	if err != nil {
		return nil, err
	}
	commit, err := remote.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	if commit.IsZero() {
		return nil, &noSuchDefinitionsError{name: name}
	}
	head, done, err := remote.Read(ctx, commit, scratch, 0)
	var server *gitwriter.ServerError
	if errors.As(err, &server) && strings.Contains(server.Text, commit.String()) {
		return nil, &noSuchDefinitionsError{name: name} // upload-pack: not our ref
	}
	if err != nil {
		return nil, err
	}
	defs, err := source.Read(ctx, head.Tree(), opts)
	return defs, errors.Join(err, done())
}

// A noSuchDefinitionsError is a --definitions that is neither a folder nor in the repository.
type noSuchDefinitionsError struct{ name string }

func (e *noSuchDefinitionsError) Error() string {
	return "--definitions " + e.name + ": there is no such folder here, and the source repository hands out no such branch, tag or commit"
}

// Suggestion is what to do about it.
func (e *noSuchDefinitionsError) Suggestion() string {
	return "name a branch, a tag, a reference such as refs/pull/12/head or a commit that one of them points to; any other commit: check it out and name the folder"
}

// diffOutcome is the exit code: what is held back on purpose is a difference, and
// what failed makes the answer incomplete.
func diffOutcome(p *reconcile.Preview) error {
	differences := len(p.Files) > 0
	for _, problem := range p.Report.Problems {
		var held *reconcile.HeldError
		var taken *reconcile.TakenBackError
		if !errors.As(problem, &held) && !errors.As(problem, &taken) {
			return &exitError{code: exitUsage}
		}
		differences = true
	}
	if differences {
		return &exitError{code: exitFault}
	}
	return nil
}

// useColor decides --color; auto honours NO_COLOR (no-color.org).
func useColor(when string, w io.Writer) (bool, error) {
	switch when {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return isTerminal(w), nil
	}
	return false, usageErrorf("--color is auto, always or never, not %q", when)
}
