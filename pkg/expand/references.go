// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// Annotations by which the operator puts data of other objects into rendered ones.
// What the same ResourceSet renders is at hand; what the live cluster has is not, and
// of a Secret nothing is ever copied.
const (
	annotationCopyFrom       = api.Group + "/copyFrom"
	annotationChecksumFrom   = api.Group + "/checksumFrom"
	annotationChecksum       = api.Group + "/checksum"
	annotationConvertKubeCfg = api.Group + "/convertKubeConfigFrom"
)

// resolveReferences fills in what objects want of others in the same rendering. What
// cannot be resolved is left as it is: Layout refuses it.
func resolveReferences(objects []Object) {
	known := map[string]map[string]any{}
	wanted := false
	for i := range objects {
		o := &objects[i]
		if o.ID.Group == "" && (o.ID.Kind == "ConfigMap" || o.ID.Kind == "Secret") {
			known[o.ID.Kind+"/"+o.ID.Namespace+"/"+o.ID.Name] = o.Content
		}
		wanted = wanted || len(referring(o.Content)) > 0
	}
	if !wanted {
		return
	}
	for i := range objects {
		o := &objects[i]
		if from, ok := annotationsOf(o.Content)[annotationCopyFrom].(string); ok && o.ID.Group == "" && o.ID.Kind == "ConfigMap" {
			source, there := known["ConfigMap/"+strings.TrimSpace(from)]
			if there && annotationsOf(source)[annotationCopyFrom] == nil {
				o.Content = copied(o.Content, source)
			}
		}
	}
	for i := range objects {
		objects[i].Content = checksummed(objects[i].Content, known)
	}
}

// copied is a ConfigMap with the data of another one.
func copied(content, source map[string]any) map[string]any {
	content = maps.Clone(content)
	for _, field := range []string{"data", "binaryData"} {
		delete(content, field)
		if value, ok := source[field]; ok {
			content[field] = value
		}
	}
	return content
}

// copyResolved says that the data of a ConfigMap was copied in this rendering.
func copyResolved(object *Object, objects []Object) bool {
	from, _ := annotationsOf(object.Content)[annotationCopyFrom].(string)
	if object.ID.Group != "" || object.ID.Kind != "ConfigMap" {
		return false
	}
	return slices.ContainsFunc(objects, func(o Object) bool {
		return o.ID.Group == "" && o.ID.Kind == "ConfigMap" && o.ID.Namespace+"/"+o.ID.Name == strings.TrimSpace(from) &&
			annotationsOf(o.Content)[annotationCopyFrom] == nil
	})
}

// referring are the places of an object whose annotations may refer to others: the
// object itself and the template of its pods.
func referring(content map[string]any) [][]string {
	var places [][]string
	for _, place := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		annotations, _ := at(content, append(slices.Clone(place), "annotations")...).(map[string]any)
		if annotations[annotationChecksumFrom] != nil || annotations[annotationCopyFrom] != nil {
			places = append(places, place)
		}
	}
	return places
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

// checksummed is the object with a checksum beside each checksumFrom whose references
// are all known.
func checksummed(content map[string]any, known map[string]map[string]any) map[string]any {
	for _, place := range referring(content) {
		path := append(slices.Clone(place), "annotations")
		annotations := at(content, path...).(map[string]any)
		refs, ok := annotations[annotationChecksumFrom].(string)
		if !ok {
			continue
		}
		if sum, _ := checksumOf(refs, known); sum != "" {
			content = with(content, sum, append(path, annotationChecksum)...)
		}
	}
	return content
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

// checksumOf is over the data of all objects that refs names, "Kind/namespace/name" each
// and separated by commas. When it is empty, problem says why.
func checksumOf(refs string, known map[string]map[string]any) (sum, problem string) {
	h := sha256.New()
	n := 0
	for ref := range strings.SplitSeq(refs, ",") {
		ref = strings.TrimSpace(ref)
		if ref == "" {
			continue
		}
		kind, rest, _ := strings.Cut(ref, "/")
		if namespace, name, ok := strings.Cut(rest, "/"); !ok || namespace == "" || name == "" || strings.Contains(name, "/") || kind != "ConfigMap" && kind != "Secret" {
			return "", fmt.Sprintf("%q is not of the form ConfigMap/namespace/name or Secret/namespace/name", ref)
		}
		content, ok := known[ref]
		if !ok {
			return "", fmt.Sprintf("%s is not rendered by this ResourceSet: it may be in the live cluster, which renderer does not read", ref)
		}
		n++
		h.Write([]byte(key(ref)))
		data := dataOf(content)
		for _, name := range slices.Sorted(maps.Keys(data)) {
			h.Write([]byte(key(name, data[name])))
		}
	}
	if n == 0 {
		return "", "it names nothing"
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), ""
}

// dataOf is the data of a ConfigMap or Secret, as the API server would have it.
func dataOf(content map[string]any) map[string]string {
	data := map[string]string{}
	secret := content["kind"] == "Secret"
	add := func(field string, encoded bool) {
		values, _ := content[field].(map[string]any)
		for name, value := range values {
			text, _ := value.(string)
			if raw, err := base64.StdEncoding.DecodeString(text); encoded && err == nil {
				text = string(raw)
			}
			data[name] = text
		}
	}
	add("data", secret)
	add("binaryData", true)
	if secret {
		add("stringData", false)
	}
	return data
}

// unresolved is why an object's references cannot be followed, or nil.
func (l *layout) unresolved(object *Object) error {
	annotations := annotationsOf(object.Content)
	if from, ok := annotations[annotationCopyFrom]; ok && !copyResolved(object, l.Rendering.Objects) {
		return l.copyFault(object, from)
	}
	if from, ok := annotations[annotationConvertKubeCfg]; ok {
		return l.fault(object, fmt.Sprintf("the annotation %s: %v wants data of a Secret in the live cluster, which renderer does not read", annotationConvertKubeCfg, from),
			"write the address and ca.crt of the cluster into the ConfigMap's data: neither is a secret")
	}
	for _, place := range referring(object.Content) {
		from := at(object.Content, append(slices.Clone(place), "annotations", annotationChecksumFrom)...)
		if from == nil || at(object.Content, append(slices.Clone(place), "annotations", annotationChecksum)...) != nil {
			continue
		}
		known := map[string]map[string]any{}
		for i := range l.Rendering.Objects {
			o := &l.Rendering.Objects[i]
			known[o.ID.Kind+"/"+o.ID.Namespace+"/"+o.ID.Name] = o.Content
		}
		_, problem := checksumOf(fmt.Sprint(from), known)
		return l.fault(object, "the annotation "+annotationChecksumFrom+": "+problem,
			"render what it names with this ResourceSet, or put a checksum of your own beside it, as in << inputs | toYaml | sha256sum >>")
	}
	return nil
}
