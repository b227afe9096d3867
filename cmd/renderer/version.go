// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker for releases: -ldflags "-X main.version=1.2.3".
var version = ""

// buildInfo says what this binary was built from.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // commit, with "-dirty" when the tree had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readBuildInfo() buildInfo {
	info := buildInfo{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if ok {
		dirty := ""
		for _, s := range build.Settings {
			switch {
			case s.Key == "vcs.revision":
				info.Revision = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = "-dirty"
			}
		}
		if info.Revision != "" {
			info.Revision += dirty
		}
	}
	if info.Version == "" {
		info.Version = "0.0.0-dev"
	}
	return info
}

func newVersionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := readBuildInfo()
			switch output {
			case "json":
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(info)
			case "":
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "renderer %s %s %s %s\n", info.Version, info.Revision, info.Go, info.Platform)
				return err
			default:
				return usageErrorf("unknown output format %q: use json", output)
			}
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "print as `FORMAT`: json")
	return cmd
}
