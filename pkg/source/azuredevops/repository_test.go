// SPDX-License-Identifier: Apache-2.0

package azuredevops

import (
	"errors"
	"strings"
	"testing"

	"resourceset.example/renderer/pkg/source/provider"
)

func TestParseURL(t *testing.T) {
	const services = "https://dev.azure.com/acme/shop/_apis/git/repositories/web/"
	for raw, want := range map[string]string{
		"https://dev.azure.com/acme/shop/_git/web":                      services,
		"https://acme@dev.azure.com/acme/shop/_git/web":                 services, // as Azure shows it for Git
		"https://dev.azure.com/acme/shop/_git/web/?version=GBmain":      services,
		"https://dev.azure.com/acme/_git/web":                           "https://dev.azure.com/acme/web/_apis/git/repositories/web/",
		"https://dev.azure.com/acme/My%20Shop/_git/w.x":                 "https://dev.azure.com/acme/My%20Shop/_apis/git/repositories/w.x/",
		"https://acme.visualstudio.com/shop/_git/web":                   "https://acme.visualstudio.com/shop/_apis/git/repositories/web/",
		"https://acme.visualstudio.com/_git/web":                        "https://acme.visualstudio.com/web/_apis/git/repositories/web/",
		"https://acme.visualstudio.com/DefaultCollection/shop/_git/web": "https://acme.visualstudio.com/DefaultCollection/shop/_apis/git/repositories/web/",
		"https://acme.visualstudio.com/DefaultCollection/_git/web":      "https://acme.visualstudio.com/DefaultCollection/web/_apis/git/repositories/web/",
		"https://tfs.corp.example/tfs/Main/shop/_git/web":               "https://tfs.corp.example/tfs/Main/shop/_apis/git/repositories/web/",
		"https://tfs.corp.example/tfs/Main/_git/web":                    "https://tfs.corp.example/tfs/Main/web/_apis/git/repositories/web/",
		"https://ado.corp.example:8443/Main/shop/_git/web":              "https://ado.corp.example:8443/Main/shop/_apis/git/repositories/web/",
		"http://ado.corp.example/Main/_git/web":                         "http://ado.corp.example/Main/web/_apis/git/repositories/web/",
		"https://corp.example/some/folder/Main/shop/_git/web":           "https://corp.example/some/folder/Main/shop/_apis/git/repositories/web/",
	} {
		got, err := parseURL(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		} else if got.api.String() != want {
			t.Errorf("%s: got %s, want %s", raw, got.api, want)
		}
	}
	for raw, hint := range map[string]string{
		"https://dev.azure.com/acme/shop":                        "https://dev.azure.com/ORGANISATION/PROJECT/_git/REPOSITORY",
		"https://dev.azure.com/_git/web":                         "https://dev.azure.com/ORGANISATION/PROJECT/_git/REPOSITORY",
		"https://dev.azure.com/acme/shop/_git/web/pullrequest/5": "https://dev.azure.com/acme/shop/_git/web",
		"https://dev.azure.com/a/b/c/_git/web":                   "https://dev.azure.com/ORGANISATION/PROJECT/_git/REPOSITORY",
		"https://dev.azure.com/acme/shop/_git/":                  "https://dev.azure.com/ORGANISATION/PROJECT/_git/REPOSITORY",
		"git@ssh.dev.azure.com:v3/acme/shop/web":                 "https://dev.azure.com/acme/shop/_git/web",

		"https://dev.azure.com/acme/My%20Shop/_apis/git/repositories/web/refs": "write https://dev.azure.com/acme/My%20Shop/_git/web,",
		"https://dev.azure.com/acme/shop/_apis/git/repositories":               "write https://dev.azure.com/acme/shop/_git/REPOSITORY,",
		"ssh://git@ssh.dev.azure.com/v3/acme/shop/web":                         "https://dev.azure.com/acme/shop/_git/web",
		"ssh://git@tfs.corp.example:22/tfs/Main/shop/_git/web":                 "https://",
		"https://acme:t0k3n@dev.azure.com/acme/shop/_git/web":                  "spec.secretRef",
	} {
		_, err := parseURL(raw)
		var known *provider.Error
		if !errors.As(err, &known) || known.Reason != provider.Misconfigured || !strings.Contains(known.Hint, hint) {
			t.Errorf("%s: got %v, want a hint with %q", raw, err, hint)
		}
		if err != nil && strings.Contains(err.Error(), "t0k3n") {
			t.Errorf("%v holds the credential", err)
		}
	}
}
