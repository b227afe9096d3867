// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"hash/adler32"
	"strconv"
)

// Checksum is what the public CRD makes an id of, where the thing itself has none
// but a name: Adler-32, in decimal. Two names can have the same one, so it is
// exported and nothing is told apart by it.
func Checksum(name string) string {
	return strconv.FormatUint(uint64(adler32.Checksum([]byte(name))), 10)
}
