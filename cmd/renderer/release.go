// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"resourceset.example/renderer/internal/config"
)

func newReleaseCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "release NAMESPACE/NAME [INPUT…]",
		Short: "End the hold on input sets that somebody changed or reverted",
		Long: `Where somebody edited generated files by hand, or reverted a commit of renderer, the
input sets concerned are held as they were left. This ends it, for the sets named (by
their folders, as the messages do) or for all of the ResourceSet: a commit that
changes no file says who released them, and the next pass writes them again.`,
		Example: `  renderer release apps/app1 app1-feature-flags-tenant1 --config config.yaml`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			cfg, _, err := config.Read(file, cmd.InOrStdin())
			if err != nil {
				return &exitError{code: exitUsage, err: err}
			}
			scratch, err := os.MkdirTemp("", "renderer-release-")
			if err != nil {
				return &exitError{code: exitFault, err: err}
			}
			defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
			quiet := *cfg
			quiet.Log.Level = "error"
			a, err := openApp(cmd.Context(), &quiet, appOptions{mirrors: scratch}, cmd.ErrOrStderr())
			if err != nil {
				return &exitError{code: exitUsage, err: err}
			}
			defer a.close()
			commit, err := a.reconciler.Release(cmd.Context(), args[0], args[1:], userName())
			if err != nil {
				return &exitError{code: exitFault, err: a.scrubbedAll(err)}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%.12s released %s; the next pass writes it\n", commit, args[0])
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "config.yaml", "read the configuration from `FILE`, - for standard input")
	return cmd
}
