// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"

	"resourceset.example/renderer/pkg/api"
)

func ExampleParse() {
	defs := api.Parse("apps.yaml", []byte(`apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: podinfo, namespace: apps}
spec:
  inputs:
    - tenant: one
  resourceTemplate: |
    apiVersion: v1
---
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSetInputProvider
metadata: {name: tenants, namespace: apps}
spec:
  type: Static
  defaultValues: {region: eu}
`))
	for _, fault := range defs.Faults {
		fmt.Println(fault)
		fmt.Println("hint:", fault.Hint)
	}
	for _, provider := range defs.Providers {
		fmt.Println(provider.At("spec.type"), provider)
	}
	// Output:
	// apps.yaml:7: ResourceSet apps/podinfo: unknown field spec.resourceTemplate
	// hint: did you mean resourcesTemplate?
	// apps.yaml:14 ResourceSetInputProvider apps/tenants
}
