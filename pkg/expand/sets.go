// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/adler32"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"resourceset.example/renderer/pkg/api"
)

// maxPermutations is the most input sets that Permute may make, as in the operator.
const maxPermutations = 10000

// A contribution is what one provider, or the ResourceSet itself, adds: its sets
// with the built-in fields, and what each is called.
type contribution struct {
	export Export
	sets   []api.Input
	labels []setLabel
}

// Sets combines the inline inputs of the ResourceSet and what its providers export
// to the sets that it is rendered for. Flatten puts them end to end: inline first,
// then the providers by name. Permute combines each set of one provider with each
// of every other; the sets are found under keys made from the providers' names.
func (p *Program) Sets(exports []Export) ([]Set, error) {
	contributions := []*contribution{p.inline()}
	exports = slices.SortedStableFunc(slices.Values(exports), func(a, b Export) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
	for _, export := range exports {
		c, err := p.contribution(export)
		if err != nil {
			return nil, err
		}
		contributions = append(contributions, c)
	}
	var sets []Set
	var err error
	switch strategy := p.rs.Spec.InputStrategy; strategy {
	case api.StrategyFlatten, "":
		sets = p.flatten(contributions)
	case api.StrategyPermute:
		sets, err = p.permute(contributions)
	default:
		err = faultOf(p.rs, "spec.inputStrategy", "use Flatten or Permute", "unknown input strategy %q", strategy)
	}
	if err != nil {
		return nil, err
	}
	if err := p.directories(sets); err != nil {
		return nil, err
	}
	if err := p.nameTwice(sets); err != nil {
		return nil, err
	}
	return sets, nil
}

// inline is what the ResourceSet itself contributes. Its sets get no id. Several
// may be called the same: their author sees them all, so the later ones are told
// apart by their content, or by their number.
func (p *Program) inline() *contribution {
	export := Export{Kind: api.KindResourceSet, Namespace: p.rs.Namespace, Name: p.rs.Name, Inputs: p.rs.Spec.Inputs}
	c := &contribution{export: export}
	reference := export.reference()
	fields, read := p.labelling(export)
	seen := make(map[string]bool, len(export.Inputs))
	for i, in := range export.Inputs {
		set := builtIn(in, reference)
		label := labelOf(export, set, fields, read)
		if seen[label.text] {
			label.text += " " + contentDigest(in)
			label.digest = true
		}
		if seen[label.text] {
			label.text += " " + strconv.Itoa(i)
		}
		seen[label.text] = true
		c.sets = append(c.sets, set)
		c.labels = append(c.labels, label)
	}
	return c
}

// contribution gives the sets of a provider their built-in fields. A provider
// never has two sets that are called the same.
func (p *Program) contribution(export Export) (*contribution, error) {
	c := &contribution{export: export}
	reference := export.reference()
	fields, read := p.labelling(export)
	seen := make(map[string]int, len(export.Inputs))
	for i, in := range export.Inputs {
		set := builtIn(in, reference)
		if export.Type == api.TypeStatic {
			set["id"] = checksum(export.Name)
		}
		label := labelOf(export, set, fields, read)
		if scalarText(set["id"]) == "" {
			set["id"] = checksum(label.text)
		}
		if at, twice := seen[label.text]; twice {
			return nil, p.duplicateError(export, label, at, i)
		}
		seen[label.text] = i
		c.sets = append(c.sets, set)
		c.labels = append(c.labels, label)
	}
	return c, nil
}

// labelling are the fields that the sets of an export are called by, and the
// function that leaves what the templates read of one.
func (p *Program) labelling(export Export) (nameFields []string, read func(api.Input) api.Input) {
	if p.rs.Spec.InputStrategy != api.StrategyPermute {
		return p.NameFields(), p.fields.Project
	}
	key := permuteKey(export.Name)
	return p.nameFieldsBelow(key), p.fields.below(key).Project
}

func (p *Program) duplicateError(export Export, label setLabel, first, second int) error {
	shown := label.shown
	if shown == "" {
		shown = label.text
	}
	return faultOf(p.rs, "spec.inputsFrom", "every input set needs an id of its own, or different values for the names of its objects",
		"%s %s/%s exports duplicate ids: inputs %d and %d are both %q", export.Kind, export.Namespace, export.Name, first, second, shown)
}

// builtIn is a copy of in with the built-in field "provider".
func builtIn(in api.Input, reference map[string]any) api.Input {
	set := make(api.Input, len(in)+2)
	maps.Copy(set, in)
	set["provider"] = reference
	return set
}

// reference is what templates see as inputs.provider.
func (e *Export) reference() map[string]any {
	return map[string]any{"apiVersion": api.APIVersion, "kind": e.Kind, "name": e.Name, "namespace": e.Namespace}
}

// checksum is the id that the operator computes of a text.
func checksum(text string) string {
	return strconv.FormatUint(uint64(adler32.Checksum([]byte(text))), 10)
}

func (p *Program) flatten(contributions []*contribution) []Set {
	var sets []Set
	for _, c := range contributions {
		for i, in := range c.sets {
			set := Set{ID: scalarText(in["id"]), Provider: c.export.Name, Inputs: in, Parts: []Part{c.part(i, "")}}
			set.Name = c.labels[i].folder(p.rs)
			set.Origin = c.origin(i, set.Name)
			sets = append(sets, set)
		}
	}
	return sets
}

// part is what inputs.lock records of the set i of c.
func (c *contribution) part(i int, key string) Part {
	return Part{Kind: c.export.Kind, Provider: c.export.Name, Type: c.export.Type, Key: key, Inputs: c.export.Inputs[i]}
}

func (c *contribution) origin(i int, name string) string {
	if c.export.Kind == api.KindResourceSet {
		return fmt.Sprintf("inputs[%d]", i)
	}
	return "input set " + name
}

// permute makes every combination of one set of each contribution that has any.
// The first contribution varies slowest.
func (p *Program) permute(contributions []*contribution) ([]Set, error) {
	contributions = slices.DeleteFunc(contributions, func(c *contribution) bool { return len(c.sets) == 0 })
	if len(contributions) == 0 {
		return nil, nil
	}
	keys, err := p.permuteKeys(contributions)
	if err != nil {
		return nil, err
	}
	total := 1
	for _, c := range contributions {
		total *= len(c.sets)
		if total > maxPermutations {
			return nil, faultOf(p.rs, "spec.inputStrategy", "reduce the inputs, or split the ResourceSet",
				"Permute makes more than %d permutations with the inputs of %s", maxPermutations, c.export.Name)
		}
	}
	sets := make([]Set, 0, total)
	chosen := make([]int, len(contributions))
	for range total {
		sets = append(sets, p.permutation(contributions, keys, chosen))
		for i := len(chosen) - 1; i >= 0; i-- {
			chosen[i]++
			if chosen[i] < len(contributions[i].sets) {
				break
			}
			chosen[i] = 0
		}
	}
	return sets, nil
}

func (p *Program) permutation(contributions []*contribution, keys []string, chosen []int) Set {
	inputs := make(api.Input, len(keys)+1)
	labels := make([]setLabel, len(keys))
	choice := make([]string, len(keys))
	parts := make([]Part, len(keys))
	for i, c := range contributions {
		inputs[keys[i]] = c.sets[chosen[i]]
		labels[i] = c.labels[chosen[i]]
		parts[i] = c.part(chosen[i], keys[i])
		choice[i] = fmt.Sprintf("%s=%d", keys[i], chosen[i])
	}
	id := checksum(strings.Join(choice, "/"))
	inputs["id"] = id
	name := permutationFolder(p.rs, labels)
	origin := fmt.Sprintf("input set %s (%s)", name, strings.Join(choice, ", "))
	return Set{Name: name, ID: id, Origin: origin, Inputs: inputs, Parts: parts}
}

func (p *Program) permuteKeys(contributions []*contribution) ([]string, error) {
	names := make(map[string]string)
	var keys []string
	for _, c := range contributions {
		key := permuteKey(c.export.Name)
		if key == "" || key == "id" {
			return nil, faultOf(p.rs, "spec.inputsFrom", "rename it",
				"the name %q of %s makes no key for Permute", c.export.Name, c.export.Kind)
		}
		if other, twice := names[key]; twice {
			return nil, faultOf(p.rs, "spec.inputsFrom", "rename one of them",
				"%q and %q make the same key inputs.%s for Permute", other, c.export.Name, key)
		}
		names[key] = c.export.Name
		keys = append(keys, key)
	}
	return keys, nil
}

// permuteKey is the field under which templates find the sets of a provider:
// lower case, a run of punctuation and blanks one underscore, only a-z and 0-9 else.
func permuteKey(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) })
	var kept []string
	for _, word := range words {
		word = strings.Map(func(r rune) rune {
			if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
				return r
			}
			return -1
		}, word)
		if word != "" {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, "_")
}

// directories gives the sets the folders that the annotation renderer/directory
// names, if the ResourceSet has it.
func (p *Program) directories(sets []Set) error {
	if p.directory == nil {
		return nil
	}
	w := p.newWorker(context.Background(), p.directory) // short of loops that maxSteps ends soon enough
	var errs []error
	for i := range sets {
		w.start(&sets[i])
		text, err := w.execute(0)
		if err != nil {
			errs = append(errs, p.failure(p.directory, &sets[i], err))
			continue
		}
		sets[i].Name = directoryName(strings.TrimSpace(string(text)))
	}
	return errors.Join(errs...)
}

// nameTwice is an error when two sets would share a folder.
func (p *Program) nameTwice(sets []Set) error {
	seen := make(map[string]int, len(sets))
	for i := range sets {
		if at, twice := seen[sets[i].Name]; twice {
			return faultOf(p.rs, "spec.inputs", "give each a field of its own that its objects are named after, or an id",
				"%s and %s have the same name %s", sets[at].Origin, sets[i].Origin, sets[i].Name)
		}
		seen[sets[i].Name] = i
	}
	return nil
}
