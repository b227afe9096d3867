// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"resourceset.example/renderer/pkg/api"
)

// A validation is what one run of renderer validate found.
type validation struct {
	ResourceSets int           `json:"resourceSets"`
	Providers    int           `json:"providers"`
	Receivers    int           `json:"receivers"`
	Faults       []validateRow `json:"faults"`
	Warnings     []validateRow `json:"warnings"`
}

// A validateRow is a fault as JSON.
type validateRow struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Object  string `json:"object,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func newValidateCommand() *cobra.Command {
	var output, exclude string
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check definitions without a cluster, a repository or a network",
		Long: `Checks ResourceSets, ResourceSetInputProviders and Receivers: every field, the
templates, and references from one to another. A folder is read as the service
reads source.path: built with kustomize where it has a kustomization.yaml, else
every *.yaml and *.yml file below it. ConfigMaps are there for copyFrom and
checksumFrom; other kinds of objects are passed over.

Prints one line per fault or warning with file and line, and a hint below it.
A reference to a provider that does not exist is a fault where only folders are
given, and a warning where single files are, since the rest may be elsewhere.

Exits 0 without faults, 1 with some, 2 for a wrong command line.`,
		Example: `  renderer validate ./clusters/preview
  renderer validate ./clusters/preview --exclude ./clusters/preview/generated
  renderer validate podinfo.yaml -o json
  kubectl get rset,rsip -A -o yaml | renderer validate -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("PATH is missing: name a file or a folder, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return usageErrorf("unknown output format %q: use json", output)
			}
			defs, err := readPaths(cmd.Context(), args, exclude, cmd.InOrStdin())
			if err != nil {
				return err
			}
			checkDefinitions(cmd.Context(), defs, wholeFolders(args))
			return report(defs, output, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "print as `FORMAT`: json")
	cmd.Flags().StringVar(&exclude, "exclude", "", "leave out a `FOLDER`, such as the target path")
	return cmd
}

// report prints what was found, and turns faults into the exit code.
func report(defs *api.Definitions, output string, stdout, stderr io.Writer) error {
	if err := printValidation(defs, output, stdout); err != nil {
		return &exitError{code: exitFault, err: fmt.Errorf("standard output: %w", err)}
	}
	found := count(len(defs.ResourceSets), "ResourceSet") + ", " + count(len(defs.Providers), "provider")
	if len(defs.Receivers) > 0 {
		found += ", " + count(len(defs.Receivers), "receiver")
	}
	fmt.Fprintf(stderr, "renderer: %s: %s, %s\n", found, count(len(defs.Faults), "fault"), count(len(defs.Warnings), "warning"))
	if len(defs.Faults) > 0 {
		return &exitError{code: exitFault}
	}
	return nil
}

func printValidation(defs *api.Definitions, output string, w io.Writer) error {
	if output == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false) // placeholders stay readable
		return enc.Encode(validation{
			ResourceSets: len(defs.ResourceSets), Providers: len(defs.Providers), Receivers: len(defs.Receivers),
			Faults: rows(defs.Faults), Warnings: rows(defs.Warnings),
		})
	}
	for _, f := range defs.Faults {
		if err := printRow(w, f, ""); err != nil {
			return err
		}
	}
	for _, f := range defs.Warnings {
		if err := printRow(w, f, "warning: "); err != nil {
			return err
		}
	}
	return nil
}

func printRow(w io.Writer, f *api.Fault, word string) error {
	text := word + f.Msg
	if f.Object != "" {
		text = word + f.Object + ": " + f.Msg
	}
	if pos := f.Pos.String(); pos != "" {
		text = pos + ": " + text
	}
	if f.Hint != "" {
		text += "\n    hint: " + f.Hint
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

func rows(faults []*api.Fault) []validateRow {
	list := make([]validateRow, len(faults))
	for i, f := range faults {
		list[i] = validateRow{File: f.Pos.File, Line: f.Pos.Line, Object: f.Object, Message: f.Msg, Hint: f.Hint}
	}
	return list
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
