// SPDX-License-Identifier: Apache-2.0

// Package listing merges a kustomization.yaml that renderer and people write.
//
// Renderer lists its files there; people may add resources of their own, patches or
// images, or take one of ours off the list. So the file is merged like any file that
// two sides change: what renderer listed last is known from its record, what is there
// was made of that by people, and what renderer lists now is applied to it. Nothing
// has to be remembered for that, and whoever has the two records gets the same bytes:
// the loop that writes the file, and the audit that proves it.
//
// One thing is never written, whoever wants it: an entry of ours without a file. The
// folder would not build, and nothing of it would be applied any more.
package listing

import (
	"bytes"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"resourceset.example/renderer/pkg/expand"
)

// A Merge is what a list is made from.
type Merge struct {
	Current []byte   // the file as it is; nil when there is none
	Before  []string // what the record says that renderer listed last
	Now     []string // what it lists now
	// Was tells whether an entry's file was there before the change, and Is whether it is
	// afterwards. Nil stands for yes.
	Was, Is func(entry string) bool
	// Stale tells an entry that can only be one of ours, and leads nowhere. Nil stands
	// for none.
	Stale func(entry string) bool
}

// A List is a merged file.
type List struct {
	Data []byte
	// Plain is Data as versions wrote it that did not keep the lines of a file that
	// others have changed; the same content.
	Plain []byte

	Added   []string // entries of others, in their order
	Fields  []string // fields other than a list of resources has, sorted
	Removed []string // entries of ours that somebody took off the list
	Missing []string // entries of ours that are not listed because they have no file
	Stale   []string // entries in the file as it is that lead nowhere
}

// Edited reports that somebody else had a hand in the file.
func (l *List) Edited() bool { return len(l.Added)+len(l.Fields)+len(l.Removed) > 0 }

// Of merges. An error means that the file as it is cannot be read.
func Of(m Merge) (*List, error) {
	current, err := parse(m.Current)
	if err != nil {
		return nil, err
	}
	list := &List{}
	before, now, there := setOf(m.Before), setOf(m.Now), map[string]bool{}
	for _, entry := range current.entries {
		clean := path.Clean(entry)
		switch {
		case now[clean]:
			there[clean] = true
			if !holds(m.Is, clean) {
				list.Stale = append(list.Stale, clean)
			}
		case before[clean]: // ours, and wanted no more
		case m.Stale != nil && m.Stale(clean):
			list.Stale = append(list.Stale, clean)
		default:
			list.Added = append(list.Added, entry)
		}
	}
	var ours []string
	for _, entry := range slices.Compact(slices.Sorted(slices.Values(m.Now))) {
		switch {
		case !holds(m.Is, entry):
			list.Missing = append(list.Missing, entry)
		case m.Current != nil && !there[entry] && before[entry] && holds(m.Was, entry):
			list.Removed = append(list.Removed, entry)
		default:
			ours = append(ours, entry)
		}
	}
	list.Fields = current.fields
	list.Data, list.Plain = current.with(ours, list.Added)
	return list, nil
}

func holds(test func(string) bool, entry string) bool { return test == nil || test(entry) }

func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, entry := range list {
		set[entry] = true
	}
	return set
}

// A file is a kustomization.yaml taken apart.
type file struct {
	data    []byte
	doc     map[string]any
	entries []string
	fields  []string // other than those that a list has
}

func parse(data []byte) (*file, error) {
	f := &file{data: data}
	if err := yaml.Unmarshal(data, &f.doc); err != nil {
		return nil, err
	}
	resources, isList := f.doc["resources"].([]any)
	if !isList && f.doc["resources"] != nil {
		return nil, errors.New("resources is not a list")
	}
	for _, value := range resources {
		entry, isText := value.(string)
		if !isText {
			return nil, errors.New("resources holds something that is not a path")
		}
		f.entries = append(f.entries, entry)
	}
	for _, field := range slices.Sorted(maps.Keys(f.doc)) {
		if field != "apiVersion" && field != "kind" && field != "resources" {
			f.fields = append(f.fields, field)
		}
	}
	return f, nil
}

// with is the file with other entries. A file that is as renderer writes it stays
// so; of any other, lines and comments of others stay where that can be done.
func (f *file) with(ours, foreign []string) (data, plain []byte) {
	canonical := expand.Kustomization(ours)
	if len(f.doc) == 0 || len(foreign) == 0 && bytes.Equal(f.data, expand.Kustomization(f.entries)) {
		return canonical, canonical
	}
	all := slices.Concat(ours, foreign)
	doc := maps.Clone(f.doc)
	if doc == nil {
		doc = map[string]any{}
	}
	entries := make([]any, len(all))
	for i, entry := range all {
		entries[i] = entry
	}
	doc["resources"] = entries
	plain, err := yaml.Marshal(doc)
	if err != nil {
		plain = f.data // it was read from YAML: this cannot be
	}
	if edited, ok := f.edit(all); ok && len(all) > 0 { // without entries a literal [] must stand there
		return edited, plain
	}
	return plain, plain
}

// edit takes lines out of the text and adds some after the last entry. It is false
// where that does not give the entries that are wanted and all else as it was.
func (f *file) edit(wanted []string) ([]byte, bool) {
	want := map[string]bool{}
	for _, entry := range wanted {
		want[path.Clean(entry)] = true
	}
	var out []string
	last, indent := -1, ""
	seen := map[string]bool{}
	for line := range strings.Lines(string(f.data)) {
		if entry, before, ok := f.entry(line); ok {
			clean := path.Clean(entry)
			if !want[clean] || seen[clean] {
				continue
			}
			seen[clean] = true
			last, indent = len(out)+1, before
		} else if last < 0 && strings.TrimRight(line, " \n") == "resources:" {
			last = len(out) + 1
		}
		out = append(out, line)
	}
	if last < 0 {
		return nil, false
	}
	var fresh []string
	for _, entry := range wanted {
		if !seen[path.Clean(entry)] {
			fresh = append(fresh, indent+"- "+strconv.Quote(entry)+"\n")
		}
	}
	data := []byte(strings.Join(slices.Insert(out, last, fresh...), ""))
	again, err := parse(data)
	if err != nil || !slices.Equal(cleaned(again.entries), cleaned(wanted)) || !sameBut(f.doc, again.doc) {
		return nil, false
	}
	return data, true
}

// entry is what a line of the list names.
func (f *file) entry(line string) (entry, indent string, ok bool) {
	text := strings.TrimSpace(line)
	rest, isItem := strings.CutPrefix(text, "- ")
	if !isItem || !strings.HasSuffix(line, "\n") {
		return "", "", false
	}
	var value any
	if yaml.Unmarshal([]byte(rest), &value) != nil {
		return "", "", false
	}
	entry, isText := value.(string)
	return entry, line[:strings.Index(line, "-")], isText && slices.Contains(f.entries, entry)
}

func cleaned(entries []string) []string {
	out := make([]string, len(entries))
	for i, entry := range entries {
		out[i] = path.Clean(entry)
	}
	slices.Sort(out)
	return out
}

// sameBut compares two documents in all but their resources.
func sameBut(a, b map[string]any) bool {
	one, other := maps.Clone(a), maps.Clone(b)
	delete(one, "resources")
	delete(other, "resources")
	x, err := yaml.Marshal(one)
	if err != nil {
		return false
	}
	y, err := yaml.Marshal(other)
	return err == nil && bytes.Equal(x, y)
}
