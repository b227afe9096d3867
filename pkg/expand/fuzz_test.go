// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/pkg/api"
)

// formTemplates are texts of an item of spec.resources, with one input x and one y.
var formTemplates = []string{
	"<< inputs.x >>", "pre-<< inputs.x >>", "<< inputs.x >>-post", "<< inputs.x | quote >>", "v<< inputs.x >>.<< inputs.y >>", "<< inputs.x >><< inputs.y >>",
	"it is: << inputs.x >>", "# << inputs.x >>", "{{ << inputs.x >> }}", "<< inputs.x | slugify >>", "<< inputs.x | upper >>", "<< if inputs.x >>yes<< else >><< inputs.y >><< end >>",
	"<< inputs.m.k >>", "<< inputs.x | default inputs.y >>", "https://a.example/<< inputs.x >>/long/path/that/goes/on/and/on/<< inputs.y >>/further/than/eighty/columns/of/text",
	"<< range inputs.l >><< . >>,<< end >>", "<< inputs.x | int >>", "two << inputs.x >> words << inputs.y >> and so on until the line is folded by the YAML library at last",
	"<<inputs.x>>", "<<- inputs.x ->>", "<< inputs.gone >>", "<< $v := inputs.x >><< $v >>", "<< inputs.x | quote >> b", "a << inputs.x | quote >>", "<< inputs.n >>", "<< inputs.n | quote >>", "<< inputs.b >>",
	"<</* c */>><< inputs.x >>", "<< (inputs).x >>", "<< inputs.m >>", "<< inputs.x | b64enc >>", "<< toYaml inputs.x >>", "<< toJson inputs.m >>", "yes", "12", "a\nb << inputs.x >>", "ü << inputs.x >>", "'<< inputs.x >>'", "\"<< inputs.x >>\"",
}

// checkForm renders an item both ways, where there are two.
func checkForm(t *testing.T, item map[string]any, inputs api.Input) (filled bool) {
	t.Helper()
	rs := &api.ResourceSet{Meta: api.Meta{Name: "app", Namespace: "apps"}}
	rs.Spec.Resources = []any{item}
	p, err := Compile(rs)
	if err != nil || p.parts[0].form == nil {
		return false
	}
	w := p.newWorker(t.Context(), p.parts...)
	w.start(&Set{Inputs: inputs})
	got, ok := w.fill(0)
	if !ok {
		return false
	}
	text, err := w.execute(0)
	if err != nil {
		t.Fatalf("%v of %v: the form gives %v, the template says %v", item, inputs, got, err)
	}
	docs, err := decodeDocuments(text)
	if err != nil || len(docs) != 1 {
		t.Fatalf("%v of %v: the form gives %v, YAML says %v, %v of\n%s", item, inputs, got, docs, err, text)
	}
	if diff := cmp.Diff(docs[0], any(got)); diff != "" {
		t.Fatalf("%v of %v (-template +form):\n%s", item, inputs, diff)
	}
	return true
}

func formItem(template string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "annotations": map[string]any{"a/b": template}},
		"data": map[string]any{"key": template, "list": []any{template, map[string]any{"deep": template}, int64(3), nil, 1.5, 2.0, []any{}}, "other": template + template},
		"n":    map[string]any{"big": 1e21, "empty": map[string]any{}, "no": "no", "t": true},
	}
}

func FuzzForm(f *testing.F) {
	for i, s := range oddTexts {
		f.Add(s, oddTexts[(i*31+7)%len(oddTexts)], int64(i))
	}
	f.Fuzz(func(t *testing.T, x, y string, n int64) {
		inputs := api.Input{"x": x, "y": y, "n": n, "b": n%2 == 0, "m": map[string]any{"k": y}, "l": []any{x, y}}
		checkForm(t, formItem(formTemplates[uint64(n)%uint64(len(formTemplates))]), inputs)
	})
}

// Every template with every odd text: filling a form is what executing it gives.
func TestFormIsTheTemplate(t *testing.T) {
	filled := 0
	for i, template := range formTemplates {
		for j, x := range oddTexts {
			if (i+j)%5 != 0 { // a fifth of them is enough; FuzzForm starts from all texts
				continue
			}
			inputs := api.Input{"x": x, "y": oddTexts[(j*17+i)%len(oddTexts)], "n": int64(j), "b": j%2 == 0, "m": map[string]any{"k": x}, "l": []any{x}}
			if checkForm(t, formItem(template), inputs) {
				filled++
			}
		}
	}
	if filled < 200 {
		t.Errorf("only %d forms were filled", filled)
	}
}

// What a template that anyone may send does: it gives objects or an error, the same
// every time, and never takes the process down.
func FuzzRender(f *testing.F) {
	for i, template := range formTemplates {
		f.Add(template, oddTexts[i%len(oddTexts)])
	}
	f.Add("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: << inputs.x >>\n---\n<<- range inputs.l >>\n<< end >>", "a")
	f.Add("{\"apiVersion\": << inputs.x >>}", "a")
	f.Add("<< define \"a\" >><< template \"a\" >><< end >>", "")
	f.Fuzz(func(t *testing.T, template, x string) {
		rs := &api.ResourceSet{Meta: api.Meta{Name: "app", Namespace: "apps"}}
		rs.Spec.InputsFrom = []api.InputProviderReference{{Name: "from"}}
		rs.Spec.ResourcesTemplate = template
		rs.Spec.Resources = []any{formItem(template)}
		var first string
		for i := range 2 {
			p, err := Compile(rs)
			if err != nil {
				return
			}
			sets, err := p.Sets([]Export{external("from", api.Input{"id": "1", "x": x, "l": []any{x}}, api.Input{"id": "2", "x": "plain"})})
			if err != nil {
				t.Fatal(err)
			}
			got := text(t, p.Render(t.Context(), sets, Options{Structure: StructureEnforce}))
			if i == 0 {
				first = got
			}
			if got != first {
				t.Fatalf("rendered again:\n%s\nfirst:\n%s", got, first)
			}
		}
	})
}
