// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The core is pure: it must not get at the clock, the disk, the network,
// randomness or a logger. Only direct imports count; sprig brings in some of these.
func TestImportsArePure(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	imports := strings.Fields(string(out))
	if !slices.Contains(imports, "text/template") {
		t.Fatalf("wrong package? imports: %v", imports)
	}
	for _, path := range imports {
		switch path {
		case "os", "os/exec", "net", "net/http", "time", "math/rand", "math/rand/v2", "crypto/rand", "log", "log/slog", "io/fs", "path/filepath":
			t.Errorf("imports %s", path)
		}
	}
}
