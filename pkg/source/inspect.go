// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"net/url"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
)

// inspect checks a kustomization before kustomize acts on it, and notes what is
// wrong. It reads the file with kustomize's own type, so that both see the same
// fields. What cannot be read is left to kustomize to complain about.
//
// Kustomize would fetch a URL, or run git to clone a repository, wherever a path
// may stand; its plugins run programs. None of this can be switched off there.
func (k *kustomizeFS) inspect(file string, data []byte) bool {
	var kust types.Kustomization
	if err := kust.Unmarshal(data); err != nil {
		return true
	}
	kust.FixKustomization()
	i := inspection{fs: k, file: file, shown: k.view.shown(file), data: data}
	for _, entry := range kust.Resources {
		i.resource("resources", entry)
	}
	for _, entry := range kust.Components {
		i.resource("components", entry)
	}
	i.paths("crds", kust.Crds...)
	i.paths("configurations", kust.Configurations...)
	i.paths("openapi", kust.OpenAPI["path"])
	for _, p := range kust.Patches {
		i.paths("patches", p.Path)
	}
	//lint:ignore SA1019 still read by kustomize
	for _, p := range kust.PatchesJson6902 {
		i.paths("patchesJson6902", p.Path)
	}
	//lint:ignore SA1019 still read by kustomize
	for _, p := range kust.PatchesStrategicMerge {
		i.paths("patchesStrategicMerge", string(p))
	}
	for _, r := range kust.Replacements {
		i.paths("replacements", r.Path)
	}
	for _, g := range kust.ConfigMapGenerator {
		i.generator("configMapGenerator", g.KvPairSources)
	}
	for _, g := range kust.SecretGenerator {
		i.generator("secretGenerator", g.KvPairSources)
	}
	i.unsupported("helmCharts", len(kust.HelmCharts) > 0)
	i.unsupported("generators", len(kust.Generators) > 0)
	i.unsupported("transformers", len(kust.Transformers) > 0)
	i.unsupported("validators", len(kust.Validators) > 0)
	return !i.refused
}

type inspection struct {
	fs      *kustomizeFS
	file    string
	shown   string
	data    []byte
	refused bool
}

func (i *inspection) fault(text, hint, format string, args ...any) {
	f := newFault(i.shown, hint, format, args...)
	f.Pos.Line = i.line(text)
	i.fs.faults = append(i.fs.faults, f)
	i.refused = true
}

// line is where a text first stands in the file, or 0.
func (i *inspection) line(text string) int {
	at := bytes.Index(i.data, []byte(text))
	if text == "" || at < 0 {
		return 0
	}
	return 1 + bytes.Count(i.data[:at], []byte("\n"))
}

// resource checks an entry that is a file or a folder with a kustomization.
func (i *inspection) resource(field, entry string) {
	if cloneable(entry) {
		i.remote(field, entry)
		return
	}
	if path.IsAbs(entry) {
		i.fault(entry, "write a path from the kustomization's folder", "%s: absolute path %s", field, entry)
		return
	}
	at := path.Join(repoFolder, path.Dir(i.file), entry)
	if _, inside := inRepo(at); !inside {
		i.fault(entry, "everything must be in the repository", "%s: %s leads out of the repository", field, entry)
		return
	}
	switch {
	case !i.fs.Exists(at):
		i.fault(entry, "add the file, or take the entry out", "%s: %s does not exist in the repository", field, entry)
	case i.fs.IsDir(at) && !slices.ContainsFunc(konfig.RecognizedKustomizationFileNames(), func(name string) bool {
		return i.fs.Exists(path.Join(at, name))
	}):
		i.fault(entry, "add one, or list the files", "%s: the folder %s has no kustomization.yaml", field, entry)
	}
}

func (i *inspection) paths(field string, entries ...string) {
	for _, entry := range entries {
		if fetchable(entry) {
			i.remote(field, entry)
		}
	}
}

func (i *inspection) generator(field string, sources types.KvPairSources) {
	for _, file := range sources.FileSources {
		_, from, named := strings.Cut(file, "=")
		if !named {
			from = file
		}
		i.paths(field, file, from)
	}
	i.paths(field, sources.EnvSources...)
	i.paths(field, sources.EnvSource)
}

func (i *inspection) remote(field, entry string) {
	i.fault(entry, "copy it into the repository: definitions are read at one commit, without the network",
		"%s: remote %s is not supported", field, redacted(entry))
}

func (i *inspection) unsupported(field string, used bool) {
	if used {
		i.fault(field, "commit the objects themselves", "%s is not supported: it runs programs", field)
	}
}

// fetchable tells what kustomize would get by HTTP.
func fetchable(entry string) bool {
	scheme, _, found := strings.Cut(strings.ToLower(strings.TrimSpace(entry)), ":")
	return found && (scheme == "http" || scheme == "https")
}

// cloneable tells what kustomize might take for the address of a repository:
// rather too much than too little.
func cloneable(entry string) bool {
	lower := strings.ToLower(strings.TrimSpace(entry))
	return fetchable(entry) || strings.Contains(lower, "://") || strings.Contains(lower, "@") ||
		strings.Contains(lower, "github.com") || strings.HasPrefix(lower, "git::") ||
		strings.HasPrefix(lower, "gh:") || strings.HasPrefix(lower, "file:")
}

// redacted takes a credential out of an address.
func redacted(entry string) string {
	if u, err := url.Parse(entry); err == nil && u.User != nil {
		u.User = nil
		return u.String()
	}
	if strings.Contains(entry, "://") && strings.Contains(entry, "@") {
		return "address"
	}
	return entry
}
