// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"strings"
	"testing"
)

// A ConfigMap among the definitions is copied by what asks for it, and rendered anew when
// it changes, although neither inputs nor the ResourceSet did; while it is not there, what
// is committed stays. FR-85.
func TestCopiesOfDefinitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const file = "apps/app/tenants-red/apps_app-red__ConfigMap.yaml"
	settings := func(greeting string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: flux-system}\ndata: {greeting: " + greeting + "}\n"
	}
	w.define(map[string]string{
		"app.yaml": strings.Replace(appSet, "        namespace: apps\n", "        namespace: apps\n        annotations: {fluxcd.controlplane.io/copyFrom: flux-system/settings}\n", 1),
	})
	report := w.unchanged(w.once) // a new ResourceSet of which nothing renders
	w.problem(report, "flux-system/settings is neither rendered by this ResourceSet nor among the definitions", "put the ConfigMap that it names among the definitions")

	w.define(map[string]string{"settings.yaml": settings("hello")})
	w.ok()
	if text := w.repo.Read("main", "clusters/generated/"+file); !strings.Contains(text, "greeting: hello") || strings.Contains(text, "version:") {
		t.Errorf("not copied:\n%s", text)
	}
	w.unchanged(w.ok)

	w.define(map[string]string{"settings.yaml": settings("hola")})
	w.ok()
	if text := w.repo.Read("main", "clusters/generated/"+file); !strings.Contains(text, "greeting: hola") {
		t.Errorf("not copied again:\n%s", text)
	}
	if message := w.repo.Git("log", "-1", "--format=%B", "main"); !strings.Contains(message, "Input-Updated: tenants-red") {
		t.Errorf("message:\n%s", message)
	}

	w.define(map[string]string{"settings.yaml": ""})
	w.problem(w.unchanged(w.once), "flux-system/settings is neither")
	w.restart()
	w.problem(w.unchanged(w.once), "flux-system/settings is neither")
	w.define(map[string]string{"settings.yaml": settings("hola")})
	w.unchanged(w.ok)
}
