// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"resourceset.example/renderer/internal/audit"
)

func newVerifyCommand() *cobra.Command {
	var flags trailFlags
	var since string
	cmd := &cobra.Command{
		Use:   "verify [REV]",
		Short: "Prove that commits hold what follows from definitions and recorded inputs",
		Long: `Renders every commit of the generated folder again, from the definitions at its
Source-Revision and the inputs that inputs.lock recorded, and compares the bytes.
No provider is asked and no credential is needed: two clones are enough.

A commit is proved; or altered (which files, by whom); or not reproducible (why).
Without REV and --since it is the whole history; with REV one commit. Exits 0 when
all are proved, 1 when not, 2 for a wrong command line or configuration.

What this proves and what it cannot is in docs/verify.md, with the fields of -o json.`,
		Example: `  renderer verify --config config.yaml
  renderer verify --config config.yaml --repository . --since v1.4.0
  renderer verify --config config.yaml --repository ./manifests --source-repository ./definitions HEAD~3`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts := audit.Verification{Since: since}
			if len(args) > 0 {
				opts.Commit = args[0]
			}
			if opts.Commit != "" && since != "" {
				return usageErrorf("REV and --since exclude each other: %s, --since %s", opts.Commit, since)
			}
			t, err := flags.open(cmd.Context(), true, cmd.InOrStdin(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer t.close()
			opts.Target, opts.Source, opts.SourcePath = t.cfg.Target.Path, t.source, t.cfg.Source.Path
			opts.AllowPlainSecrets = t.cfg.Secrets.AllowPlainOutput
			if t.cfg.SameTree() {
				opts.Exclude = t.cfg.Target.Path
			}
			report, err := t.target.Verify(cmd.Context(), opts)
			if err != nil {
				return &exitError{code: exitFault, err: err}
			}
			if flags.output == "json" {
				err = printJSON(cmd.OutOrStdout(), report)
			} else {
				err = printReport(cmd.OutOrStdout(), report)
			}
			if err == nil && !report.OK() {
				err = &exitError{code: exitFault}
			}
			return err
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&flags.source, "source-repository", "", "read the definitions from the clone in `DIR`, where they are in another repository")
	cmd.Flags().StringVar(&since, "since", "", "verify the commits after `REV`")
	return cmd
}

// printReport writes a line for each commit, and one for each finding below it.
func printReport(w io.Writer, report *audit.Report) error {
	for i := range report.Commits {
		p := &report.Commits[i]
		fmt.Fprintf(w, "%-16s %s  %s  %s\n", p.Status, p.Commit[:10], p.Time.Format("2006-01-02 15:04:05"), printable(p.Subject))
		if p.Status == audit.Proved {
			continue
		}
		by := p.Author.String()
		if p.Committer != p.Author {
			by += ", committed by " + p.Committer.String()
		}
		fmt.Fprintf(w, "    by %s\n", printable(by))
		for _, f := range p.Findings {
			text := f.Reason
			if f.File != "" {
				text = f.File + ": " + text
			}
			if f.Commit != "" {
				text += fmt.Sprintf(" (%s by %s)", f.Commit[:10], f.By)
			}
			fmt.Fprintf(w, "    %s\n", printable(text))
		}
	}
	_, err := fmt.Fprintf(w, "%d proved, %d altered, %d not reproducible\n", report.Proved, report.Altered, report.NotReproducible)
	if err != nil {
		return &exitError{code: exitFault, err: err}
	}
	return nil
}
