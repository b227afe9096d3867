// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"
)

func TestConfigMapsByName(t *testing.T) {
	of := func(name, data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {a: " + data + "}\n---\n"
	}
	defs := Parse("a.yaml", []byte(of("one", "x")+of("same", "x")+of("same", "x")+of("twice", "x")+of("twice", "y")))
	got := defs.ConfigMapsByName()
	if len(got) != 3 || got["default/one"].Data["a"] != "x" || got["default/same"].Unusable != nil {
		t.Errorf("%v", got)
	}
	if fault := got["default/twice"].Unusable; fault == nil || !strings.Contains(fault.Error(), "a.yaml:21: ConfigMap default/twice: is declared twice among the definitions, first at a.yaml:16") {
		t.Errorf("twice: %v", fault)
	}
	if len(defs.Faults) > 0 || !defs.Empty() {
		t.Errorf("a ConfigMap counts as a definition: %v", defs.Faults)
	}
	if (&Definitions{}).ConfigMapsByName() != nil {
		t.Error("there is a map without ConfigMaps")
	}
}

// What no cluster would take is not kept in memory either; a file of aliases that stand
// for each other does not run out of hand.
func TestConfigMapsAreBounded(t *testing.T) {
	defs := Parse("a.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata: {a: \""+strings.Repeat("x", MaxConfigMap)+"\"}\n"))
	if c := defs.ConfigMaps[0]; c.Unusable == nil || c.Data != nil || !strings.Contains(c.Unusable.Msg, "more than 1024 KiB") {
		t.Errorf("large: %v", c.Unusable)
	}
	var b strings.Builder
	b.WriteString("kind: List\napiVersion: v1\nitems:\n- data: &data {")
	for i := range 1000 {
		fmt.Fprintf(&b, "k%d: x, ", i)
	}
	b.WriteString("}\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "- {apiVersion: v1, kind: ConfigMap, metadata: {name: m%d}, data: *data}\n", i)
	}
	defs = Parse("a.yaml", []byte(b.String()))
	if last := defs.ConfigMaps[len(defs.ConfigMaps)-1]; last.Unusable == nil {
		t.Error("a million values out of 60 KB were read")
	}
}

// Nothing is copied under a key that Kubernetes refuses: the object that takes it over
// would be refused with it.
func TestConfigMapKeys(t *testing.T) {
	for key, usable := range map[string]bool{
		"a": true, "config.yaml": true, ".hidden": true, "A_b-1.": true, strings.Repeat("k", 253): true,
		"": false, ".": false, "..": false, "..a": false, "../../x": false, "k k": false, "a/b": false, "ü": false, "a\n": false,
		strings.Repeat("k", 254): false,
	} {
		for _, field := range []string{"data", "binaryData"} {
			defs := Parse("a.yaml", fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n%s: {? %q : aGk=}\n", field, key))
			if len(defs.ConfigMaps) != 1 || len(defs.Faults) > 0 {
				t.Fatalf("%s %q: %v", field, key, defs.Faults)
			}
			c := defs.ConfigMaps[0]
			if (c.Unusable == nil) != usable || len(c.Data)+len(c.BinaryData) == 0 == usable {
				t.Errorf("%s %.30q: unusable because of %v", field, key, c.Unusable)
			}
			if c.Unusable != nil && !strings.Contains(c.Unusable.Msg, field+" has a key") {
				t.Errorf("%s %.30q: %v", field, key, c.Unusable)
			}
		}
	}
}
