// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/reconcile"
)

func newApproveCommand() *cobra.Command {
	var file, definitions string
	cmd := &cobra.Command{
		Use:   "approve [NAMESPACE/NAME]",
		Short: "Print held removals, or release one",
		Long: `Without an argument it prints the removals that the prune guard holds back. With a
ResourceSet's name it releases exactly the removal that is held for it now, once:
if other input sets would go by the time of the next pass, that is another plan. An
approval ends after three days, and when the removal is not wanted any more.

The approval is noted in the state folder, where the running service finds it with
its next pass. With --definitions it is written to a work tree of the definitions
repository instead, to be committed and reviewed there.`,
		Example: `  renderer approve --config config.yaml
  renderer approve apps/app1 --config config.yaml
  renderer approve apps/app1 --config config.yaml --definitions ./fleet`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, _, err := config.Read(file, cmd.InOrStdin())
			if err != nil {
				return &exitError{code: exitUsage, err: err}
			}
			if definitions == "" && cmd.Flags().Changed("definitions") {
				return usageErrorf("--definitions is empty: name a work tree of the definitions repository, or leave it out")
			}
			held := reconcile.OpenHeld(cfg.State.Directory)
			plans, err := held.Plans()
			if err != nil {
				return &exitError{code: exitFault, err: fmt.Errorf("state folder: %w", err)}
			}
			if len(args) == 0 {
				return printHeld(cmd.OutOrStdout(), plans)
			}
			for _, plan := range plans {
				if plan.ResourceSet == args[0] {
					return approve(cmd.OutOrStdout(), cfg, held, plan, definitions)
				}
			}
			return &exitError{code: exitFault, err: fmt.Errorf("nothing is held back for ResourceSet %s", args[0])}
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "config.yaml", "read the configuration from `FILE`, - for standard input")
	cmd.Flags().StringVar(&definitions, "definitions", "", "write the approval to the work tree `DIR` of the definitions repository")
	return cmd
}

func approve(stdout io.Writer, cfg *config.Config, held reconcile.HeldFile, plan reconcile.HeldPlan, definitions string) error {
	if definitions == "" {
		if err := held.Approve(plan.Digest, userName(), time.Now()); err != nil {
			return &exitError{code: exitFault, err: err}
		}
		fmt.Fprintf(stdout, "released with the next pass: %s\n", describeHeld(plan))
		return nil
	}
	if err := checkWorkTree(definitions, cfg.Source.Path); err != nil {
		return &exitError{code: exitFault, err: err}
	}
	path := filepath.Join(definitions, filepath.FromSlash(cfg.Source.Path), filepath.FromSlash(reconcile.ApprovalFile(plan.Digest)))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return &exitError{code: exitFault, err: err}
	}
	text := fmt.Appendf(nil, "# Releases one removal that renderer holds back; delete it afterwards.\n# %s\n%s",
		describeHeld(plan), reconcile.ApprovalText(userName(), time.Now()))
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return &exitError{code: exitFault, err: err}
	}
	fmt.Fprintf(stdout, "commit this file to release it: %s\n", path)
	return nil
}

// checkWorkTree refuses a folder that is no work tree of the definitions repository:
// nobody would ever read the approval there.
func checkWorkTree(dir, sourcePath string) error {
	for _, folder := range []string{dir, filepath.Join(dir, filepath.FromSlash(sourcePath))} {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return &noWorkTreeError{dir: dir, missing: folder, sourcePath: sourcePath}
		}
	}
	return nil
}

// A noWorkTreeError is a --definitions of approve in which no definitions can be.
type noWorkTreeError struct{ dir, missing, sourcePath string }

func (e *noWorkTreeError) Error() string {
	return fmt.Sprintf("--definitions %s: there is no folder %s; nothing was written", e.dir, e.missing)
}

// Suggestion is what to do about it.
func (e *noWorkTreeError) Suggestion() string {
	return "name the root of a work tree of the definitions repository, which has the folder of source.path (" + e.sourcePath + ")"
}

func printHeld(stdout io.Writer, plans []reconcile.HeldPlan) error {
	if len(plans) == 0 {
		fmt.Fprintln(stdout, "nothing is held back")
		return nil
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RESOURCESET\tSINCE\tFETCHES\tREMOVES\tREASON")
	for _, p := range plans {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", p.ResourceSet, p.Since.UTC().Format(time.RFC3339), p.Fetches, whatGoes(p), p.Reason)
	}
	return w.Flush()
}

func describeHeld(p reconcile.HeldPlan) string { return p.ResourceSet + ": remove " + whatGoes(p) }

func whatGoes(p reconcile.HeldPlan) string {
	if p.Whole {
		return "the ResourceSet"
	}
	return strings.Join(p.Sets, ",")
}

// userName is who runs this program, as the system knows them.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "an operator"
}
