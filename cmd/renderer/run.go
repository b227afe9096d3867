// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

func newRunCommand() *cobra.Command {
	var file string
	var once bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Render and push, once or as a service",
		Long: `Reads the definitions, fetches the inputs, renders every ResourceSet and pushes a
commit for each that changed. As a service it does so whenever a definition, an
input or a webhook says that something changed, until it is told to stop.

With --once it does one full pass and exits: 0 when all is in order, 1 when
something failed or was held back (what is committed for it stands), 2 for a
wrong command line or configuration.`,
		Example: `  renderer run --config config.yaml --once
  renderer run --config config.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			app, err := newApp(cmd.Context(), file, cmd.InOrStdin(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer app.close()
			if once {
				return app.once(cmd.Context(), cmd.OutOrStdout())
			}
			return app.serve(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "config.yaml", "read the configuration from `FILE`, - for standard input")
	cmd.Flags().BoolVar(&once, "once", false, "do one full pass and exit")
	return cmd
}
