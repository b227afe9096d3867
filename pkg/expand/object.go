// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// kustomizeGroup is the group of kustomize's own configuration files, which are
// no objects.
const kustomizeGroup = "kustomize.config.k8s.io"

// A defect is why a rendered document is no object that can be applied.
type defect struct {
	field     string // "[0].metadata.labels": document, then fields; empty when unknown
	msg, hint string
}

func (d *defect) Error() string      { return d.msg }
func (d *defect) Suggestion() string { return d.hint }

func defectf(hint, format string, args ...any) *defect {
	return &defect{msg: fmt.Sprintf(format, args...), hint: hint}
}

// objectsIn are the objects of the documents that a part rendered to. Objects
// excluded by annotation are not among them.
func (part *part) objectsIn(docs []any) ([]Object, error) {
	var objects []Object
	for _, doc := range docs {
		if doc == nil {
			continue
		}
		content, ok := doc.(map[string]any)
		if !ok {
			return nil, defectf("", "renders to %s, not an object", describe(doc))
		}
		if !part.documents && len(objects) > 0 {
			return nil, defectf("use resourcesTemplate for several", "renders to more than one document")
		}
		found, err := part.objectsOf(content)
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// objectsOf takes a List in a resourcesTemplate apart and leaves kustomize's
// configuration out, as the operator does. In spec.resources both stay as they are.
func (part *part) objectsOf(content map[string]any) ([]Object, error) {
	kind, _ := content["kind"].(string)
	if part.documents {
		if items, ok := content["items"].([]any); ok && strings.HasSuffix(kind, "List") {
			return part.objectsIn(items)
		}
		group, _ := splitAPIVersion(content["apiVersion"])
		if group == kustomizeGroup {
			return nil, nil
		}
	}
	object, err := newObject(content)
	if err != nil {
		return nil, err
	}
	object.Step = part.step
	object.Static = part.static[object.ID]
	return []Object{object}, nil
}

func newObject(content map[string]any) (Object, error) {
	var object Object
	apiVersion, err := textField(content, "apiVersion", "")
	if err != nil {
		return object, err
	}
	if object.ID.Kind, err = textField(content, "kind", ""); err != nil {
		return object, err
	}
	metadata, ok := content["metadata"].(map[string]any)
	if !ok && content["metadata"] != nil {
		return object, defectf("", "%s: metadata is %s, not a map", object.ID.Kind, describe(content["metadata"]))
	}
	if object.ID.Name, err = textField(metadata, "name", "metadata."); err != nil {
		return object, defectOf(object.ID, err)
	}
	if _, ok := metadata["namespace"]; ok && metadata["namespace"] != "" {
		if object.ID.Namespace, err = textField(metadata, "namespace", "metadata."); err != nil {
			return object, defectOf(object.ID, err)
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		if err := checkTexts(metadata, field); err != nil {
			return object, defectOf(object.ID, err)
		}
	}
	object.APIVersion = apiVersion
	object.ID.Group, _ = splitAPIVersion(apiVersion)
	object.Content = content
	return object, nil
}

// defectOf adds the object to the message of a *defect.
func defectOf(id ObjectID, err error) error {
	d, ok := err.(*defect)
	if !ok {
		return err
	}
	return &defect{field: d.field, msg: strings.TrimSpace(id.Kind+" "+id.Name) + ": " + d.msg, hint: d.hint}
}

func textField(fields map[string]any, name, prefix string) (string, error) {
	switch value := fields[name].(type) {
	case nil:
		return "", defectf("", "an object without %s%s", prefix, name)
	case string:
		if value == "" {
			return "", defectf("", "an object with an empty %s%s", prefix, name)
		}
		return value, nil
	default:
		return "", &defect{field: "[0]." + prefix + name, hint: "write << … | quote >> to keep it a text",
			msg: fmt.Sprintf("%s%s is %s (%v), not a text", prefix, name, describe(value), value)}
	}
}

// checkTexts says which of the labels or annotations is not a text.
func checkTexts(metadata map[string]any, field string) error {
	switch values := metadata[field].(type) {
	case nil:
		return nil
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if _, ok := values[key].(string); !ok {
				return &defect{field: "[0].metadata." + field + "." + key, hint: "write << … | quote >> to keep it a text",
					msg: fmt.Sprintf("metadata.%s[%s] is %s, not a text", field, key, describe(values[key]))}
			}
		}
		return nil
	default:
		return defectf("", "metadata.%s is %s, not a map", field, describe(values))
	}
}

func splitAPIVersion(value any) (group, version string) {
	text, _ := value.(string)
	if group, version, ok := strings.Cut(text, "/"); ok {
		return group, version
	}
	return "", text
}

// excluded says that the object's annotation keeps it out of the output.
func (o *Object) excluded() bool {
	metadata, _ := o.Content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations[api.AnnotationReconcile] == "disabled"
}

// String is how messages name an object: "ConfigMap apps/settings".
func (id ObjectID) String() string {
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}

// decorate adds the common metadata and the owner labels of rs to an object.
func decorate(rs *api.ResourceSet, content map[string]any) {
	metadata, _ := content["metadata"].(map[string]any)
	labels := metadataTexts(metadata, "labels")
	if common := rs.Spec.CommonMetadata; common != nil {
		for key, value := range common.Labels {
			labels[key] = value
		}
		if len(common.Annotations) > 0 {
			annotations := metadataTexts(metadata, "annotations")
			for key, value := range common.Annotations {
				annotations[key] = value
			}
		}
	}
	labels[api.LabelOwnerName] = rs.Name
	labels[api.LabelOwnerNamespace] = rs.Namespace
}

func metadataTexts(metadata map[string]any, field string) map[string]any {
	texts, ok := metadata[field].(map[string]any)
	if !ok {
		texts = make(map[string]any)
		metadata[field] = texts
	}
	return texts
}
