// SPDX-License-Identifier: Apache-2.0

// Command kube-apiserver is the Kubernetes API server, as its own release builds it.
// The module k8s.io/kubernetes cannot be built from outside without the versions of
// its staging modules, which the go.mod beside this names.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
