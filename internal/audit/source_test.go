// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"strings"
	"testing"
)

// To merge a side branch and drop all of it makes its definitions part of the history,
// and proves nothing all the same.
func TestVerifyWantsDefinitionsThatWereTheHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := w.rendered()
	w.define(map[string]string{appSet: strings.ReplaceAll(appFile, "fixed: text", "fixed: evil")})
	evil := w.rendered()
	definitions := w.repo.Git("rev-parse", evil+"^")
	clone := w.repo.Clone("main")
	clone.Git("fetch", "--quiet", "origin", evil)
	clone.Git("reset", "--quiet", "--hard", base)
	clone.Git("merge", "--quiet", "--strategy", "ours", "--no-ff", "-m", "Merge", definitions)
	clone.Git("checkout", "--quiet", evil, "--", target)
	clone.Git("commit", "--quiet", "-m", w.message(evil))
	clone.Git("push", "--quiet", "origin", "HEAD:refs/heads/forged")
	w.reset(clone.Git("rev-parse", "HEAD"))
	w.finding(w.verify(Verification{Commit: "HEAD"}), w.repo.Head("main"), NotReproducible, "never its head")
	// The other way round the definitions were the head when they were rendered.
	w.reset(w.repo.Git("commit-tree", evil+"^{tree}", "-p", base, "-p", evil, "-m", "Merge main into a branch"))
	w.status(w.verify(Verification{}), evil, Proved)
}
