// SPDX-License-Identifier: Apache-2.0

package config

// Unsupported are warnings for what the file asks for and this version does not
// do. A value that asks for nothing (the default, spelled out) gives none.
func (c *Config) Unsupported() []*Fault {
	var warnings []*Fault
	for _, u := range []struct {
		asked bool
		path  string
		what  string
	}{
		{c.Target.Flux != nil, "target.flux", "no Flux Kustomizations are written"},
	} {
		if u.asked {
			warnings = append(warnings, c.faultAt(u.path, "", "not acted on by this version: %s", u.what))
		}
	}
	return warnings
}
