// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"resourceset.example/renderer/pkg/api"
)

// Rule 4, FR-26: a set that fails takes no other set with it, and is named with
// the line of the template.
func TestRule04_SetsAreIsolated(t *testing.T) {
	r := render(t, `
inputsFrom:
- name: from
resourcesTemplate: |
  apiVersion: v1
  kind: ConfigMap
  metadata:
    name: app-<< inputs.id >>
  data:
    size: << inputs.size | quote >>
  ---
  apiVersion: v1
  kind: Namespace
  metadata:
    name: shared`, Options{},
		api.Input{"id": "1", "size": int64(3)}, api.Input{"id": "2", "sizes": int64(3)}, api.Input{"id": "3", "size": int64(5)})
	if diff := cmp.Diff([]string{"ConfigMap app-1", "Namespace shared", "ConfigMap app-3"}, ids(r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !slices.Equal(r.Objects[1].Sets, []int{0, 2}) || !r.Objects[1].Static || r.Objects[0].Static {
		t.Errorf("shared object: %+v", r.Objects[1])
	}
	if len(r.Failed) != 1 || r.Failed[0].Set != 1 {
		t.Fatalf("failed: %v", r.Failed)
	}
	mustContain(t, errorText(r.Failed[0].Err),
		`app.yaml:15: ResourceSet apps/app: resourcesTemplate line 6: input set from-2: inputs has no "size"`,
		`did you mean "sizes"?`, "this set has id, provider, sizes")
}

// A shared object comes from the first set that does not fail.
func TestSharedObjectOfFailedSet(t *testing.T) {
	r := render(t, `
inputsFrom:
- name: from
resources:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: notice}
  data: {from: << inputs.id | quote >>}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: app-<< inputs.id >>}
  data: {x: << inputs.x | quote >>}`, Options{}, api.Input{"id": "1"}, api.Input{"id": "2", "x": "y"})
	mustContain(t, text(t, r), `from: "2"`, "failed: set 0")
}

func TestNoInputSetsRenderNothing(t *testing.T) {
	spec := "inputsFrom:\n- name: from\nresources:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"
	if r := render(t, spec, Options{}, []api.Input{}...); len(r.Objects)+len(r.Failed) != 0 {
		t.Errorf("%s", text(t, r))
	}
	if r := render(t, strings.TrimPrefix(spec, "inputsFrom:\n- name: from\n"), Options{}); len(r.Objects) != 1 || r.Objects[0].Sets != nil {
		t.Errorf("%s", text(t, r))
	}
}

// FR-20: a line "---" inside a text is no end of a document.
func TestDocumentEndInsideText(t *testing.T) {
	r := render(t, `
resourcesTemplate: |
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: x}
  data:
    config: |
      a: 1
      ---
      b: 2
  ---
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: z}`, Options{})
	if len(r.Objects) != 2 {
		t.Fatalf("%s", text(t, r))
	}
	data := r.Objects[0].Content["data"].(map[string]any)
	if data["config"] != "a: 1\n---\nb: 2\n" {
		t.Errorf("config is %q", data["config"])
	}
}

// FR-53: a document that is no object fails its set, never vanishes.
func TestDocumentThatIsNoObject(t *testing.T) {
	for doc, want := range map[string]string{
		"piVersion: v1\nkind: ConfigMap\nmetadata: {name: x}":                    "without apiVersion",
		"apiVersion: v1\nkindd: ConfigMap\nmetadata: {name: x}":                  "without kind",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: x}":              "ConfigMap: an object without metadata.name",
		"apiVersion: v1\nkind: ConfigMap":                                        "without metadata.name",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 12}":                  "metadata.name is a number (12), not a text",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: x":                           "metadata is a text, not a map",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, labels: {a: 1}}":   "metadata.labels[a] is a number, not a text",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, annotations: [a]}": "metadata.annotations is a list, not a map",
		"just text":   "renders to a text, not an object",
		"a: 1\n b: 2": "valid YAML",
		"a: .nan":     "no counterpart in JSON",
	} {
		r := render(t, "resourcesTemplate: |\n  "+strings.ReplaceAll(doc, "\n", "\n  "), Options{})
		if len(r.Objects) != 0 || len(r.Failed) != 1 || !strings.Contains(r.Failed[0].Err.Error(), want) {
			t.Errorf("%s\nwant %q, got %s", doc, want, text(t, r))
		}
	}
}

func TestRepeatedObjectOfOneSetIsReported(t *testing.T) {
	r := render(t, `
inputs:
- name: x
resources:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}
- {apiVersion: v2, kind: ConfigMap, metadata: {name: << inputs.name >>}}`, Options{})
	if len(r.Objects) != 1 || len(r.Warnings) != 1 {
		t.Fatalf("%s", text(t, r))
	}
	mustContain(t, r.Warnings[0].Error(), "resources[1]: inputs[0]: ConfigMap x is there already")
}

func TestResourceThatRendersToSeveralDocuments(t *testing.T) {
	r := render(t, "resources:\n- << inputs.all >>\ninputs:\n- all: \"apiVersion: v1\\nkind: A\\nmetadata: {name: x}\\n---\\napiVersion: v1\\nkind: B\\nmetadata: {name: x}\"", Options{})
	mustContain(t, text(t, r), "renders to more than one document")
}

// Templates that change their inputs in place change a copy.
func TestRenderLeavesInputsAlone(t *testing.T) {
	in := api.Input{"id": "1", "o": map[string]any{"k": "v", "l": []any{"a"}}}
	spec := `
inputsFrom:
- name: from
resources:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: << $_ := set inputs.o "k" "changed" >><< $_ := unset inputs "id" >>x}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: << inputs.o.k >>-<< inputs.id >>}`
	r := render(t, spec, Options{}, in)
	if diff := cmp.Diff([]string{"ConfigMap x", "ConfigMap v-1"}, ids(r)); diff != "" {
		t.Errorf("-want +got:\n%s%s", diff, text(t, r))
	}
	if !cmp.Equal(in, api.Input{"id": "1", "o": map[string]any{"k": "v", "l": []any{"a"}}}) {
		t.Errorf("inputs are now %v", in)
	}
}

func TestRenderIsTheSameEveryTime(t *testing.T) {
	inputs := pullRequests(50)
	rs := previewResourceSet()
	rs.Spec.ResourcesTemplate = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: all-<< mod inputs.id 7 >>
data:
  keys: << keys inputs | join "," >>
  values: << omit inputs "provider" | values | join "," | quote >>
  map: << inputs | toJson | quote >>
`
	p, err := Compile(rs)
	if err != nil {
		t.Fatal(err)
	}
	var first string
	for i := range 3 {
		sets, err := p.Sets([]Export{external("from", inputs...)})
		if err != nil {
			t.Fatal(err)
		}
		got := text(t, p.Render(context.Background(), sets, Options{Structure: StructureWarn}))
		if i == 0 {
			first = got
		}
		if got != first {
			t.Fatal("rendering again gave another text")
		}
	}
}

func TestRenderEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := compile(t, "inputs: [{a: 1}]\nresources:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")
	sets, _ := p.Sets(nil)
	r := p.Render(ctx, sets, Options{})
	if len(r.Objects) != 0 || len(r.Failed) != 1 || r.Failed[0].Set != -1 {
		t.Errorf("%s", text(t, r)) // rule 1: never looks like "all removed"
	}
}

// Neither a template nor an input takes the process down.
func TestLimits(t *testing.T) {
	bomb := `<< $x := "aaaaaaaaaaaaaaaa" >>`
	for range 30 {
		bomb += `<< $x = print $x $x >>`
	}
	cyclic := `<< $d := dict "a" 1 >><< $_ := set $d "self" (list $d) >><< $d >>`
	aliased := `<< $e := dict >><< $l := list $e >>` + strings.Repeat(`<< $l = concat $l $l >>`, 12) +
		`<< $_ := set $e "x" (repeat 1000000 "x") >><< $l >>`
	for name, template := range map[string]string{
		"doubling":  bomb + "<< $x >>",
		"laughs":    `<< $x := list "ha" >>` + strings.Repeat(`<< $x = list $x $x $x $x $x $x $x $x >>`, 20) + "<< $x >>",
		"quote":     `<< $x := "aaaaaaaaaaaaaaaa" >>` + strings.Repeat(`<< $x = quote $x $x >>`, 30),
		"repeat":    `<< repeat 1000000000 "abc" >>`,
		"indent":    `<< indent 1000000000 "abc" >>`,
		"until":     `<< until 1000000000 >>`,
		"step":      `<< untilStep 0 9223372036854775807 1 >>`,
		"seq":       `<< seq 1000000000 >>`,
		"printf":    `<< printf "%0999999d" 1 >>`,
		"star":      `<< printf "%*d" 1000000 1 >>`,
		"pointer":   `<< printf "%p" inputs >>`,
		"replace":   `<< replace "a" (repeat 100000 "b") (repeat 100000 "a") >>`,
		"regex":     `<< regexReplaceAll "a" (repeat 100000 "a") (repeat 100000 "b") >>`,
		"join":      `<< join (repeat 1000000 "b") (until 1000) >>`,
		"loop":      `<< range 1000000000 >><< end >>`,
		"loops":     `<< range 100000 >><< range 100000 >><< end >><< end >>`,
		"output":    `<< range 1000000 >>some text that is written again and again<< end >>`,
		"recursion": `<< define "f" >><< template "f" >><< end >><< template "f" >>`,
		"fork":      `<< define "f" >><< template "f" . >><< template "f" . >><< end >><< template "f" >>`,
		"cycle":     cyclic,
		"merge":     `<< $d := dict "a" 1 >><< $_ := merge $d (dict "b" $d) >><< $d | toJson >>`,
		"aliases":   aliased,
		"divide":    `<< div 1 0 >>`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && slices.Contains([]string{"loops", "recursion", "output", "fork"}, name) {
				t.Skip("slow under the race detector: `make integration` runs it")
			}
			r := render(t, "resources:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: x}\n- "+quoteYAML(template), Options{})
			if len(r.Failed) != 1 || len(r.Objects) != 0 {
				t.Fatalf("did not fail")
			}
			if len(r.Failed[0].Err.Error()) > 1000 {
				t.Errorf("a long error: %.300s…", r.Failed[0].Err.Error())
			}
		})
	}
}

func quoteYAML(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func TestNumbersAreTheSameEverywhere(t *testing.T) {
	for value, want := range map[any]int64{
		"08": 8, "3.7": 0, "0x10": 0, 3.9: 3, -3.9: -3, 1e300: -1 << 63, true: 1, int64(7): 7, uint64(1 << 63): 1<<63 - 1, nil: 0,
	} {
		if got := toInt64(value); got != want {
			t.Errorf("%v is %d, want %d", value, got, want)
		}
	}
}

func TestCommonMetadataAndOwner(t *testing.T) {
	r := render(t, `
commonMetadata:
  labels: {team: red}
  annotations: {note: hi}
resources:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: x, labels: {team: blue, own: kept}}`, Options{})
	got := fmt.Sprint(r.Objects[0].Content["metadata"])
	mustContain(t, got, "team:red", "own:kept", "note:hi", api.LabelOwnerName+":app", api.LabelOwnerNamespace+":apps")
}
