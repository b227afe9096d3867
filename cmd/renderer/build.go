// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/expand"
)

// buildFlags are the files that renderer build reads.
type buildFlags struct {
	file      string
	name      string
	inputs    string
	providers string
}

func newBuildCommand() *cobra.Command {
	var flags buildFlags
	cmd := &cobra.Command{
		Use:   "build -f FILE",
		Short: "Print the objects of one ResourceSet",
		Long: `Renders one ResourceSet without a cluster, a repository or a network, and prints
its objects as a stream of YAML documents, labelled as the operator labels them.
With steps, a line "# step: NAME" stands before the objects of each.

The inputs are those of the ResourceSet itself. A list in a file can take their
place; inputs of providers come from Static providers in a file. ConfigMaps beside
the ResourceSet in FILE are there for copyFrom and checksumFrom.

Exits 0 when all objects were printed, 1 on a fault, 2 for a wrong command line.
When anything fails nothing is printed on standard output.`,
		Example: `  renderer build -f podinfo.yaml
  renderer build -f podinfo.yaml --inputs-from inputs.yaml
  renderer build -f podinfo.yaml --inputs-from-provider providers.yaml
  kustomize build ./apps | renderer build -f - --name podinfo | kubectl diff -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return build(cmd.Context(), flags, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVarP(&flags.file, "filename", "f", "", "read the ResourceSet from `FILE`, - for standard input")
	cmd.Flags().StringVar(&flags.name, "name", "", "the ResourceSet to render, `[NAMESPACE/]NAME`, when the file holds several")
	cmd.Flags().StringVarP(&flags.inputs, "inputs-from", "i", "", "read the input sets from `FILE`, a list in YAML or JSON, - for standard input")
	cmd.Flags().StringVar(&flags.providers, "inputs-from-provider", "", "read Static ResourceSetInputProviders from `FILE`, - for standard input")
	return cmd
}

func build(ctx context.Context, flags buildFlags, stdin io.Reader, stdout, stderr io.Writer) error {
	files := []string{flags.file, flags.inputs, flags.providers}
	if flags.file == "" {
		return usageErrorf("-f FILE is missing: it names the file with the ResourceSet")
	}
	if slices.Index(files, "-") != lastIndex(files, "-") {
		return usageErrorf("standard input can be read only once: give - to one of -f, --inputs-from and --inputs-from-provider")
	}
	warn := func(w *api.Fault) {
		fmt.Fprintf(stderr, "renderer: warning: %s\n", w.Error())
		if w.Hint != "" {
			fmt.Fprintf(stderr, "renderer: hint: %s\n", w.Hint)
		}
	}
	objects, err := buildObjects(ctx, flags, stdin, warn)
	if err != nil {
		var exit *exitError
		if errors.As(err, &exit) {
			return err
		}
		return &exitError{code: exitFault, err: err}
	}
	if err := expand.EncodeStream(stdout, objects); err != nil {
		return &exitError{code: exitFault, err: err}
	}
	return nil
}

func lastIndex(list []string, item string) int {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] == item {
			return i
		}
	}
	return -1
}

// buildObjects renders the ResourceSet that the flags name.
func buildObjects(ctx context.Context, flags buildFlags, stdin io.Reader, warn func(*api.Fault)) ([]expand.Object, error) {
	defs, err := readDefinitions(flags.file, stdin, warn)
	if err != nil {
		return nil, err
	}
	rs, err := chooseResourceSet(flags, defs.ResourceSets)
	if err != nil {
		return nil, err
	}
	exports, err := buildInputs(rs, flags, defs.Providers, stdin, warn)
	if err != nil {
		return nil, err
	}
	program, err := expand.Compile(rs)
	if err != nil {
		return nil, err
	}
	sets, err := program.Sets(exports)
	if err != nil {
		return nil, err
	}
	for _, c := range defs.ConfigMaps {
		if _, written := c.Lines["metadata.namespace"]; !written {
			c.Namespace = rs.Namespace
		}
	}
	rendering := program.Render(ctx, sets, expand.Options{Structure: expand.StructureWarn, ConfigMaps: defs.ConfigMapsByName()})
	if err := renderingError(rendering); err != nil {
		return nil, err
	}
	for i := range rendering.Objects {
		if fault := rendering.Objects[i].Unresolved; fault != nil {
			warn(fault) // printed as it is; the service leaves such an input set as it is committed
		}
	}
	for _, w := range rendering.Warnings {
		warn(w)
	}
	if len(rendering.Objects) == 0 {
		return nil, &api.Fault{Pos: rs.Pos, Object: rs.String(), Msg: "yields no objects",
			Hint: "check the conditions in its templates, and that there are input sets"}
	}
	return rendering.Objects, nil
}

// renderingError joins what went wrong with the input sets.
func renderingError(r *expand.Rendering) error {
	var errs []error
	for _, failed := range r.Failed {
		errs = append(errs, failed.Err)
	}
	return errors.Join(errs...)
}

// readDefinitions parses a file of definitions. Its faults are the error.
func readDefinitions(name string, stdin io.Reader, warn func(*api.Fault)) (*api.Definitions, error) {
	data, err := readFile(name, stdin)
	if err != nil {
		return nil, err
	}
	defs := api.Parse(name, data)
	for _, w := range defs.Warnings {
		warn(w)
	}
	var errs []error
	for _, fault := range defs.Faults {
		errs = append(errs, fault)
	}
	return defs, errors.Join(errs...)
}

// readFile is the content of a file; a file that cannot be read is a usage fault.
func readFile(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		data, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return data, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	return data, nil
}

// chooseResourceSet is the only one, or the one that --name names.
func chooseResourceSet(flags buildFlags, all []*api.ResourceSet) (*api.ResourceSet, error) {
	var names []string
	var chosen []*api.ResourceSet
	for _, rs := range all {
		names = append(names, rs.NamespacedName())
		if flags.name == "" || flags.name == rs.Name || flags.name == rs.NamespacedName() {
			chosen = append(chosen, rs)
		}
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%s holds no %s", flags.file, api.KindResourceSet)
	case len(chosen) == 0:
		return nil, usageErrorf("%s holds no %s %s, but %s", flags.file, api.KindResourceSet, flags.name, strings.Join(names, ", "))
	case len(chosen) > 1:
		return nil, usageErrorf("%s holds several ResourceSets, choose one with --name: %s", flags.file, strings.Join(names, ", "))
	}
	return chosen[0], nil
}

// buildInputs takes the inputs from the files that the flags name.
func buildInputs(rs *api.ResourceSet, flags buildFlags, own []*api.ResourceSetInputProvider, stdin io.Reader, warn func(*api.Fault)) ([]expand.Export, error) {
	if flags.inputs != "" {
		data, err := readFile(flags.inputs, stdin)
		if err != nil {
			return nil, err
		}
		if rs.Spec.Inputs, err = expand.DecodeInputs(data); err != nil {
			return nil, fmt.Errorf("%s: %w", flags.inputs, err)
		}
	}
	providers := own
	if flags.providers != "" {
		defs, err := readDefinitions(flags.providers, stdin, warn)
		if err != nil {
			return nil, err
		}
		providers = append(providers, defs.Providers...)
	}
	if len(rs.Spec.InputsFrom) == 0 || flags.inputs != "" && flags.providers == "" {
		return nil, nil
	}
	if flags.providers == "" && len(providers) == 0 {
		return nil, &api.Fault{Pos: rs.At("spec.inputsFrom"), Object: rs.String(), Msg: "spec.inputsFrom gets its inputs from providers, which build does not ask",
			Hint: "give the input sets with --inputs-from FILE, or Static providers with --inputs-from-provider FILE"}
	}
	for _, provider := range providers {
		if _, written := provider.Lines["metadata.namespace"]; !written {
			provider.Namespace = rs.Namespace // as the namespace of an apply would be
		}
	}
	selected, err := expand.SelectProviders(rs, providers)
	if len(selected) > 0 {
		err = passOver(err, warn)
	}
	if err != nil {
		return nil, err
	}
	return staticExports(selected)
}

// passOver makes warnings of references to providers that are not in the file: a
// file for a preview need not hold all of them.
func passOver(err error, warn func(*api.Fault)) error {
	var errs []error
	for _, e := range flatten(err) {
		var missing *expand.NoProviderError
		switch {
		case errors.As(e, &missing):
			warn(missing.Fault)
		case e != nil:
			errs = append(errs, e)
		}
	}
	return errors.Join(errs...)
}

// staticExports are the inputs of providers that need no network.
func staticExports(providers []*api.ResourceSetInputProvider) ([]expand.Export, error) {
	var exports []expand.Export
	var errs []error
	for _, provider := range providers {
		if provider.Spec.Type != api.TypeStatic {
			errs = append(errs, &api.Fault{Pos: provider.At("spec.type"), Object: provider.String(),
				Msg:  fmt.Sprintf("type %s is not rendered offline, only %s is", provider.Spec.Type, api.TypeStatic),
				Hint: "give its input sets with --inputs-from FILE, or stand in a Static provider of the same name"})
			continue
		}
		exports = append(exports, expand.Export{Kind: api.KindInputProvider, Namespace: provider.Namespace,
			Name: provider.Name, Type: provider.Spec.Type, Inputs: []api.Input{provider.Spec.DefaultValues}})
	}
	return exports, errors.Join(errs...)
}
