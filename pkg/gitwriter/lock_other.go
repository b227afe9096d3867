// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package gitwriter

import "os"

// lock only creates the file: systems without flock do not keep a second process out.
func lock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}
