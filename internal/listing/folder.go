// SPDX-License-Identifier: Apache-2.0

package listing

import "regexp"

var folderPattern = regexp.MustCompile(`^(\./)?[a-z0-9][a-z0-9.-]*/[a-z0-9][a-z0-9.-]*/?$`)

// IsFolder reports whether an entry looks like the folder of a ResourceSet,
// "namespace/name", in the list of the target path.
func IsFolder(entry string) bool { return folderPattern.MatchString(entry) }
