// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/reconcile"
	"resourceset.example/renderer/internal/secrets"
	"resourceset.example/renderer/internal/server"
)

func newHooksCommand() *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "hooks",
		Short: "Print the webhook paths of the Receivers",
		Long: `Reads the definitions and prints the path at which each Receiver is served: the one
that Flux computes, from the Receiver's token, name and namespace. A forge calls it at
the address of server.listen, or of what stands before it.

For a Receiver of type generic, whoever knows the path may call it: keep it to
yourself. Tokens are not printed.`,
		Example: `  renderer hooks --config config.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return usageErrorf("unknown output format %q: use table or json", output)
			}
			return hooks(cmd, file, output)
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "config.yaml", "read the configuration from `FILE`, - for standard input")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "print as `FORMAT`: table or json")
	return cmd
}

// hooks reads the definitions into a mirror of its own, so that it can run beside
// the service.
func hooks(cmd *cobra.Command, file, output string) (err error) {
	cfg, warnings, err := config.Read(file, cmd.InOrStdin())
	for _, w := range warnings {
		printWarning(cmd.ErrOrStderr(), w)
	}
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	scratch, err := os.MkdirTemp("", "renderer-hooks-")
	if err != nil {
		return &exitError{code: exitFault, err: err}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	quiet := *cfg
	quiet.Log.Level = "error"
	app, err := openApp(cmd.Context(), &quiet, appOptions{mirrors: scratch, redactor: &secrets.Redactor{}}, cmd.ErrOrStderr())
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	defer app.close()
	found, problems, err := app.reconciler.ReadHooks(cmd.Context())
	if err != nil {
		return &exitError{code: exitFault, err: app.scrubbed(err)}
	}
	rows := make([]hookRow, len(found))
	for i, h := range found {
		rows[i] = newHookRow(h)
	}
	if output == "json" {
		err = printJSON(cmd.OutOrStdout(), map[string]any{"receivers": rows})
	} else {
		err = printHooks(cmd.OutOrStdout(), cmd.ErrOrStderr(), rows)
	}
	if err == nil && len(problems) > 0 {
		report := reconcile.Report{Problems: problems}
		err = &exitError{code: exitFault, err: app.scrubbedAll(report.Err())}
	}
	return err
}

// A hookRow is one Receiver as it is printed.
type hookRow struct {
	Receiver string   `json:"receiver"` // namespace/name
	Type     string   `json:"type"`
	Path     string   `json:"path"`
	Suspend  bool     `json:"suspend"`
	Targets  []string `json:"refreshes"`
}

func newHookRow(h reconcile.Hook) hookRow {
	rec := h.Receiver
	row := hookRow{
		Receiver: rec.Namespace + "/" + rec.Name, Type: rec.Spec.Type, Suspend: rec.Spec.Suspend, Targets: []string{},
		// As Flux does, with every byte of the token; the server also takes the path
		// without a line break at its end.
		Path: server.HookPath(h.Token, rec.Name, rec.Namespace),
	}
	for _, t := range h.Targets {
		row.Targets = append(row.Targets, t.Kind+"/"+t.Namespace+"/"+t.Name)
	}
	return row
}

func printHooks(stdout, stderr io.Writer, rows []hookRow) error {
	if len(rows) == 0 {
		fmt.Fprintln(stderr, "renderer: there is no Receiver among the definitions")
		return nil
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RECEIVER\tTYPE\tPATH\tREFRESHES")
	for _, r := range rows {
		targets := strings.Join(r.Targets, ",")
		if r.Suspend {
			targets = "(suspended) " + targets
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Receiver, r.Type, r.Path, dash(targets))
	}
	return w.Flush()
}
