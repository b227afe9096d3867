// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Types of Receiver: those that renderer serves, and the others that Flux has.
var (
	servedReceivers = []string{"generic", "generic-hmac", "github", "gitlab"}
	otherReceivers  = []string{
		"acr", "bitbucket", "cdevents", "dockerhub", "gcr", "harbor", "nexus", "quay",
	}
)

func (d *decoder) receiver(n *yaml.Node, meta Meta) *Receiver {
	r := &Receiver{Meta: meta}
	s := &r.Spec
	d.root(n, &r.Meta, schema{
		"type":      d.text(&s.Type),
		"events":    d.texts(&s.Events),
		"resources": d.items(func(path string, n *yaml.Node) { s.Resources = append(s.Resources, d.receiverResource(path, n)) }),
		"secretRef": d.secretName(&s.SecretRef),
		"suspend":   d.boolean(&s.Suspend),
		"interval":  func(string, *yaml.Node) {},
		"resourceFilter": func(path string, n *yaml.Node) {
			d.warn(n, "", "%s is not acted on: a call refreshes all of the resources", path)
		},
	})
	for i := range s.Resources { // metadata may stand below the spec
		if s.Resources[i].Namespace == "" {
			s.Resources[i].Namespace = r.Namespace
		}
	}
	d.checkReceiver(n, s)
	return r
}

func (d *decoder) checkReceiver(n *yaml.Node, s *ReceiverSpec) {
	spec := d.line("spec", n)
	if _, ok := d.lines["spec"]; !ok {
		return
	}
	kind := d.line("spec.type", spec)
	switch known := slices.Concat(servedReceivers, otherReceivers); {
	case s.Type == "":
		d.faultMissing(spec, "spec.type", "one of "+strings.Join(servedReceivers, ", "))
	case slices.Contains(otherReceivers, s.Type):
		d.warn(kind, "", "receivers of type %s are not served, only %s", s.Type, strings.Join(servedReceivers, ", "))
	case !slices.Contains(known, s.Type):
		slices.Sort(known)
		d.fault(kind, suggest(s.Type, known), "unknown receiver type %q", s.Type)
	}
	if s.SecretRef == "" {
		d.faultMissing(spec, "spec.secretRef", "the Secret with the token, as Flux needs it")
	}
	if len(s.Resources) == 0 {
		d.faultMissing(spec, "spec.resources", "what a call refreshes")
	}
}

// faultMissing reports a required field, unless it is there and was reported.
func (d *decoder) faultMissing(at *yaml.Node, path, hint string) {
	if _, seen := d.lines[path]; seen && !d.accepted() {
		return
	}
	d.fault(at, hint, "%s is missing", path)
}

func suggest(word string, known []string) string {
	if near := nearest(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "known are " + strings.Join(known, ", ")
}

func (d *decoder) receiverResource(path string, at *yaml.Node) ReceiverResource {
	var r ReceiverResource
	d.fields(path, at, schema{
		"apiVersion":  d.text(&r.APIVersion),
		"kind":        d.text(&r.Kind),
		"name":        d.text(&r.Name),
		"namespace":   d.text(&r.Namespace),
		"matchLabels": d.textMap(&r.MatchLabels),
	})
	if target(at).Kind != yaml.MappingNode {
		return r
	}
	for _, field := range []struct{ name, value string }{{"kind", r.Kind}, {"name", r.Name}} {
		if field.value == "" {
			d.fault(at, "", "%s.%s is missing", path, field.name)
		}
	}
	if len(r.MatchLabels) > 0 && r.Name != "*" {
		d.warn(at, `labels narrow the name "*"`, "%s.matchLabels has no effect beside a name", path)
	}
	return r
}
