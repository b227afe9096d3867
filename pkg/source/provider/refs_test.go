// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"strings"
	"testing"

	"resourceset.example/renderer/pkg/api"
)

// A commit that cannot be one is no plausible data, of whatever kind it is; what a
// filter leaves out does not matter, and the value is repeated nowhere.
func TestRule01_Commits(t *testing.T) {
	whole := strings.Repeat("0123456789", 4)
	for sha, good := range map[string]bool{
		whole:                                true,
		whole + strings.Repeat("abcdef", 4):  true,
		"":                                   false,
		"6063e25":                            false,
		whole[1:]:                            false,
		whole + "a":                          false,
		whole[1:] + "g":                      false,
		whole[1:] + "A":                      false,
		whole + "\n":                         false,
		"t0p-s3cret\n---\nkind: Secret":      false,
		"HEAD":                               false,
		strings.Repeat("\u0661", 40):         false,
		whole[:20] + "\x00" + whole[:19]:     false,
		strings.Repeat("0", 63) + "\u00e9":   false,
		"sha256:" + strings.Repeat("0", 64):  false,
		" " + whole:                          false,
		strings.Repeat("0", 40) + "/../main": false,
	} {
		for kind, export := range map[string]func(api.Filter) (Result, error){
			"branch": func(f api.Filter) (Result, error) {
				filter, _ := NewFilter(f)
				return ExportBranches(&api.ResourceSetInputProvider{}, filter, []Ref{{"main", whole}, {"odd", sha}}, nil)
			},
			"tag": func(f api.Filter) (Result, error) {
				filter, _ := NewFilter(f)
				return ExportTagRefs(&api.ResourceSetInputProvider{Spec: api.InputProviderSpec{Filter: f}}, filter, []Ref{{"main", whole}, {"odd", sha}}, nil)
			},
			"change request": func(f api.Filter) (Result, error) {
				filter, _ := NewFilter(f)
				return ExportChangeRequests(&api.ResourceSetInputProvider{}, filter, []ChangeRequest{{ID: "1", SHA: whole}, {ID: "2", SHA: sha, Branch: "odd"}}, nil)
			},
		} {
			result, err := export(api.Filter{})
			if good && (err != nil || len(result.Inputs) != 2) || !good && (ReasonOf(err) != Implausible || result.Inputs != nil) {
				t.Errorf("%s at %q: got %v, %v", kind, sha, result.Inputs, err)
			}
			if err != nil && (strings.Contains(err.Error(), "t0p") || err.(*Error).Hint == "") {
				t.Errorf("%s: %q repeats what was there, or has no hint", kind, err)
			}
			result, err = export(api.Filter{ExcludeBranch: "^odd$", ExcludeTag: "^odd$"})
			if err != nil || len(result.Inputs) != 1 {
				t.Errorf("%s at %q, left out: got %v, %v", kind, sha, result.Inputs, err)
			}
		}
	}
}
