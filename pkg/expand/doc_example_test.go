// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"os"
	"strings"
	"testing"
)

// The example in the documentation is a lock that is read, and written just so.
func TestDocumentedLock(t *testing.T) {
	text, err := os.ReadFile("../../docs/inputs-lock.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "```yaml\n# What this folder")
	example, _, ok2 := strings.Cut("# What this folder"+rest, "```")
	if !ok || !ok2 {
		t.Fatal("there is no example")
	}
	lock, err := ParseLock([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(lock.Encode()); got != example {
		t.Errorf("got %s", got)
	}
}
