// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/internal/reconcile"
	"resourceset.example/renderer/internal/secrets"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
)

// inputsFlags are what renderer inputs is told.
type inputsFlags struct {
	file    string
	name    string
	config  string
	secrets string
	output  string
}

func newInputsCommand() *cobra.Command {
	var flags inputsFlags
	cmd := &cobra.Command{
		Use:   "inputs -f FILE",
		Short: "Print what a provider exports now",
		Long: `Asks the ResourceSetInputProviders in a file what there is now, and prints the input
sets that they export, for trying a provider out. Nothing is rendered or written, and
schedule windows do not matter. Skip labels freeze nothing, because nothing is known of
what was exported before: new items that they match are left out.

Secrets that a provider names come from the store of a configuration, or from a folder
with one file for each key: DIR/<namespace>/<name>/<key>. Fields that the annotation
renderer/sensitive lists are masked, and so is every value of these secrets.

As YAML, the input sets of one provider are what renderer build --inputs-from reads.

Exits 0 when every provider answered, 1 when one did not, 2 for a wrong command line.`,
		Example: `  renderer inputs -f provider.yaml
  renderer inputs -f provider.yaml --secrets ./secrets -o yaml > inputs.yaml
  renderer inputs -f providers.yaml --name apps/pull-requests --config config.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return inputs(cmd.Context(), flags, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVarP(&flags.file, "filename", "f", "", "read the providers from `FILE`, - for standard input")
	cmd.Flags().StringVar(&flags.name, "name", "", "the provider to ask, `[NAMESPACE/]NAME`; all in the file if left out")
	cmd.Flags().StringVarP(&flags.config, "config", "c", "", "take secrets from the store that the configuration in `FILE` names")
	cmd.Flags().StringVar(&flags.secrets, "secrets", "", "take secrets from the folder `DIR`")
	cmd.Flags().StringVarP(&flags.output, "output", "o", "table", "print as `FORMAT`: table, yaml or json")
	return cmd
}

func (f inputsFlags) check() error {
	switch {
	case f.file == "":
		return usageErrorf("-f FILE is missing: it names the file with the providers")
	case f.output != "table" && f.output != "yaml" && f.output != "json":
		return usageErrorf("unknown output format %q: use table, yaml or json", f.output)
	case f.config != "" && f.secrets != "":
		return usageErrorf("--config and --secrets both say where secrets are: give one of them")
	case f.file == "-" && f.config == "-":
		return usageErrorf("standard input can be read only once: give - to one of -f and --config")
	}
	return nil
}

// inputs asks all providers, prints what those say that answer, and then what was
// wrong with the others.
func inputs(ctx context.Context, flags inputsFlags, stdin io.Reader, stdout, stderr io.Writer) error {
	if err := flags.check(); err != nil {
		return err
	}
	store, err := flags.store(stdin, stderr)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	chosen, err := flags.providers(stdin, stderr)
	if err != nil {
		return err
	}
	redactor := &secrets.Redactor{}
	clean := app{redactor: redactor}
	tryout := reconcile.NewTryout(store, redactor, readBuildInfo().Version)
	ctx = provider.WithPass(ctx)
	var exports []inputsExport
	var errs []error
	for _, obj := range chosen {
		result, err := tryout.Fetch(ctx, obj)
		if err != nil {
			errs = append(errs, clean.scrubbed(fmt.Errorf("%s: %w", obj, err)))
			continue
		}
		for _, warning := range warningsOf(obj, result) {
			printWarning(stderr, clean.scrubbed(warning))
		}
		exports = append(exports, newInputsExport(obj, result))
	}
	var text strings.Builder
	if err := printInputs(&text, exports, flags.output, len(chosen) > 1); err != nil {
		return &exitError{code: exitFault, err: err}
	}
	if _, err := io.WriteString(stdout, redactor.Scrub(text.String())); err != nil {
		return &exitError{code: exitFault, err: fmt.Errorf("standard output: %w", err)}
	}
	if len(errs) > 0 {
		return &exitError{code: exitFault, err: errors.Join(errs...)}
	}
	return nil
}

// store is where the secrets are that providers name.
func (f inputsFlags) store(stdin io.Reader, stderr io.Writer) (secretStore, error) {
	switch {
	case f.secrets != "":
		return secrets.NewStore(f.secrets), nil
	case f.config == "":
		return noSecrets{}, nil
	}
	cfg, warnings, err := config.Read(f.config, stdin)
	for _, w := range warnings {
		printWarning(stderr, w)
	}
	if err != nil {
		return nil, err
	}
	return openSecrets(cfg)
}

// noSecrets is the store of somebody who named none.
type noSecrets struct{}

func (noSecrets) Get(_ context.Context, namespace, name string) (map[string][]byte, error) {
	return nil, &noSecretsError{namespace + "/" + name}
}

type noSecretsError struct{ name string }

func (e *noSecretsError) Error() string {
	return fmt.Sprintf("secret %s: no store of secrets is named", e.name)
}

// Suggestion is what to do about it.
func (e *noSecretsError) Suggestion() string {
	return fmt.Sprintf("give --config FILE, or --secrets DIR with the keys of the secret in DIR/%s/", e.name)
}

// providers are those in the file, or the one that --name names.
func (f inputsFlags) providers(stdin io.Reader, stderr io.Writer) ([]*api.ResourceSetInputProvider, error) {
	defs, err := readDefinitions(f.file, stdin, func(w *api.Fault) { printWarning(stderr, w) })
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return nil, err
	case err != nil:
		return nil, &exitError{code: exitFault, err: err}
	}
	var names []string
	var chosen []*api.ResourceSetInputProvider
	for _, obj := range defs.Providers {
		names = append(names, obj.NamespacedName())
		if f.name == "" || f.name == obj.Name || f.name == obj.NamespacedName() {
			chosen = append(chosen, obj)
		}
	}
	switch {
	case len(names) == 0:
		return nil, &exitError{code: exitFault, err: fmt.Errorf("%s holds no %s", f.file, api.KindInputProvider)}
	case len(chosen) == 0:
		return nil, usageErrorf("%s holds no %s %s, but %s", f.file, api.KindInputProvider, f.name, strings.Join(names, ", "))
	}
	return chosen, nil
}

// warningsOf is what somebody should know who looks at the input sets.
func warningsOf(obj *api.ResourceSetInputProvider, result provider.Result) []error {
	var warnings []error
	warn := func(hint, format string, args ...any) {
		warnings = append(warnings, &api.Fault{Object: obj.String(), Msg: fmt.Sprintf(format, args...), Hint: hint})
	}
	for _, text := range result.Warnings {
		warn("", "%s", text)
	}
	if result.Forks > 0 {
		warn(`the annotation `+api.AnnotationAllowForks+`: "true" lets them in, and with them whoever can open one`,
			"%s from forks left out", count(result.Forks, "change request"))
	}
	if result.Held > 0 {
		warn("a label of spec.skip.labels keeps them out until it is gone, or there", "%s held back", count(result.Held, "new item"))
	}
	return warnings
}
