// SPDX-License-Identifier: Apache-2.0

// Command renderer turns ResourceSets and their inputs into manifests, and pushes
// them as commits that Flux applies.
//
// Data goes to standard output, everything said about it to standard error. The
// exit code is 0 when all is in order, 1 when something failed or was held back,
// and 2 for a wrong command line or configuration.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	_ "time/tzdata" // provider schedules name time zones; the image has no zone files

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes.
const (
	exitOK    = 0
	exitFault = 1 // something failed or was held back
	exitUsage = 2 // wrong flags, arguments or configuration
)

// An exitError ends the program with a code of its own. Err may be nil when the
// command has said already what there is to say.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageErrorf is a fault of the command line or the configuration.
func usageErrorf(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// run executes one command and returns its exit code. It is main without the
// process, so that tests can call it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		// Cobra's own errors: unknown commands and flags.
		printError(stderr, err)
		if strings.HasPrefix(err.Error(), "unknown ") || strings.Contains(err.Error(), "flag") {
			fmt.Fprintln(stderr, "renderer: hint: renderer --help lists the commands")
		}
		return exitUsage
	}
	if exit.err != nil {
		printError(stderr, exit.err)
	}
	return exit.code
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "renderer",
		Short: "Render Flux ResourceSets into commits that Flux applies",
		Long: `renderer reads ResourceSet and ResourceSetInputProvider definitions from a Git
repository, fetches their inputs, renders the manifests of each input set into a
generated folder, and commits and pushes them. Flux applies and prunes from there.`,
		Example: `  renderer demo
  renderer validate ./clusters/preview
  renderer build -f podinfo.yaml --inputs-from inputs.yaml
  renderer run --config config.yaml --once`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       readBuildInfo().Version,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetVersionTemplate("renderer {{.Version}}\n")
	root.AddCommand(newRunCommand(), newDiffCommand(), newApproveCommand(), newReleaseCommand(), newBuildCommand(), newInputsCommand(), newValidateCommand(), newHistoryCommand(), newVerifyCommand(), newHooksCommand(), newDemoCommand(), newVersionCommand())
	return root
}

// A suggester is an error that knows what the user can do about it.
type suggester interface{ Suggestion() string }

// printError writes one line per error, each with its hint below. Joined errors
// are printed apart, so that every fault has a line of its own.
func printError(w io.Writer, err error) { printFaults(w, "error", err) }

// printWarning does the same for what does not stop the command.
func printWarning(w io.Writer, err error) { printFaults(w, "warning", err) }

func printFaults(w io.Writer, word string, err error) {
	for _, e := range flatten(err) {
		lines := strings.Split(strings.TrimRight(e.Error(), "\n"), "\n")
		fmt.Fprintf(w, "renderer: %s: %s\n", word, lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(w, "  %s\n", line)
		}
		var s suggester
		if errors.As(e, &s) && s.Suggestion() != "" {
			fmt.Fprintf(w, "renderer: hint: %s\n", s.Suggestion())
		}
	}
}

// flatten takes joined errors apart, depth first.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	if exit, ok := err.(*exitError); ok && exit.err != nil {
		return flatten(exit.err)
	}
	return []error{err}
}
