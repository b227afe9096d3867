// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// Annotations by which the operator puts data of other objects into rendered ones.
// What the same ResourceSet renders is at hand, and so are the ConfigMaps among the
// definitions; what the live cluster has is not, and of a Secret nothing is ever copied.
const (
	annotationCopyFrom       = api.Group + "/copyFrom"
	annotationChecksumFrom   = api.Group + "/checksumFrom"
	annotationChecksum       = api.Group + "/checksum"
	annotationConvertKubeCfg = api.Group + "/convertKubeConfigFrom"
)

// references are what the objects of one rendering want of others.
type references struct {
	rs       *api.ResourceSet
	rendered map[string]*Object        // by "Kind/namespace/name"
	given    map[string]*api.ConfigMap // of the definitions, by "namespace/name"
	looked   map[string]*api.ConfigMap // those of the definitions that were asked for; nil: not there
	copying  map[*Object]bool          // true while it is being filled, false when that is over
}

// resolveReferences fills in what objects want of others. What cannot be had is noted at
// the object. It returns what was looked for among the definitions.
func resolveReferences(rs *api.ResourceSet, objects []Object, given map[string]*api.ConfigMap) map[string]*api.ConfigMap {
	if !slices.ContainsFunc(objects, func(o Object) bool { return o.refers() }) {
		return nil
	}
	r := &references{rs: rs, rendered: map[string]*Object{}, given: given, looked: map[string]*api.ConfigMap{}, copying: map[*Object]bool{}}
	for i := range objects {
		if o := &objects[i]; o.ID.Group == "" && (o.ID.Kind == api.KindConfigMap || o.ID.Kind == "Secret") {
			r.rendered[o.ID.Kind+"/"+o.ID.Namespace+"/"+o.ID.Name] = o
		}
	}
	for i := range objects {
		r.copy(&objects[i])
	}
	for i := range objects {
		r.convert(&objects[i])
	}
	for i := range objects { // last: they are over what the others have by then
		r.sum(&objects[i])
	}
	return r.looked
}

// refers says whether an object has any of the annotations, where they count.
func (o *Object) refers() bool {
	annotations := annotationsOf(o.Content)
	return annotations[annotationCopyFrom] != nil || annotations[annotationConvertKubeCfg] != nil || o.wantsSum()
}

func (o *Object) wantsSum() bool {
	if o.sumless {
		return annotationsOf(o.Content)[annotationChecksumFrom] != nil
	}
	return wantsSum(o.Content)
}

// refuse notes the first thing that an object cannot have.
func (r *references) refuse(o *Object, msg, hint string) {
	if o.Unresolved == nil {
		o.Unresolved = &api.Fault{Pos: r.rs.At("spec"), Object: r.rs.String(), Msg: o.ID.String() + ": " + msg, Hint: hint}
	}
}

// copy fills a ConfigMap with the data of another one, as the operator does: binaryData
// of its own stays where the other one has none.
func (r *references) copy(o *Object) {
	from, wanted := annotationsOf(o.Content)[annotationCopyFrom]
	if _, known := r.copying[o]; !wanted || known || o.Content["apiVersion"] != "v1" {
		return
	}
	switch o.ID.Kind {
	case "Secret":
		r.refuse(o, fmt.Sprintf("the annotation %s: %v would put the plain text of a Secret into Git", annotationCopyFrom, from),
			"have the Secret made in the cluster, by an ExternalSecret or a replicator, or encrypt it with SOPS")
	case api.KindConfigMap:
		r.copying[o] = true
		source, problem := r.configMap(fmt.Sprint(from))
		r.copying[o] = false
		if problem != "" {
			r.refuse(o, "the annotation "+annotationCopyFrom+": "+problem,
				"put the ConfigMap that it names among the definitions, render it with the same ResourceSet, or have it copied inside the cluster")
			return
		}
		o.Content = with(o.Content, source.data, "data")
		if len(source.binary) > 0 {
			o.Content = with(o.Content, source.binary, "binaryData")
		}
	}
}

// configData is what a ConfigMap holds.
type configData struct{ data, binary map[string]any }

// configMap finds a ConfigMap by "namespace/name": one of this rendering, or else of the
// definitions. When there is none, problem says why.
func (r *references) configMap(name string) (found configData, problem string) {
	name = strings.TrimSpace(name)
	if namespace, rest, ok := strings.Cut(name, "/"); !ok || namespace == "" || rest == "" || strings.Contains(rest, "/") {
		return configData{}, fmt.Sprintf("%q is not of the form namespace/name", name)
	}
	if source := r.rendered[api.KindConfigMap+"/"+name]; source != nil {
		if r.copying[source] {
			return configData{}, fmt.Sprintf("%s %s takes its data from itself in the end", api.KindConfigMap, name)
		}
		if r.copy(source); source.Unresolved != nil {
			return configData{}, fmt.Sprintf("%s %s does not get its own data", api.KindConfigMap, name)
		}
		found.data, _ = source.Content["data"].(map[string]any)
		found.binary, _ = source.Content["binaryData"].(map[string]any)
		if found.data == nil {
			found.data = map[string]any{}
		}
		return found, ""
	}
	c, problem := r.defined(name)
	if problem != "" {
		return configData{}, problem
	}
	return configData{values(c.Data), values(c.BinaryData)}, ""
}

// defined finds a ConfigMap of the definitions that can be used.
func (r *references) defined(name string) (c *api.ConfigMap, problem string) {
	c = r.given[name]
	r.looked[name] = c
	switch {
	case c == nil:
		return nil, fmt.Sprintf("%s %s is neither rendered by this ResourceSet nor among the definitions: it may be in the live cluster, which renderer does not read",
			api.KindConfigMap, name)
	case c.Unusable != nil:
		return nil, c.Unusable.Error()
	}
	return c, ""
}

func values(texts map[string]string) map[string]any {
	m := make(map[string]any, len(texts))
	for key, text := range texts {
		m[key] = text
	}
	return m
}

func at(value any, fields ...string) any {
	for _, field := range fields {
		m, _ := value.(map[string]any)
		value = m[field]
	}
	return value
}

func annotationsOf(content map[string]any) map[string]any {
	annotations, _ := at(content, "metadata", "annotations").(map[string]any)
	return annotations
}

// with is a copy of a map with a value at a path; what is beside the path is shared.
func with(content map[string]any, value any, path ...string) map[string]any {
	content = maps.Clone(content)
	if content == nil {
		content = map[string]any{}
	}
	if len(path) == 1 {
		content[path[0]] = value
		return content
	}
	below, _ := content[path[0]].(map[string]any)
	content[path[0]] = with(below, value, path[1:]...)
	return content
}
