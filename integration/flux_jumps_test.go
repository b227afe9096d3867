// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"
)

// jumps is rule 15: whatever changes about who applies an object, the object in the
// cluster is never deleted for it.
func (f *fleet) jumps(t *testing.T) {
	h := f.hand(t, "jumps")
	on := h.setup.flux
	h.setup.flux = ""
	h.define(map[string]string{"app": fixed("app", "", "a b c")})
	h.start()
	h.settles()
	h.owned("a=jumps", "b=jumps", "c=jumps")

	t.Log("target.flux goes on")
	h.setup.flux = on
	h.pass()
	for name, o := range h.lives("a", "b", "c") {
		if o.GetAnnotations()["kustomize.toolkit.fluxcd.io/prune"] != "disabled" {
			t.Errorf("%s is not protected", name)
		}
	}
	h.comes("hand over to Flux Kustomizations")
	h.settles()
	h.owned("a=app", "b=app", "c=app")
	h.setup.quiet()

	for _, change := range []struct {
		what string
		sets map[string]string
		want string
	}{
		{"steps come", map[string]string{"app": fixed("app", "", "one: a b", "two: c")}, "a=app-one b=app-one c=app-two"},
		{"a step is renamed", map[string]string{"app": fixed("app", "", "uno: a b", "two: c")}, "a=app-uno b=app-uno c=app-two"},
		{"an object goes to another step", map[string]string{"app": fixed("app", "", "uno: a", "two: b c")}, "a=app-uno b=app-two c=app-two"},
		{"steps change their order", map[string]string{"app": fixed("app", "", "two: b c", "uno: a")}, "a=app-uno b=app-two c=app-two"},
		{"a step goes with its object, another object comes", map[string]string{"app": fixed("app", "", "two: b c d")}, "b=app-two c=app-two d=app-two"},
		{"the last step goes", map[string]string{"app": fixed("app", "", "b c d")}, "b=app c=app d=app"},
		{"an object goes to another ResourceSet", map[string]string{"app": fixed("app", "", "b c"), "other": fixed("other", "", "d e")}, "b=app c=app d=other e=other"},
		{"a ResourceSet is renamed", map[string]string{"app": fixed("prog", "", "b c")}, "b=prog c=prog d=other e=other"},
		{"renamed, with steps, and an object goes", map[string]string{"app": fixed("tool", "", "one: f", "two: b")}, "b=tool-two d=other e=other f=tool-one"},
	} {
		t.Log(change.what)
		h.define(change.sets)
		h.pass()
		h.owned(strings.Fields(change.want)...)
	}

	t.Log("target.flux goes off")
	h.setup.flux = ""
	h.pass()
	h.owned("b=jumps", "d=jumps", "e=jumps", "f=jumps")
	t.Log("an object goes meanwhile, another comes")
	h.define(map[string]string{"other": fixed("other", "", "e g")})
	h.pass()
	h.owned("b=jumps", "e=jumps", "f=jumps", "g=jumps")
	t.Log("target.flux goes on again")
	h.setup.flux = on
	h.pass()
	h.comes("hand over to Flux Kustomizations")
	h.settles()
	h.owned("b=tool-two", "e=other", "f=tool-one", "g=other")
}
