// SPDX-License-Identifier: Apache-2.0

package api

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

var (
	dnsLabel     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	dnsSubdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// Lengths that Kubernetes allows.
const (
	maxName      = 253
	maxNamespace = 63
)

// metadata reads what all kinds have. What a cluster adds to stored objects is
// known and ignored, so that the output of "kubectl get -o yaml" can be used.
func (d *decoder) metadata(at *yaml.Node, meta *Meta) {
	d.fields("metadata", at, schema{
		"name":        d.text(&meta.Name),
		"namespace":   d.text(&meta.Namespace),
		"labels":      d.textMap(&meta.Labels),
		"annotations": d.textMap(&meta.Annotations),

		"creationTimestamp": nil, "deletionGracePeriodSeconds": nil, "deletionTimestamp": nil,
		"finalizers": nil, "generation": nil, "managedFields": nil, "ownerReferences": nil,
		"resourceVersion": nil, "selfLink": nil, "uid": nil,
	})
	if target(at).Kind == yaml.MappingNode {
		d.checkName(at, meta)
	}
	d.checkAnnotations(at, meta)
}

// checkName faults names that cannot be used at all. Those that only a cluster
// would refuse are warned of: offline, they can still be rendered.
func (d *decoder) checkName(at *yaml.Node, meta *Meta) {
	name, namespace := d.line("metadata.name", at), d.line("metadata.namespace", at)
	given := child(target(at), "name")
	switch {
	case given == nil || isNull(given):
		d.fault(name, "", "metadata.name is missing")
	case meta.Name == "":
		if value, _ := d.scalar(given); value == "" {
			d.fault(name, "", "metadata.name is empty")
		} // else it is of a wrong type, which was reported
	case meta.Name != oneLine(meta.Name):
		d.fault(name, "", "metadata.name %q holds control characters", meta.Name)
	case len(meta.Name) > maxName || !dnsSubdomain.MatchString(meta.Name):
		d.warn(name, "use lower-case letters, digits, '-' and '.', at most 253", "a cluster would refuse the name %q", meta.Name)
	}
	switch {
	case meta.Namespace != oneLine(meta.Namespace):
		d.fault(namespace, "", "metadata.namespace %q holds control characters", meta.Namespace)
	case meta.Namespace != "" && (len(meta.Namespace) > maxNamespace || !dnsLabel.MatchString(meta.Namespace)):
		d.warn(namespace, "use lower-case letters, digits and '-', at most 63", "a cluster would refuse the namespace %q", meta.Namespace)
	}
}

// line is a stand-in node for messages about a field that was read before.
func (d *decoder) line(path string, fallback *yaml.Node) *yaml.Node {
	if line, ok := d.lines[path]; ok {
		return &yaml.Node{Line: line}
	}
	return fallback
}

// checkAnnotations checks the values of the annotations that renderer acts on.
func (d *decoder) checkAnnotations(at *yaml.Node, meta *Meta) {
	for _, name := range slices.Sorted(maps.Keys(meta.Annotations)) {
		value := meta.Annotations[name]
		n := d.line(join("metadata.annotations", name), at)
		switch name {
		case AnnotationReconcile:
			v := strings.ToLower(value) // the operator does not mind the case
			if v != "enabled" && v != "disabled" {
				d.fault(n, `write "enabled" or "disabled"`, "annotation %s: unknown value %q", name, value)
			}
			meta.Annotations[name] = v
		case AnnotationReconcileEvery, AnnotationReconcileTimeout:
			if v, err := time.ParseDuration(value); err != nil || v <= 0 {
				d.fault(n, durationHint, "annotation %s: %q is not a duration above zero", name, value)
			}
		case AnnotationAllowForks, AnnotationAllowStructure, AnnotationSubstitute, AnnotationHoldDowngrades:
			if value != "true" && value != "false" {
				d.fault(n, `write "true" or "false"`, "annotation %s: unknown value %q", name, value)
			}
		case AnnotationBaseURL:
			u, err := url.Parse(value)
			if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "https" && u.Scheme != "http") {
				d.fault(n, `write it like "https://host/gitlab"`, "annotation %s is not the address of a server", name)
			}
		case AnnotationDirectory, AnnotationSensitive:
			if strings.TrimSpace(value) == "" {
				d.fault(n, "leave it out, or give it a value", "annotation %s is empty", name)
			}
		default:
			if strings.HasPrefix(name, "renderer/") {
				d.warn(n, annotationHint(name), "unknown annotation %s has no effect", name)
			}
		}
	}
}

func annotationHint(name string) string {
	own := []string{
		AnnotationAllowForks, AnnotationAllowStructure, AnnotationBaseURL, AnnotationDirectory,
		AnnotationHoldDowngrades, AnnotationSensitive, AnnotationSubstitute,
	}
	if near := nearest(name, own); near != "" {
		return "did you mean " + near + "?"
	}
	return "known ones: " + strings.Join(own, ", ")
}

// Duration is the value of an annotation that holds one, 0 when there is none. It is
// cut to milliseconds, the finest that Flux takes.
func (m *Meta) Duration(annotation string) time.Duration {
	d, err := time.ParseDuration(m.Annotations[annotation])
	if err != nil || d <= 0 {
		return 0
	}
	return max(d.Truncate(time.Millisecond), time.Millisecond)
}
