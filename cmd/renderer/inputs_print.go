// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"resourceset.example/renderer/internal/reconcile"
	"resourceset.example/renderer/pkg/api"
	"resourceset.example/renderer/pkg/source/provider"
)

// masked stands for the value of a sensitive field.
const masked = "(sensitive)"

// An inputsExport is what one provider exports, as it is printed.
type inputsExport struct {
	Provider string      `json:"provider"` // namespace/name
	Type     string      `json:"type"`
	Matched  int         `json:"matched"` // before filter.limit
	Forks    int         `json:"forks"`   // left out
	Held     int         `json:"held"`    // by skip labels
	Inputs   []api.Input `json:"inputs"`
}

func newInputsExport(obj *api.ResourceSetInputProvider, result provider.Result) inputsExport {
	e := inputsExport{
		Provider: obj.NamespacedName(), Type: obj.Spec.Type, Matched: max(result.Matched, len(result.Inputs)), Forks: result.Forks, Held: result.Held,
		Inputs: make([]api.Input, len(result.Inputs)),
	}
	for i, input := range result.Inputs {
		e.Inputs[i] = maps.Clone(input)
		for _, field := range reconcile.SensitiveFields(obj) {
			if _, ok := input[field]; ok {
				e.Inputs[i][field] = masked
			}
		}
	}
	return e
}

// printInputs prints what was exported; with titles where there are several providers.
func printInputs(w io.Writer, exports []inputsExport, format string, titles bool) error {
	if format == "json" {
		return printJSON(w, map[string]any{"providers": append([]inputsExport{}, exports...)})
	}
	for i, e := range exports {
		if titles && i > 0 {
			fmt.Fprintln(w, map[string]string{"yaml": "---", "table": ""}[format])
		}
		if titles {
			fmt.Fprintf(w, "# %s (%s): %s\n", e.Provider, e.Type, count(len(e.Inputs), "input set"))
		}
		var err error
		if format == "yaml" {
			err = printInputsYAML(w, e.Inputs)
		} else {
			err = printInputsTable(w, e.Inputs)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func printInputsYAML(w io.Writer, inputs []api.Input) error {
	text, err := yaml.Marshal(inputs)
	if err != nil {
		return fmt.Errorf("input sets as YAML: %w", err)
	}
	_, err = w.Write(text)
	return err
}

// printInputsTable has a column for each field, the id first.
func printInputsTable(w io.Writer, inputs []api.Input) error {
	fields := map[string]bool{}
	for _, input := range inputs {
		for field := range input {
			fields[field] = true
		}
	}
	if len(fields) == 0 {
		_, err := fmt.Fprintln(w, "no input sets")
		return err
	}
	delete(fields, "id")
	columns := slices.Sorted(maps.Keys(fields))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\t"+strings.ToUpper(strings.Join(columns, "\t")))
	for _, input := range inputs {
		cells := []string{cell(input["id"])}
		for _, column := range columns {
			cells = append(cells, cell(input[column]))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

// widestCell is how much of a value a table shows; YAML and JSON have all of it.
const widestCell = 40

func cell(value any) string {
	text := ""
	switch v := value.(type) {
	case nil:
	case string:
		text = v
	default:
		if data, err := json.Marshal(v); err == nil {
			text = string(data)
		}
	}
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	if runes := []rune(text); len(runes) > widestCell {
		text = string(runes[:widestCell-1]) + "…"
	}
	return dash(text)
}
