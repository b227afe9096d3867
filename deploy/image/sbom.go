// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// describe lists what a Go program was made from, in CycloneDX, from what its build
// recorded in it. It returns the version of the program, too.
func describe(program []byte) (sbom []byte, version string, err error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, "", errors.New("has no build information of Go")
	}
	main := cdx.Component{
		BOMRef: purl(info.Main.Path, ""), Type: cdx.ComponentTypeApplication, Name: info.Main.Path, Version: info.Main.Version,
	}
	components := []cdx.Component{{
		BOMRef: purl("std", info.GoVersion), Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion,
		PackageURL: purl("std", strings.TrimPrefix(info.GoVersion, "go")),
	}}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		component := cdx.Component{
			BOMRef: purl(module.Path, module.Version), Type: cdx.ComponentTypeLibrary, Name: module.Path, Version: module.Version,
			PackageURL: purl(module.Path, module.Version),
		}
		// go.sum's h1 is SHA-256 over the digests of the module's files.
		if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:")); err == nil && len(sum) == 32 {
			component.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
		}
		components = append(components, component)
	}
	bom := cdx.NewBOM() // without a serial number and a time, which would differ each time
	bom.Metadata = &cdx.Metadata{Component: &main}
	bom.Components = &components
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	if err := encoder.Encode(bom); err != nil {
		return nil, "", err
	}
	return out.Bytes(), info.Main.Version, nil
}

// purl is the package URL of a Go module.
func purl(module, version string) string {
	if version == "" {
		return "pkg:golang/" + module
	}
	return "pkg:golang/" + module + "@" + version
}
