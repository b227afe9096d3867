// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"strings"
	"testing"

	"resourceset.example/renderer/pkg/source/provider"
)

// Where a docker config leaves the credential to a helper, nobody is asked as nobody.
func TestDockerConfigWithHelpers(t *testing.T) {
	for config, want := range map[string]string{
		`{"credsStore":"desktop"}`:                                                                 "helper",
		`{"auths":{},"credsStore":"ecr-login"}`:                                                    "helper",
		`{"credHelpers":{"ghcr.io":"gcloud"}}`:                                                     "helper",
		`{"auths":{"ghcr.io":{}},"credsStore":"desktop"}`:                                          "helper", // as Docker Desktop leaves it
		`{"auths":{"quay.io":{"username":"a","password":"b"}},"credHelpers":{"ghcr.io":"gcloud"}}`: "helper",
		`{"auths":{"ghcr.io":{}},"credHelpers":{"https://ghcr.io":"gcloud"}}`:                      "helper",
		`{"auths":{"ghcr.io":{"username":"a","password":"b"}},"credsStore":"desktop"}`:             "a",
		`{"auths":{"quay.io":{"username":"a","password":"b"}},"credsStore":"desktop"}`:             "",
		`{"auths":{"quay.io":{"username":"a","password":"b"}},"credHelpers":{"gcr.io":"gcloud"}}`:  "",
		`{"auths":{"ghcr.io":{}}}`:                                                                 "",
		`{"auths":{}}`:                                                                             "",
		`{"credHelpers":{}}`:                                                                       "not a docker config",
		`{}`:                                                                                       "not a docker config",
		`{"credsStore":1}`:                                                                         "not a docker config",
	} {
		got, err := fromDockerConfig([]byte(config), "ghcr.io", "acme/app")
		var known *provider.Error
		switch {
		case err == nil && got.Username == want:
		case errors.As(err, &known) && known.Reason == provider.Misconfigured && want != "" && strings.Contains(known.Msg, want):
			if want == "helper" && (!strings.Contains(known.Msg, "not run") || !strings.Contains(known.Hint, "kubectl create secret docker-registry")) {
				t.Errorf("%s: got %v with hint %q", config, err, known.Hint)
			}
		default:
			t.Errorf("%s: got %q, %v; want %q", config, got.Username, err, want)
		}
	}
}
