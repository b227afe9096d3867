// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"strings"

	"resourceset.example/renderer/pkg/api"
)

// refusal is why an object must not be written, or nil. Doubts become warnings.
func (l *layout) refusal(object *Object) error {
	if len(l.Refused) > 0 {
		for _, name := range []string{FileName(object.ID), object.ID.digestedFileName()} { // see place
			if err := l.Refused[name]; err != nil {
				return err
			}
		}
	}
	if msg, hint := invalidName(object); msg != "" {
		return l.fault(object, msg, hint)
	}
	if object.Unresolved != nil {
		return object.Unresolved
	}
	if l.AllowPlainSecrets {
		return nil
	}
	if secret := plainSecret(object.Content); secret != "" {
		return l.fault(object, secret+" is not encrypted: in Git everybody who can read the repository could read it, for ever",
			"encrypt its data with SOPS, have it made in the cluster (by an ExternalSecret, for example), "+
				"or set secrets.allowPlainOutput: true")
	}
	return nil
}

// fault is about an object, and placed where its template is.
func (l *layout) fault(object *Object, msg, hint string) *api.Fault {
	return &api.Fault{
		Pos:    l.ResourceSet.At("spec"),
		Object: l.ResourceSet.String(),
		Msg:    object.ID.String() + ": " + msg,
		Hint:   hint,
	}
}

// plainSecret names the first Secret with data that is not encrypted, in an object
// or, when that is a list, among its items.
func plainSecret(content map[string]any) string {
	kind, _ := content["kind"].(string)
	version, _ := content["apiVersion"].(string)
	if items, ok := content["items"].([]any); ok && strings.HasSuffix(kind, "List") {
		for _, item := range items {
			object, _ := item.(map[string]any)
			if object["kind"] == nil && version == "v1" && kind == "SecretList" {
				object = withKind(object)
			}
			if secret := plainSecret(object); secret != "" {
				return secret
			}
		}
		return ""
	}
	if kind != "Secret" || version != "v1" || isEncrypted(content) {
		return ""
	}
	if isEmpty(content["data"]) && isEmpty(content["stringData"]) {
		return ""
	}
	metadata, _ := content["metadata"].(map[string]any)
	return fmt.Sprintf("Secret %v", metadata["name"])
}

// withKind makes a Secret of an item of a SecretList, whose kind may be left out.
func withKind(item map[string]any) map[string]any {
	object := map[string]any{}
	for key, value := range item {
		object[key] = value
	}
	object["kind"], object["apiVersion"] = "Secret", "v1"
	return object
}

func isEmpty(value any) bool {
	if value == nil {
		return true
	}
	m, ok := value.(map[string]any)
	return ok && len(m) == 0
}

// isEncrypted says that SOPS encrypted every value of a Secret, and signed that.
func isEncrypted(content map[string]any) bool {
	sops, _ := content["sops"].(map[string]any)
	if mac, _ := sops["mac"].(string); mac == "" {
		return false
	}
	for _, field := range []string{"data", "stringData"} {
		if isEmpty(content[field]) {
			continue
		}
		data, ok := content[field].(map[string]any)
		if !ok {
			return false
		}
		for _, value := range data {
			text, _ := value.(string)
			if !strings.HasPrefix(text, "ENC[") || !strings.HasSuffix(text, "]") {
				return false
			}
		}
	}
	return true
}
