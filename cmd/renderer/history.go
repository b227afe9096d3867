// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"resourceset.example/renderer/internal/audit"
	"resourceset.example/renderer/internal/reconcile"
)

func newHistoryCommand() *cobra.Command {
	var flags trailFlags
	var filter audit.Filter
	var object, since, until string
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Print when inputs came, changed and went, read back from Git",
		Long: `Reads the commits that touch the generated folder, newest first, and prints what
each did to every input set: added, updated (old and new values), removed, by which
trigger and from which revision of the definitions. Commits of others that touch
the folder (hand edits, reverts) are shown with their author and files.

The history is that of the clone named by --repository, at the target branch; else
the branch is fetched into the state folder, which is fast from the second time on.
Removals that are held back now are listed as well, as the state folder has them:
they are in no commit yet.
The fields of -o json are documented in docs/history.md.`,
		Example: `  renderer history --config config.yaml --resourceset apps/podinfo
  renderer history --config config.yaml --input podinfo-pull-requests-12 -o json
  renderer history --repository . --object HelmRelease/apps/podinfo-12 --since 168h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if filter.Since, err = parseTime("since", since); err != nil {
				return err
			}
			if filter.Until, err = parseTime("until", until); err != nil {
				return err
			}
			if object != "" {
				if filter.Object, err = audit.ParseObjectRef(object); err != nil {
					return usageErrorf("--object: %w", err)
				}
			}
			if parts := strings.Split(filter.ResourceSet, "/"); filter.ResourceSet != "" && (len(parts) != 2 || parts[0] == "" || parts[1] == "") {
				return usageErrorf("--resourceset %q: write it as NAMESPACE/NAME", filter.ResourceSet)
			}
			t, err := flags.open(cmd.Context(), false, cmd.InOrStdin(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer t.close()
			events, err := t.target.History(cmd.Context(), t.cfg.Target.Path, filter)
			if err != nil {
				return &exitError{code: exitFault, err: err}
			}
			begins, err := t.target.Begins(filter.Since)
			if err != nil {
				return &exitError{code: exitFault, err: err}
			}
			if begins != nil {
				printWarning(cmd.ErrOrStderr(), begins)
			}
			held, err := heldNow(t.cfg.State.Directory, filter)
			if err != nil {
				printWarning(cmd.ErrOrStderr(), err)
			}
			if len(events) == 0 && len(held) == 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "renderer: nothing in the history of %s matches\n", t.cfg.Target.Path)
			}
			if flags.output == "json" {
				return printJSON(cmd.OutOrStdout(), map[string]any{"events": notNil(events), "held": notNil(held)})
			}
			if err := printEvents(cmd.OutOrStdout(), events); err != nil || len(held) == 0 {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "\nHeld back now:")
			return printHeld(cmd.OutOrStdout(), held)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&filter.ResourceSet, "resourceset", "", "only this ResourceSet: `NAMESPACE/NAME`")
	cmd.Flags().StringVar(&filter.Input, "input", "", "only this input set: its folder, the end of it (12), or its id (`KEY`)")
	cmd.Flags().StringVar(&object, "object", "", "only what touches the manifest of this object: `KIND/NAMESPACE/NAME`")
	cmd.Flags().StringVar(&since, "since", "", "only commits from `TIME` on: 2026-03-01, 2026-03-01T12:00:00Z, or 24h for that long ago")
	cmd.Flags().StringVar(&until, "until", "", "only commits up to `TIME`")
	return cmd
}

// heldNow are the removals that wait for agreement, as far as they match a filter. No
// commit tells of them, so those in the past are not known.
func heldNow(stateDirectory string, filter audit.Filter) ([]reconcile.HeldPlan, error) {
	if filter.Object != nil || !filter.Until.IsZero() {
		return nil, nil
	}
	plans, err := reconcile.OpenHeld(stateDirectory).Plans()
	if err != nil {
		return nil, fmt.Errorf("state folder: removals that are held back are not shown: %w", err)
	}
	return slices.DeleteFunc(plans, func(p reconcile.HeldPlan) bool {
		if filter.ResourceSet != "" && p.ResourceSet != filter.ResourceSet {
			return true
		}
		return filter.Input != "" && !slices.ContainsFunc(p.Sets, func(set string) bool {
			return set == filter.Input || strings.HasSuffix(set, "-"+filter.Input)
		})
	}), nil
}

// parseTime reads a day, a time, or how long ago.
func parseTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usageErrorf("--%s %q: write 2026-03-01, 2026-03-01T12:00:00Z or 24h", flag, text)
}

func printJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return &exitError{code: exitFault, err: err}
	}
	return nil
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// printEvents writes the table. Texts that come from outside are made printable:
// a branch's name must not be able to steer the terminal.
func printEvents(w io.Writer, events []audit.Event) error {
	if len(events) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "TIME\tCOMMIT\tSIGNED\tRESOURCESET\tINPUT\tEVENT\tBY\tDETAIL")
	for i := range events {
		e := &events[i]
		by := e.Trigger
		if !e.Renderer {
			by = e.Author.Name
		}
		cells := []string{
			e.Time.Format("2006-01-02 15:04:05"), e.Commit[:10], signed(e.Signature), dash(e.ResourceSet), dash(e.Input),
			string(e.Kind), dash(by), detail(e),
		}
		for i := range cells {
			cells[i] = printable(cells[i])
		}
		fmt.Fprintln(table, strings.TrimRight(strings.Join(cells, "\t"), "\t "))
	}
	if err := table.Flush(); err != nil {
		return &exitError{code: exitFault, err: err}
	}
	return nil
}

func signed(s audit.Signature) string {
	switch {
	case s.State == audit.Unsigned:
		return "no"
	case s.Key != "":
		return s.Format + ":" + s.Key[max(0, len(s.Key)-16):]
	}
	return "yes"
}

// detail says what changed, on one line.
func detail(e *audit.Event) string {
	var parts []string
	switch e.Kind {
	case audit.Released:
		return strings.Join(e.Inputs, ", ") + ", by " + dash(e.ReleasedBy)
	case audit.Edited, audit.Reverted, audit.Restored:
		if len(e.Reverts) >= 10 {
			parts = append(parts, "undoes "+e.Reverts[:10])
		}
		for _, f := range e.Files[:min(len(e.Files), 3)] {
			parts = append(parts, f.Change+" "+f.Path)
		}
		if more := len(e.Files) - 3; more > 0 {
			parts = append(parts, "and "+counted(more, "more file"))
		}
		return strings.Join(parts, ", ")
	case audit.Flux, audit.Listed:
		return strings.TrimPrefix(e.Subject, e.ResourceSet+": ")
	case audit.Updated:
		for _, f := range e.Fields {
			parts = append(parts, f.Name+" "+value(f.Old)+" → "+value(f.New))
		}
		if len(e.Fields) == 0 && e.Input != "" {
			parts = append(parts, counted(len(e.Files), "file")+" rendered anew from a changed definition")
		}
	case audit.Added:
		for _, f := range e.Fields {
			parts = append(parts, f.Name+"="+value(f.New))
		}
	}
	if e.Revision != "" {
		revision := e.Revision
		if at := strings.LastIndex(revision, ":"); len(revision)-at > 11 {
			revision = revision[:at+11]
		}
		parts = append(parts, "from "+revision)
	}
	return strings.Join(parts, ", ")
}

// counted is "1 file" or "2 files".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// value is a recorded value in few letters; a commit ID in ten.
func value(v any) string {
	text, ok := v.(string)
	if !ok {
		data, err := json.Marshal(v)
		if err != nil {
			return "?"
		}
		text = string(data)
	}
	if len(text) == 40 && strings.Trim(text, "0123456789abcdef") == "" {
		return text[:10]
	}
	if runes := []rune(text); len(runes) > 40 {
		return string(runes[:39]) + "…"
	}
	if text == "" {
		return `""`
	}
	return text
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// printable replaces what a terminal would act on.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) {
			return '�'
		}
		return c
	}, s)
}
