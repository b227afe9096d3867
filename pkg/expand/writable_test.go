// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"resourceset.example/renderer/pkg/api"
)

// hostileTexts are what nobody types and a branch may be called all the same.
func hostileTexts(t *testing.T) map[string]string {
	texts := map[string]string{"invalid UTF-8": "1\xff\xfe2", "cut off": "1\xe2\x80", "encoded surrogate": "1\xed\xa0\x80",
		"long": strings.Repeat("k", 2000), "deep": strings.Repeat("[", 300)}
	for r := rune(0); r < 0xa0; r++ {
		if r < 0x20 || r >= 0x7f {
			texts[fmt.Sprintf("%U", r)] = "1" + string(r) + "2"
		}
	}
	for _, r := range []rune{0x2028, 0x2029, 0xfeff, 0xfffd, 0xfffe, 0xffff, 0x1fffe, 0x10ffff} {
		texts[fmt.Sprintf("%U", r)] = "1" + string(r) + "2"
	}
	for _, escaped := range []string{`"1\ud8002"`, `"1\udfff"`, `"\udc00\ud800"`} {
		var text string
		if err := json.Unmarshal([]byte(escaped), &text); err != nil {
			t.Fatal(err)
		}
		texts[escaped] = text
	}
	return texts
}

// Rule 4: whatever the text in one set is, that set alone may fail, it keeps what is
// committed, and its siblings go on. What is written, can be read.
func TestRule04HostileTextsStopNoSibling(t *testing.T) {
	templates := map[string]string{
		"quoted":   `data: {version: << inputs.version | quote >>}`,
		"escaped":  `data: {version: << inputs.version | toJson >>}`,
		"bare":     `data: {version: << inputs.version >>}`,
		"key":      `data: {<< inputs.version | toJson >>: x}`,
		"label":    `metadata: {name: cm-<< inputs.id >>, namespace: apps, labels: {version: << inputs.version | quote >>}}`,
		"digested": `data: {version: << inputs.version | sha256sum | quote >>}`,
	}
	for name, line := range templates {
		t.Run(name, func(t *testing.T) {
			spec := "inputsFrom:\n  - {kind: ResourceSetInputProvider, name: from}\nresourcesTemplate: |\n" +
				"  apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: cm-<< inputs.id >>, namespace: apps}\n  " + line +
				"\n  ---\n  apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: common, namespace: apps}\n"
			if name == "label" {
				spec = strings.Replace(spec, "  metadata: {name: cm-<< inputs.id >>, namespace: apps}\n  metadata:", "  metadata:", 1)
			}
			rs, _ := parseOne(t, specText(spec))
			p, err := Compile(rs)
			if err != nil {
				t.Fatal(err)
			}
			layOut := func(previous *Lock, versions ...string) *Output {
				t.Helper()
				var inputs []api.Input
				for i, version := range versions {
					inputs = append(inputs, api.Input{"id": string(rune('a' + i)), "version": version})
				}
				sets, err := p.Sets([]Export{external("from", inputs...)})
				if err != nil {
					t.Fatal(err)
				}
				out, err := Layout(LayoutParams{ResourceSet: rs, Sets: sets, Previous: previous,
					Rendering: p.Render(t.Context(), sets, Options{Structure: StructureEnforce})})
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			first := layOut(nil, "old", "old", "old")
			before := first.Lock.Files()
			for what, text := range hostileTexts(t) {
				out := layOut(first.Lock, "new", text, "new")
				for _, set := range []string{"a", "c"} {
					file := "from-" + set + "/apps_cm-" + set + "__ConfigMap.yaml"
					if out.Write[file] == nil {
						t.Errorf("%s: %s is not updated", what, file)
					}
				}
				const file = "from-b/apps_cm-b__ConfigMap.yaml"
				switch {
				case len(out.Failed) == 0:
					docs, err := decodeDocuments(out.Write[file])
					if err != nil || len(docs) != 1 {
						t.Errorf("%s: written and unreadable: %v\n%s", what, err, out.Write[file])
						continue
					}
					data, _ := docs[0].(map[string]any)["data"].(map[string]any)
					// JSON leaves U+0085 as it is, and YAML reads the template's text so.
					if got := data["version"]; name == "escaped" && what != "U+0085" && got != validText(text) {
						t.Errorf("%s: written as %q", what, got)
					}
				case len(out.Failed) > 1 || out.Failed[0].Set != 1 || out.Files[file].Blob != before[file]:
					t.Errorf("%s: failed %v, blob %s instead of %s", what, out.Failed, out.Files[file].Blob, before[file])
				default:
					mustContain(t, out.Failed[0].Err.Error(), "app.yaml:", "input set from-b")
				}
				if len(out.Delete) > 0 {
					t.Errorf("%s: deletes %v", what, out.Delete)
				}
				if _, err := ParseLock(out.Write[LockFile]); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// The error says which field of the template holds what.
func TestUnwritableTextsAreNamed(t *testing.T) {
	spec := `
inputsFrom:
  - {kind: ResourceSetInputProvider, name: from}
resources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: cm-<< inputs.id >>}
    data:
      version: << inputs.version | quote >>
`
	r := render(t, spec, Options{}, api.Input{"id": "a", "version": "1"}, api.Input{"id": "b", "version": "1\u007f"})
	mustContain(t, text(t, r), "failed: set 1", "app.yaml:14:", "resources[0]: input set from-b", "ConfigMap cm-b: data.version holds the character U+007F", "hint: ")
	equal(t, "objects", []string{"ConfigMap cm-a"}, ids(r))
}

// Rule 4: an object that cannot be encoded for whatever reason fails the sets that
// make it, and them alone.
func TestRule04EncodingFailsOnlyItsSets(t *testing.T) {
	f := newFolder(t)
	f.fast = true
	sets := prs("1", "2", "3")
	f.apply(LayoutParams{Sets: sets, Rendering: rendering(configMap("a-1", "x", 0), configMap("a-2", "x", 1), configMap("both", "x", 0, 1, 2))})
	bad := errors.New("no such form")
	out := f.apply(LayoutParams{Sets: sets, Rendering: rendering(configMap("a-1", "y", 0), configMap("a-2", "bad", 1), configMap("both", "x", 0, 1, 2)),
		Encode: func(object Object) ([]byte, error) {
			if object.Content["data"].(map[string]any)["text"] == "bad" {
				return nil, bad
			}
			return Encode(object.Content)
		}})
	equal(t, "changes", []string{"updated prs-1", "kept prs-2"}, changes(out))
	if len(out.Failed) != 1 || out.Failed[0].Set != 1 || !errors.Is(out.Failed[0].Err, bad) {
		t.Errorf("failed: %v", out.Failed)
	}
	p := LayoutParams{ResourceSet: f.rs, Rendering: rendering(configMap("a", "bad")), Encode: func(Object) ([]byte, error) { return nil, bad }}
	if _, err := Layout(p); !errors.Is(err, bad) {
		t.Errorf("without sets: %v", err)
	}
}

// Rule 4: a set that is called like an object of another step fails alone.
func TestRule04TwoStepsFailTheSetThatIsCalledSo(t *testing.T) {
	for name, order := range map[string][2]string{"first": {"<< inputs.name >>", "common"}, "second": {"common", "<< inputs.name >>"}} {
		spec := "inputsFrom:\n  - {kind: ResourceSetInputProvider, name: from}\nsteps:\n"
		for i, object := range order {
			spec += fmt.Sprintf("  - name: s%d\n    resources:\n      - {apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}\n", i, object)
		}
		r := render(t, spec, Options{}, api.Input{"id": "a", "name": "x"}, api.Input{"id": "b", "name": "common"}, api.Input{"id": "c", "name": "z"})
		got := ids(r)
		slices.Sort(got)
		equal(t, name, []string{"ConfigMap common", "ConfigMap x", "ConfigMap z"}, got)
		mustContain(t, text(t, r), "failed: set 1", "input set from-b", "is in two steps")
	}
}
