// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"resourceset.example/renderer/pkg/api"
)

// annotationFluxSubstitute set to "disabled", as annotation or label of an object,
// keeps Flux's post-build substitution away from it.
const annotationFluxSubstitute = "kustomize.toolkit.fluxcd.io/substitute"

// encode makes the bytes of every placed object, on all processors. An object that no
// file can be made of is its sets' failure. The error is about one of no set.
func (l *layout) encode() ([]SetError, error) {
	substitute := l.ResourceSet.Annotations[api.AnnotationSubstitute] == "true"
	workers := min(runtime.GOMAXPROCS(0), 1+len(l.placed)/100)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for i := w; i < len(l.placed); i += workers {
				p := &l.placed[i]
				p.data, p.err = l.manifest(*p.object, substitute)
				p.blob = BlobHash(p.data)
			}
		})
	}
	wait.Wait()
	var failed []SetError
	var errs []error
	for i := range l.placed {
		p := &l.placed[i]
		if p.err == nil {
			continue
		}
		err := fmt.Errorf("%s: %s: %w", l.ResourceSet, p.object.ID, p.err)
		if len(p.sets) == 0 {
			errs = append(errs, err)
		}
		for _, set := range p.sets {
			failed = append(failed, SetError{Set: set, Err: err})
		}
	}
	return failed, errors.Join(errs...)
}

// manifest is an object's file. Flux replaces what looks like a variable anywhere in
// a manifest, and "$$" by "$"; a text that came from a pull request's title must
// neither break the build nor pull in a value of the cluster, so Flux is told to leave
// such an object alone.
func (l *layout) manifest(object Object, substitute bool) ([]byte, error) {
	object.Content = fluxAnnotations(object.Content, l.ResourceSet.Annotations)
	data, err := l.Encode(object)
	if err != nil || substitute || !substituted(data) {
		return data, err
	}
	metadata, _ := object.Content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if _, decided := annotations[annotationFluxSubstitute]; decided {
		return data, nil
	}
	object.Content = annotated(object.Content, texts(annotationFluxSubstitute, "disabled"))
	return l.Encode(object)
}

// collect sorts the placed objects into the folders that they belong to.
func (l *layout) collect() {
	l.shared = map[string]SharedFile{}
	l.files = make([]map[string]string, len(l.Sets))
	for i := range l.placed {
		p := &l.placed[i]
		if p.owner >= 0 {
			if l.files[p.owner] == nil {
				l.files[p.owner] = map[string]string{}
			}
			l.files[p.owner][p.file] = p.blob
			l.out.Files[p.folder+"/"+p.file] = File{Blob: p.blob, Content: p.data}
			continue
		}
		old, kept := l.keptContent(p)
		if !kept && l.sharedHeld() {
			continue // it would be new there
		}
		file := SharedFile{Blob: old.Blob}
		if !kept {
			file.Blob = p.blob
			l.out.Files[p.folder+"/"+p.file] = File{Blob: p.blob, Content: p.data}
		}
		file.Sets, file.All = l.sharedBy(p.sets, old, kept)
		l.shared[p.file] = file
	}
}

// sharedBy are the names of the sets that a shared file is recorded for: those that
// produced it now, and the kept ones that did earlier. The one whose content it has
// comes first, which is a kept one if keptContent. When these are simply all sets,
// in their order, only that is recorded.
func (l *layout) sharedBy(produced []int, old SharedFile, keptContent bool) (names []string, all bool) {
	kept := l.keptProducers(old)
	n := len(kept) + len(produced)
	if n == 0 {
		return nil, false
	}
	first := ""
	if len(kept) > 0 && (keptContent || len(produced) == 0) {
		first = kept[0]
	} else {
		first = l.Sets[produced[0]].Name
	}
	if n == l.recorded && first == l.first {
		return nil, true
	}
	names = make([]string, 0, n)
	if keptContent {
		names = append(names, kept...)
	}
	for _, set := range produced {
		names = append(names, l.Sets[set].Name)
	}
	if !keptContent {
		names = append(names, kept...)
	}
	return names, false
}

// finish completes the list of files and compares it with the previous one.
func (l *layout) finish() error {
	for name, file := range l.shared {
		path := sharedDir + "/" + name
		if _, rendered := l.out.Files[path]; !rendered {
			l.out.Files[path] = File{Blob: file.Blob}
		}
	}
	lock := &Lock{ResourceSet: l.ResourceSet.NamespacedName(), Keys: l.keys(), Sets: l.lockedSets()}
	if len(l.shared) > 0 {
		lock.Shared = l.shared
	}
	for i := range lock.Sets {
		set := &lock.Sets[i]
		for name, blob := range set.Files {
			path := set.Name + "/" + name
			if _, rendered := l.out.Files[path]; !rendered {
				l.out.Files[path] = File{Blob: blob}
			}
		}
	}
	if err := l.handToFlux(lock); err != nil {
		return err
	}
	kustomization := Kustomization(lock.Resources())
	lock.Kustomization = BlobHash(kustomization)
	l.out.Files[kustomizationFile] = File{Blob: lock.Kustomization, Content: kustomization}
	l.compare(lock)
	l.changes(lock)
	return nil
}

// compare finds what is to be written and deleted. The lock is written along with
// manifests only, so that data which no template shows makes no commit.
func (l *layout) compare(lock *Lock) {
	before := l.Previous.Files()
	l.out.Write = map[string][]byte{}
	for path, file := range l.out.Files {
		if file.Content != nil && before[path] != file.Blob {
			l.out.Write[path] = file.Content
		}
	}
	for path := range before {
		if _, wanted := l.out.Files[path]; !wanted {
			l.out.Delete = append(l.out.Delete, path)
		}
	}
	slices.Sort(l.out.Delete)
	l.out.Lock = l.Previous
	if l.out.Changed() {
		l.out.Lock = lock
		l.out.Write[LockFile] = lock.Encode()
	}
}

// Kustomization is the kustomization.yaml that lists files, relative to its own
// folder. Entries are quoted, because kustomize takes a bare 12 for a number and
// refuses it. Without files it holds a literal empty list: kustomize refuses a file
// without one, and then Flux prunes nothing.
func Kustomization(files []string) []byte {
	size := 100
	for _, file := range files {
		size += len(file) + len("- \"\"\n")
	}
	out := append(make([]byte, 0, size), "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:"...)
	if len(files) == 0 {
		return append(out, " []\n"...)
	}
	out = append(out, '\n')
	files = slices.Clone(files)
	slices.Sort(files)
	for _, file := range files {
		out = append(out, "- "...)
		out = strconv.AppendQuote(out, file) // made of [A-Za-z0-9._/-]: Go's and YAML's quotes are one
		out = append(out, '\n')
	}
	return out
}

// RootKustomization is the kustomization.yaml of the target path: it lists the
// folders of ResourceSets (see [Dir]).
func RootKustomization(dirs []string) []byte { return Kustomization(dirs) }
