// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"strings"
	"testing"

	"resourceset.example/renderer/pkg/api"
)

func secret(name string, content map[string]any, sets ...int) Object {
	object := Object{ID: ObjectID{Kind: "Secret", Namespace: "apps", Name: name}, APIVersion: "v1", Sets: sets, Content: content}
	content["apiVersion"], content["kind"] = "v1", "Secret"
	content["metadata"] = map[string]any{"name": name, "namespace": "apps"}
	return object
}

// Rule 8, FR-85: the set that makes a Secret in plain text fails, and nothing of it is written.
func TestRule08FR85PlainSecretsAreRefused(t *testing.T) {
	encrypted := map[string]any{"mac": "ENC[AES256_GCM,data:x]"}
	tests := map[string]struct {
		object  Object
		refused bool
	}{
		"stringData": {secret("s", map[string]any{"stringData": map[string]any{"password": "hunter2"}}, 0), true},
		"data":       {secret("s", map[string]any{"data": map[string]any{"password": "aHVudGVyMg=="}}, 0), true},
		"not a map":  {secret("s", map[string]any{"data": "hunter2"}, 0), true},
		"empty":      {secret("s", map[string]any{"type": "kubernetes.io/service-account-token", "data": nil}, 0), false},
		"encrypted": {secret("s", map[string]any{"sops": encrypted,
			"stringData": map[string]any{"password": "ENC[AES256_GCM,data:y]"}}, 0), false},
		"half encrypted": {secret("s", map[string]any{"sops": encrypted,
			"data": map[string]any{"a": "ENC[AES256_GCM,data:y]", "b": "aHVudGVyMg=="}}, 0), true},
		"encrypted in one value": {secret("s", map[string]any{"sops": encrypted,
			"stringData": map[string]any{"a": "ENC[AES256_GCM,data:y]", "b": "[hunter2]"}}, 0), true},
		"encrypted in name only": {secret("s", map[string]any{"sops": map[string]any{},
			"data": map[string]any{"a": "ENC[AES256_GCM,data:y]"}}, 0), true},
		"in a list": {Object{ID: ObjectID{Kind: "List", Name: "l"}, Sets: []int{0}, Content: map[string]any{
			"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"name": "l"},
			"items": []any{secret("s", map[string]any{"data": map[string]any{"a": "aHVudGVyMg=="}}).Content}}}, true},
		"in a list of Secrets": {Object{ID: ObjectID{Kind: "SecretList", Name: "l"}, Sets: []int{0}, Content: map[string]any{
			"apiVersion": "v1", "kind": "SecretList", "metadata": map[string]any{"name": "l"},
			"items": []any{map[string]any{"data": map[string]any{"a": "aHVudGVyMg=="}}}}}, true},
		"another group's kind": {Object{ID: ObjectID{Group: "x.example", Kind: "Secret", Name: "s"}, Sets: []int{0}, Content: map[string]any{
			"apiVersion": "x.example/v1", "kind": "Secret", "metadata": map[string]any{"name": "s"},
			"data": map[string]any{"a": "b"}}}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := LayoutParams{ResourceSet: resourceSet("apps", "app"), Sets: prs("1", "2"),
				Rendering: rendering(tt.object, configMap("beside", "x", 0), configMap("sibling", "x", 1))}
			out, err := Layout(p)
			if err != nil {
				t.Fatal(err)
			}
			if refused := len(out.Failed) == 1 && out.Failed[0].Set == 0; refused != tt.refused {
				t.Errorf("refused = %v, want %v: %v", refused, tt.refused, out.Failed)
			}
			for file, content := range out.Write {
				if tt.refused && (strings.Contains(string(content), "aHVudGVyMg") || strings.Contains(string(content), "hunter2") || strings.HasPrefix(file, "prs-1/")) {
					t.Errorf("%s is written:\n%s", file, content)
				}
			}
			if _, ok := out.Files["prs-2/apps_sibling__ConfigMap.yaml"]; !ok {
				t.Error("the sibling set is not written")
			}
			for _, failed := range out.Failed {
				if text := failed.Err.Error(); strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMg") {
					t.Errorf("the secret is in the error: %s", text)
				}
				if hint := failed.Err.(*api.Fault).Suggestion(); !strings.Contains(hint, "SOPS") {
					t.Errorf("hint %q", hint)
				}
			}
			p.AllowPlainSecrets = true
			if out, err := Layout(p); err != nil || len(out.Failed) > 0 {
				t.Errorf("refused although allowed: %v %v", out.Failed, err)
			}
		})
	}
}

// Rule 8: a ResourceSet without inputs stays as it is when it makes a plain Secret.
func TestRule08PlainSecretWithoutInputs(t *testing.T) {
	_, err := Layout(LayoutParams{ResourceSet: resourceSet("apps", "app"),
		Rendering: rendering(secret("s", map[string]any{"stringData": map[string]any{"a": "b"}}))})
	if err == nil || !strings.Contains(err.Error(), "Secret apps/s") {
		t.Errorf("got %v", err)
	}
}

// Rule 8, FR-85: nothing is copied from the live cluster, least of all Secrets.
func TestRule08FR85CopyFromIsRefused(t *testing.T) {
	annotated := func(object Object, key string) Object {
		object.Content["metadata"].(map[string]any)["annotations"] = map[string]any{key: "flux-system/docker-auth"}
		return object
	}
	r := rendering(
		annotated(secret("s", map[string]any{}, 0), annotationCopyFrom),
		annotated(configMap("c", "x", 1), annotationCopyFrom),
		annotated(configMap("d", "x", 2), annotationChecksumFrom))
	resolveReferences(resourceSet("apps", "app"), r.Objects, nil)
	out, err := Layout(LayoutParams{ResourceSet: resourceSet("apps", "app"), Sets: prs("1", "2", "3"), AllowPlainSecrets: true, Rendering: r})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Failed) != 3 || !strings.Contains(out.Failed[0].Err.Error(), "plain text of a Secret") ||
		!strings.Contains(out.Failed[1].Err.Error(), "live cluster") {
		t.Errorf("failed: %v", out.Failed)
	}
	if text := out.Failed[2].Err.Error(); !strings.Contains(text, `"flux-system/docker-auth" is not of the form`) {
		t.Error(text)
	}
}

// Rule 8: sensitive fields are in the lock as digests only.
func TestRule08SensitiveFieldsAreDigests(t *testing.T) {
	f := newFolder(t)
	sets := prs("1")
	sets[0].Parts[0].Inputs["token"] = "hunter2"
	p := LayoutParams{Sets: sets, Sensitive: map[string][]string{"prs": {"token", "absent"}}, Rendering: rendering(configMap("a", "x", 0))}
	f.apply(p)
	if strings.Contains(f.files[LockFile], "hunter2") || !strings.Contains(f.files[LockFile], `token: "sha256:`) {
		t.Error(f.files[LockFile])
	}
	if sets[0].Parts[0].Inputs["token"] != "hunter2" {
		t.Error("the input set was changed")
	}
	if _, err := f.lock.Export("prs"); err == nil {
		t.Error("exported although a value is missing")
	}
}

// Rule 8: the same below the key of a permutation.
func TestRule08SensitiveFieldsOfPermutations(t *testing.T) {
	f := newFolder(t)
	parts := []Part{
		{Kind: api.KindResourceSet, Provider: "app", Key: "app", Inputs: api.Input{"token": "author's own"}},
		{Kind: api.KindInputProvider, Provider: "the-service", Key: "the_service", Inputs: api.Input{"token": "hunter2", "n": "1"}},
	}
	f.apply(LayoutParams{Sets: []Set{{Name: "app-x0123456789ab", ID: "1", Parts: parts}},
		Sensitive: map[string][]string{"the-service": {"token"}}, Rendering: rendering(configMap("a", "x", 0))})
	if lock := f.files[LockFile]; strings.Contains(lock, "hunter2") || !strings.Contains(lock, "author's own") {
		t.Error(lock)
	}
	equal(t, "sensitive", []string{"the_service/token"}, f.lock.Sets[0].Sensitive)
	equal(t, "keys", map[string]string{"the_service": "the-service"}, f.lock.Keys)
	if _, err := f.lock.Export("the-service"); err == nil {
		t.Error("exported although a value is missing")
	}
}
