// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"strings"
	"testing"
)

func TestInvalidNames(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, test := range []struct {
		version string
		id      ObjectID
		want    string // words of the message; empty when it is fine
	}{
		{"v1", ObjectID{"", "ConfigMap", "apps", "app-1"}, ""},
		{"apps/v1beta1", ObjectID{"apps", "Deployment", "apps", "a.b-c.d"}, ""},
		{"rbac.authorization.k8s.io/v1", ObjectID{"rbac.authorization.k8s.io", "ClusterRole", "", "System:node:x"}, ""},
		{"rbac.authorization.k8s.io/v1", ObjectID{"rbac.authorization.k8s.io", "ClusterRole", "", "../x"}, "metadata.name"},
		{"v1", ObjectID{"", "ConfigMap", "apps", "app-"}, "metadata.name"},
		{"v1", ObjectID{"", "ConfigMap", "apps", "App"}, "metadata.name"},
		{"v1", ObjectID{"", "ConfigMap", "apps", "../../x"}, "metadata.name"},
		{"v1", ObjectID{"", "ConfigMap", "apps", strings.Repeat("a", 254)}, "metadata.name"},
		{"v1", ObjectID{"", "ConfigMap", "../..", "x"}, "metadata.namespace"},
		{"v1", ObjectID{"", "ConfigMap", long, "x"}, "metadata.namespace"},
		{"../../v1", ObjectID{"../..", "ConfigMap", "apps", "x"}, "apiVersion"},
		{"v1", ObjectID{"", "Config/Map", "apps", "x"}, "kind"},
	} {
		msg, hint := invalidName(&Object{APIVersion: test.version, ID: test.id})
		if (msg == "") != (test.want == "") || !strings.Contains(msg, test.want) || (msg != "" && hint == "") {
			t.Errorf("%s %v: %q, %q; want %q", test.version, test.id, msg, hint, test.want)
		}
	}
}
