// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	binary := flag.String("binary", "", "static `FILE` to run in the image")
	out := flag.String("out", "", "`DIR` for the OCI image layout; replaced if it is one")
	tag := flag.String("tag", "", "`NAME` of the image in the layout, such as registry.example.com/renderer:v1.0.0")
	flag.Parse()
	if *binary == "" || *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	digest, err := build(*binary, *out, *tag)
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}
