// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"strings"
	"testing"
)

// Commits that rest on ConfigMaps of the definitions are proved from those of that day;
// a copy that does not follow from them is found.
func TestVerifyCopiesOfDefinitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: apps}\ndata: {greeting: hello}\n"
	w.define(map[string]string{"settings.yaml": settings,
		appSet: strings.Replace(appFile, "namespace: apps}\n      data: {version: \"<< inputs.version >>\"}",
			"namespace: apps, annotations: {fluxcd.controlplane.io/copyFrom: apps/settings}}", 1)})
	w.rendered()
	w.define(map[string]string{"settings.yaml": strings.Replace(settings, "hello", "hola", 1)})
	w.rendered()
	if text := w.read(redFile); !strings.Contains(text, "greeting: hola") {
		t.Fatalf("not copied:\n%s", text)
	}
	w.proved(2)

	bent := w.person(w.message("main"), map[string]string{redFile: strings.Replace(w.read(redFile), "hola", "salut", 1)})
	w.status(w.verify(Verification{}), bent, Altered)
}
