// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/base64"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// KindConfigMap is the kind of the objects of Kubernetes itself that definitions may hold
// for templates to take data from.
const KindConfigMap = "ConfigMap"

// MaxConfigMap is how much data a ConfigMap may have, in bytes: as much as a cluster takes.
const MaxConfigMap = 1 << 20

// A ConfigMap is one that lies among the definitions. Objects that a ResourceSet renders
// may take its data over (the operator's annotations copyFrom, checksumFrom and
// convertKubeConfigFrom). It is not rendered, and whoever applies it is not asked.
type ConfigMap struct {
	Meta       // without labels and annotations
	Data       map[string]string
	BinaryData map[string]string // in base64, as it is written
	// Unusable is why nothing can be taken from it, or nil. That is no fault of the
	// definitions: most of the ConfigMaps in a repository are of no concern here.
	Unusable *Fault
}

// String is how messages name the object: "ConfigMap apps/settings".
func (c *ConfigMap) String() string { return KindConfigMap + " " + c.NamespacedName() }

// Equal says whether two ConfigMaps hold the same.
func (c *ConfigMap) Equal(other *ConfigMap) bool {
	return maps.Equal(c.Data, other.Data) && maps.Equal(c.BinaryData, other.BinaryData) &&
		(c.Unusable == nil) == (other.Unusable == nil)
}

// ConfigMapsByName are the ConfigMaps by "namespace/name"; nil if there are none. One that
// is declared twice, and not as the same, is unusable: which one is meant nobody can tell.
func (d *Definitions) ConfigMapsByName() map[string]*ConfigMap {
	if len(d.ConfigMaps) == 0 {
		return nil
	}
	byName := make(map[string]*ConfigMap, len(d.ConfigMaps))
	for _, c := range d.ConfigMaps {
		name := c.NamespacedName()
		if first := byName[name]; first == nil {
			byName[name] = c
		} else if !first.Equal(c) {
			byName[name] = &ConfigMap{Meta: first.Meta, Unusable: &Fault{
				Pos: c.Pos, Object: c.String(), Msg: "is declared twice among the definitions, first at " + first.Pos.String(),
				Hint: "remove one of them, or give it another name",
			}}
		}
	}
	return byName
}

// configMap reads what can be taken from a ConfigMap. One without a name is passed over.
func (f *fileReader) configMap(n *yaml.Node) {
	d := &decoder{file: f.file, lines: map[string]int{}, budget: f.budget}
	defer func() { f.budget = d.budget }()
	c := &ConfigMap{Meta: Meta{Pos: Position{File: f.file, Line: n.Line}, Lines: map[string]int{}}}
	d.object = objectName(n, KindConfigMap)
	encrypted := false
	for _, e := range d.entries(n) {
		switch {
		case e.name == "metadata":
			d.nameOnly(e.value, &c.Meta)
		case isNull(e.value):
		case e.name == "data":
			d.textMap(&c.Data)("data", e.value)
		case e.name == "binaryData":
			d.textMap(&c.BinaryData)("binaryData", e.value)
		case e.name == "sops":
			encrypted = true
		}
	}
	if c.Name == "" {
		return
	}
	if c.Namespace == "" {
		c.Namespace = DefaultNamespace
	}
	if encrypted {
		d.fault(n, "keep what is copied in a ConfigMap without secrets", "is encrypted with SOPS")
	}
	d.checkData(n, c)
	if len(d.faults) > 0 {
		c.Data, c.BinaryData, c.Unusable = nil, nil, d.faults[0]
	}
	f.defs.ConfigMaps = append(f.defs.ConfigMaps, c)
}

// nameOnly reads name and namespace; the line of the latter says that it is written.
func (d *decoder) nameOnly(at *yaml.Node, meta *Meta) {
	n := target(at)
	if n.Kind != yaml.MappingNode || !d.enter(n, at) {
		return
	}
	defer d.leave(n)
	for _, e := range d.entries(n) {
		switch {
		case e.name == "name" && !isNull(e.value):
			d.text(&meta.Name)("metadata.name", e.value)
		case e.name == "namespace" && !isNull(e.value):
			d.text(&meta.Namespace)("metadata.namespace", e.value)
			meta.Lines["metadata.namespace"] = lineOf(e)
		}
	}
}

// maxConfigMapKey and configMapKey are the rule of Kubernetes for the keys of a ConfigMap.
// They become names of files where it is mounted.
const maxConfigMapKey = 253

var configMapKey = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)

// checkKeys faults the first key that a cluster would not take.
func (d *decoder) checkKeys(n *yaml.Node, field string, data map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		switch {
		case len(key) > maxConfigMapKey:
			d.fault(n, "use a shorter one", "%s has a key of more than %d characters, %q…", field, maxConfigMapKey, key[:20])
		case !configMapKey.MatchString(key) || key == "." || strings.HasPrefix(key, ".."):
			d.fault(n, "use letters, digits, '-', '_' and '.', and no '..' at the beginning", "%s has a key that Kubernetes refuses, %q", field, key)
		default:
			continue
		}
		return
	}
}

// checkData faults what a cluster would not take.
func (d *decoder) checkData(n *yaml.Node, c *ConfigMap) {
	d.checkKeys(n, "data", c.Data)
	d.checkKeys(n, "binaryData", c.BinaryData)
	size := 0
	for name, value := range c.Data {
		size += len(name) + len(value)
	}
	for _, name := range slices.Sorted(maps.Keys(c.BinaryData)) {
		raw, err := base64.StdEncoding.DecodeString(c.BinaryData[name])
		size += len(name) + len(raw)
		if err != nil {
			d.fault(n, "encode it with base64", "binaryData.%s is not base64", name)
		}
	}
	if size > MaxConfigMap {
		d.fault(n, "a cluster would not take it either", "has more than %d KiB of data", MaxConfigMap>>10)
	}
}
