// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"resourceset.example/renderer/internal/demo"
)

func newDemoCommand() *cobra.Command {
	var opts demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the product at work, with nothing but this machine",
		Long: `Makes local Git repositories, starts a small orchestrator on loopback and the
service between them, and shows the commits that land as tenants come, change and
go. Then it proves the history, edits a manifest by hand, and shows who notices. It needs git, but no network, account or cluster, and ends by itself.

The repositories stay in a folder that it names at the end. With --keep both
services go on running, to be played with.`,
		Example: `  renderer demo
  renderer demo --keep --directory ./demo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := exec.LookPath("git"); err != nil {
				return usageErrorf("git is not installed: local repositories are reached through it")
			}
			if opts.Directory == "" {
				dir, err := os.MkdirTemp("", "renderer-demo-")
				if err != nil {
					return &exitError{code: exitFault, err: err}
				}
				opts.Directory = dir
			}
			opts.Out, opts.Colour = cmd.OutOrStdout(), isTerminal(cmd.OutOrStdout())
			opts.Program, opts.Serve = os.Args[0], serveFile
			opts.Command = func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
				return run(ctx, args, strings.NewReader(""), stdout, stderr)
			}
			err := demo.Run(cmd.Context(), opts)
			var notEmpty *demo.NotEmptyError
			switch {
			case err == nil:
				return nil
			case errors.As(err, &notEmpty):
				return &exitError{code: exitUsage, err: err}
			}
			return &exitError{code: exitFault, err: err}
		},
	}
	cmd.Flags().StringVar(&opts.Directory, "directory", "", "make everything in `DIR`, which must be empty (default a new temporary folder)")
	cmd.Flags().BoolVar(&opts.Keep, "keep", false, "leave the services running until interrupted")
	return cmd
}

// serveFile runs the service with a configuration file until the context ends.
func serveFile(ctx context.Context, file string, logs io.Writer) error {
	app, err := newApp(ctx, file, nil, logs)
	if err != nil {
		return err
	}
	defer app.close()
	return app.serve(ctx)
}

// isTerminal reports that a person reads along, who has not asked for plain text.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
