// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"errors"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"
)

func compileError(t *testing.T, spec string) string {
	t.Helper()
	rs, _ := parseOne(t, specText(spec))
	p, err := Compile(rs)
	if err == nil {
		t.Fatalf("compiled: %v", p)
	}
	var e *TemplateError
	if !errors.As(err, &e) {
		t.Errorf("%T is no *TemplateError", err)
	}
	return errorText(err)
}

// FR-23, FR-80: what reads the machine or the moment does not exist, under any of
// its names, and the error says why.
func TestForbiddenFunctions(t *testing.T) {
	reasons := map[string]string{
		"now": "clock", "ago": "clock", "date": "clock", "htmlDate": "clock", "dateInZone": "time zone", "date_in_zone": "time zone",
		"toDate": "time zone", "mustToDate": "time zone", "unixEpoch": "clock", "must_date_modify": "clock",
		"env": "environment", "expandenv": "environment", "getHostByName": "network",
		"randInt": "random", "randAlpha": "random", "randBytes": "random", "uuidv4": "random", "shuffle": "random",
		"genCA": "keys", "genPrivateKey": "keys", "genSelfSignedCert": "keys", "buildCustomCert": "keys",
		"derivePassword": "passwords", "bcrypt": "salts", "htpasswd": "salts", "encryptAES": "salts",
	}
	for name, reason := range reasons {
		got := compileError(t, "resources:\n- kind: ConfigMap\n  value: << "+name+" \"x\" >>")
		mustContain(t, got, `function "`+name+`" does not exist`, reason, "app.yaml:9: ", "resources[0]", "hint: ")
	}
}

// Every function of sprig is either there or has a reason not to be.
func TestEveryFunctionOfSprigIsAccountedFor(t *testing.T) {
	funcs := functions()
	for name := range sprig.TxtFuncMap() {
		if (funcs[name] == nil) == (forbidden(name) == "") {
			t.Errorf("%s: available %v, reason %q", name, funcs[name] != nil, forbidden(name))
		}
	}
}

func TestCompileReportsAllFaultsAtOnce(t *testing.T) {
	got := compileError(t, `
resources:
- kind: ConfigMap
  a: << inputs.x
- kind: ConfigMap
  metadata: {name: x}
- kind: ConfigMap
  a: << qoute inputs.x >>
  b: << indet 2 inputs.x >>
resourcesTemplate: |
  kind: ConfigMap
  metadata:
    name: << upprcase inputs.x >>
    <<: *town`)
	mustContain(t, got,
		"app.yaml:8: ResourceSet apps/app: resources[0]: expected :=",
		`app.yaml:13: ResourceSet apps/app: resources[2]: function "qoute" does not exist`, `did you mean "quote"?`,
		`app.yaml:14: ResourceSet apps/app: resources[2]: function "indet" does not exist`, `did you mean "indent"?`,
		"resourcesTemplate line 4: ", `write << "<<" >>`)
	if n := strings.Count(got, "error: "); n != 4 {
		t.Errorf("%d errors, want 4:\n%s", n, got)
	}
}

func TestCompileNamesTheStep(t *testing.T) {
	got := compileError(t, `
steps:
- name: fuel
  resources:
  - kind: ConfigMap
- name: ignite
  resourcesTemplate: |
    kind: ConfigMap

    data: << nothing >>`)
	mustContain(t, got, `app.yaml:15: ResourceSet apps/app: step "ignite": resourcesTemplate line 3: function "nothing"`)
}

func TestInternalFunctionsCannotBeCalled(t *testing.T) {
	for _, name := range []string{stepFunction, outFunction} {
		got := compileError(t, "resources:\n- kind: ConfigMap\n  a: << "+name+" >>")
		mustContain(t, got, "does not exist")
	}
}

func TestLongTextInPlaceholder(t *testing.T) {
	got := compileError(t, "resources:\n- kind: ConfigMap\n  a: << printf \"a long text of many words that is broken into lines by YAML before it becomes a template %s\" inputs.x >>")
	mustContain(t, got, "unterminated quoted string", "resourcesTemplate", "80 columns")
}
