// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"

	"resourceset.example/renderer/pkg/api"
)

// A build is what a kustomization yielded, and what it looked at on the way.
type build struct {
	defs    *api.Definitions
	lookups map[string]string // path → state, as in [kustomizeFS.state]
}

// kustomization builds a folder that has a kustomization file. Whatever is wrong
// with it concerns this folder only.
func (w *walk) kustomization(folder, file string) error {
	at := path.Join(folder, file)
	fs := newKustomizeFS(w.view, folder)
	if old := w.known.builds[folder]; old != nil && fs.unchanged(old.lookups) {
		w.now.builds[folder] = old
		w.defs.Merge(old.defs)
		return nil
	}
	defs := &api.Definitions{}
	objects, err := runKustomize(fs)
	switch {
	case w.view.ctx.Err() != nil:
		return w.view.ctx.Err()
	case errors.Is(err, errTooLarge):
		return err
	case len(fs.faults) > 0:
		defs.Faults = fs.faults
	case err != nil:
		defs.Faults = w.buildFaults(at, fs, err)
	default:
		w.collect(at, fs, objects, defs)
	}
	if !fs.unstable {
		w.now.builds[folder] = &build{defs: defs, lookups: fs.lookups}
	}
	w.defs.Merge(defs)
	return nil
}

// runKustomize builds what the file system has at its entry. No plugins, no
// Helm, no functions; what the network is needed for was refused by the file system.
func runKustomize(fs *kustomizeFS) (objects resmap.ResMap, err error) {
	defer func() {
		if r := recover(); r != nil {
			objects, err = nil, fmt.Errorf("kustomize crashed: %v", r)
		}
	}()
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone // the file system is the restriction
	options.PluginConfig = types.DisabledPluginConfig()
	return krusty.MakeKustomizer(options).Run(fs, entryFolder)
}

// buildFaults explains a failed build. Kustomize names neither file nor line of
// what is not YAML, so the files that it read are looked through for that first.
func (w *walk) buildFaults(at string, fs *kustomizeFS, err error) []*api.Fault {
	var faults []*api.Fault
	for _, file := range fs.read {
		if data, readErr := w.view.content(file); readErr == nil && isYAML(file) {
			faults = append(faults, api.CheckSyntax(w.view.shown(file), data)...)
		}
	}
	if len(faults) > 0 {
		return faults
	}
	msg := strings.NewReplacer(".."+repoFolder+"/", "", repoFolder+"/", "", repoFolder, ".").Replace(err.Error())
	msg = layers.ReplaceAllString(strings.Join(strings.Fields(msg), " "), "")
	return []*api.Fault{newFault(w.view.shown(at), "try: kustomize build "+dotted(path.Dir(at)), "kustomize: %s", msg)}
}

// layers is what kustomize puts before a message for each folder that it went
// through, with the complaint that a folder is no file.
var layers = regexp.MustCompile(`accumulating resources: |accumulation err='accumulating resources from '[^']*': open [^:]*: file does not exist': |recursed accumulation of path '[^']*': `)

// collect reads the objects of ours among those that a build yielded.
func (w *walk) collect(at string, fs *kustomizeFS, objects resmap.ResMap, defs *api.Definitions) {
	known := originals{view: w.view, files: map[string]*api.Original{}}
	for _, res := range objects.Resources() {
		if !api.Concerns(res.GetApiVersion(), res.GetKind()) {
			continue
		}
		file := fs.originOf(res)
		if res.GetKind() == api.KindConfigMap && file == "" {
			file = at // made by a generator: no file has its lines
		}
		if file == "" {
			file = known.search(fs.read, res.GetKind(), res.GetName(), at)
		}
		text, err := withoutOrigin(res)
		if err != nil {
			defs.Faults = append(defs.Faults, newFault(w.view.shown(file), "", "%s %s: %v", res.GetKind(), res.GetName(), err))
			continue
		}
		defs.Merge(known.of(file).ParseBuilt(res.GetKind(), res.GetName(), text))
	}
}

// originals are the files that a build was made of, parsed for their lines.
type originals struct {
	view  *view
	files map[string]*api.Original
}

func (o originals) of(file string) *api.Original {
	if known := o.files[file]; known != nil {
		return known
	}
	data, err := o.view.content(file)
	if err != nil {
		data = nil // it was read before; at worst, positions are without lines
	}
	o.files[file] = api.NewOriginal(o.view.shown(file), data)
	return o.files[file]
}

// search finds the file of an object whose origin a patch has overwritten.
func (o originals) search(files []string, kind, name, otherwise string) string {
	for _, file := range files {
		if o.of(file).Has(kind, name) {
			return file
		}
	}
	return otherwise
}

func withoutOrigin(res *resource.Resource) ([]byte, error) {
	if err := res.SetOrigin(nil); err != nil {
		return nil, err
	}
	return res.AsYAML()
}
