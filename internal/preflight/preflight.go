// SPDX-License-Identifier: Apache-2.0

// Package preflight builds manifests as Flux will, before they are committed.
//
// kustomize-controller builds a folder with kustomize, turns the result into YAML and
// reads that again before it applies it. One manifest that kustomize refuses keeps all
// others of its folder from being applied, and from being pruned. One that comes back
// as something else (a text that reads as a number there and not here) is applied as
// something that nobody wrote. [Check] does the same in memory and says which manifest
// it is.
//
// The time that a build takes grows with the square of the number of objects, so a
// part is built by itself: at most 500 objects cost less than half a second.
package preflight

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// A Part is what one Flux Kustomization applies.
type Part struct {
	// Files are the manifests: path below the ResourceSet's folder to content.
	Files map[string][]byte
	// Namespaced says that nothing adds a namespace to an object without one.
	Namespaced bool
}

// A Fault is a manifest that Flux could not apply as it is meant.
type Fault struct {
	File      string // empty when no single one is to blame
	Msg, hint string
}

func (f *Fault) Error() string {
	if f.File == "" {
		return f.Msg
	}
	return path.Base(f.File) + ": " + f.Msg
}

// Suggestion is what to do about it.
func (f *Fault) Suggestion() string { return f.hint }

const rejected = "Flux builds with kustomize: it would apply nothing of the folder"

// Check builds a part. The faults are sorted by file.
func Check(part Part) []*Fault {
	files := make([]string, 0, len(part.Files))
	for file := range part.Files {
		files = append(files, file)
	}
	slices.Sort(files)
	var faults []*Fault
	var sound []string
	for _, file := range files {
		if fault := part.scope(file); fault != nil {
			faults = append(faults, fault)
			continue
		}
		sound = append(sound, file)
	}
	built, err := part.build(sound)
	if err == nil {
		return append(faults, part.compare(sound, built)...)
	}
	whole := err
	var alone []string
	for _, file := range sound { // which of them is it?
		if _, err := part.build([]string{file}); err != nil {
			faults = append(faults, &Fault{File: file, Msg: "kustomize refuses it: " + oneLine(err), hint: rejected})
			continue
		}
		alone = append(alone, file)
	}
	faults = append(faults, part.doubles(alone)...)
	if len(faults) == 0 {
		faults = append(faults, &Fault{Msg: "kustomize does not build it: " + oneLine(whole), hint: rejected})
	}
	return faults
}

// build is what SecureBuild of Flux does: no load restrictions, no plugins.
func (p Part) build(files []string) (built resmap.ResMap, err error) {
	defer func() { // kustomize panics at some inputs
		if r := recover(); r != nil {
			built, err = nil, fmt.Errorf("crashed: %v", r)
		}
	}()
	disk := filesys.MakeFsInMemory()
	var list bytes.Buffer
	list.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:")
	if len(files) == 0 {
		list.WriteString(" []")
	}
	list.WriteString("\n")
	for _, file := range files {
		fmt.Fprintf(&list, "- %q\n", "../"+file)
		if err := disk.WriteFile("/set/"+file, p.Files[file]); err != nil {
			return nil, err
		}
	}
	if err := disk.WriteFile("/set/_part/kustomization.yaml", list.Bytes()); err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone
	options.PluginConfig = types.DisabledPluginConfig()
	return krusty.MakeKustomizer(options).Run(disk, "/set/_part")
}

// identity is how Flux tells objects apart.
type identity struct{ group, kind, namespace, name string }

// compare holds what comes out of kustomize against what went in. Texts are read by
// the rules of Kubernetes on both sides.
func (p Part) compare(files []string, built resmap.ResMap) []*Fault {
	out := make(map[identity]any, built.Size())
	for _, r := range built.Resources() {
		// Flux takes the detour over YAML from here, which loses nothing any more.
		text, err := r.MarshalJSON()
		if err != nil {
			return []*Fault{{Msg: "kustomize cannot write what it built: " + oneLine(err), hint: rejected}}
		}
		var value map[string]any
		if err := json.Unmarshal(text, &value); err != nil {
			return []*Fault{{Msg: "what kustomize writes cannot be read: " + oneLine(err), hint: rejected}}
		}
		out[identityOf(value)] = value
	}
	var faults []*Fault
	for _, file := range files {
		var in map[string]any
		if yaml.Unmarshal(p.Files[file], &in) != nil {
			continue // kustomize could read it: several documents
		}
		for _, object := range items(in) {
			if got, there := out[identityOf(object)]; there && !reflect.DeepEqual(any(object), got) {
				where, was, is := difference("", object, got)
				faults = append(faults, &Fault{
					File: file, Msg: fmt.Sprintf("%s is %s, but Flux will read %s", where, was, is),
					hint: "put it in quotes, or write it in a way that YAML 1.1 and 1.2 read alike",
				})
			}
		}
	}
	return faults
}

// items are an object, or the items of a list, which kustomize takes apart.
func items(object map[string]any) []map[string]any {
	kind, _ := object["kind"].(string)
	list, ok := object["items"].([]any)
	if !ok || !strings.HasSuffix(kind, "List") {
		return []map[string]any{object}
	}
	var all []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

func identityOf(object map[string]any) identity {
	version, _ := object["apiVersion"].(string)
	group, _, grouped := strings.Cut(version, "/")
	if !grouped {
		group = ""
	}
	metadata, _ := object["metadata"].(map[string]any)
	id := identity{group: group}
	id.kind, _ = object["kind"].(string)
	id.namespace, _ = metadata["namespace"].(string)
	id.name, _ = metadata["name"].(string)
	return id
}

// difference finds the first place in which two values differ.
func difference(at string, a, b any) (where, was, is string) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			for _, key := range keysOf(x, y) {
				if !reflect.DeepEqual(x[key], y[key]) {
					return difference(at+"."+key, x[key], y[key])
				}
			}
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				if !reflect.DeepEqual(x[i], y[i]) {
					return difference(fmt.Sprintf("%s[%d]", at, i), x[i], y[i])
				}
			}
		}
	}
	return strings.TrimPrefix(at, "."), describe(a), describe(b)
}

func keysOf(a, b map[string]any) []string {
	var keys []string
	for key := range a {
		keys = append(keys, key)
	}
	for key := range b {
		if _, both := a[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "nothing"
	case string:
		return fmt.Sprintf("the text %.40q", v)
	case bool, float64, int64:
		return fmt.Sprintf("the value %v", v)
	}
	return "something else"
}

// doubles finds manifests that are one object to kustomize: to it, no namespace and
// "default" are the same, and a cluster-wide object has none.
func (p Part) doubles(files []string) []*Fault {
	first := map[identity]string{}
	var faults []*Fault
	for _, file := range files {
		var object map[string]any
		if yaml.Unmarshal(p.Files[file], &object) != nil {
			continue
		}
		for _, item := range items(object) {
			id := identityOf(item)
			if namespaced, known := scopeOf(item); known && !namespaced {
				id.namespace = ""
			} else if id.namespace == "" {
				id.namespace = "default"
			}
			if other, double := first[id]; double {
				faults = append(faults, &Fault{File: file, Msg: "is the same object as " + path.Base(other) + " to kustomize",
					hint: "no namespace and the namespace default are one to it, and cluster-wide objects have none"})
				break
			}
			first[id] = file
		}
	}
	return faults
}

// scope finds objects that need a namespace and have none.
func (p Part) scope(file string) *Fault {
	if !p.Namespaced {
		return nil
	}
	var object map[string]any
	if yaml.Unmarshal(p.Files[file], &object) != nil {
		return nil
	}
	for _, item := range items(object) {
		id := identityOf(item)
		namespaced, known := scopeOf(item)
		if id.namespace == "" && (known && namespaced || strings.HasSuffix(id.group, ".toolkit.fluxcd.io")) {
			return &Fault{File: file, Msg: id.kind + " " + id.name + " names no namespace",
				hint: "write metadata.namespace into the template: Flux refuses it otherwise"}
		}
	}
	return nil
}

// scopeOf is known for the kinds that Kubernetes itself has.
func scopeOf(object map[string]any) (namespaced, known bool) {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return openapi.IsNamespaceScoped(kyaml.TypeMeta{APIVersion: version, Kind: kind})
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
