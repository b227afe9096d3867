// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"strings"
	"testing"
	"time"

	"resourceset.example/renderer/internal/config"
	"resourceset.example/renderer/pkg/expand"
)

const redFile = folder + "/tenants-red/apps_app-red__ConfigMap.yaml"

func TestVerifyProvesRealCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rendered()
	w.tenants("red=2", "blue", "green")
	w.rendered()
	w.tenants("green", "red=2") // blue goes, the order changes
	w.rendered()
	w.define(map[string]string{appSet: strings.ReplaceAll(appFile, "fixed: text", "fixed: other")})
	w.rendered()
	w.define(map[string]string{"apps/more.yaml": strings.ReplaceAll(strings.ReplaceAll(appFile, "name: app\n", "name: more\n"), "\"app-", "\"more-") +
		"  # another\n"})
	w.pass()
	w.define(map[string]string{appSet: ""})
	w.rendered()
	report := w.verify(Verification{})
	if !report.OK() || report.Proved < 5 {
		t.Fatalf("not all proved:\n%s", show(report))
	}
	if last := report.Commits[0]; len(last.ResourceSets) != 1 || !last.Renderer {
		t.Errorf("last: %+v", last)
	}
}

func TestVerifyProvesOneCommitForTheWholePass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "target: {path: ./"+target+", commit: {per: pass}}")
	other := strings.NewReplacer("name: app\n", "name: more\n", `"app-`, `"more-`, "name: all", "name: every").Replace(appFile)
	w.define(map[string]string{"apps/more.yaml": other})
	w.rendered()
	w.tenants("red=2", "blue=2")
	w.rendered()
	w.define(map[string]string{"apps/more.yaml": ""})
	w.tenants("red=3")
	w.rendered()
	w.proved(3)
	if n := len(w.verify(Verification{}).Commits[2].ResourceSets); n != 2 {
		t.Errorf("the first commit is of %d ResourceSets, want 2", n)
	}
}

// Definitions of long ago, rendered again with a fitting message, prove nothing.
func TestVerifyFindsDefinitionsTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rendered()
	first := w.repo.Head("main")
	w.define(map[string]string{appSet: strings.ReplaceAll(appFile, "fixed: text", "fixed: other")})
	w.rendered()
	second := w.repo.Head("main")
	message := w.message(second)
	for _, key := range []string{"Source-Revision: ", "Inputs-Digest: "} {
		_, old, _ := strings.Cut(w.message(first), key)
		_, now, _ := strings.Cut(message, key)
		old, _, _ = strings.Cut(old, "\n")
		now, _, _ = strings.Cut(now, "\n")
		message = strings.ReplaceAll(message, now, old)
	}
	clone := w.repo.Clone("main")
	clone.Git("checkout", "--quiet", first, "--", target)
	clone.Git("commit", "--quiet", "--message", message)
	clone.Git("push", "--quiet", "origin", "HEAD:main")
	for _, opts := range []Verification{{}, {Commit: w.repo.Head("main")}, {Since: second}} {
		w.finding(w.verify(opts), w.repo.Head("main"), Altered, "older definitions", second[:10])
	}
}

// The tampering that a forger would try: each is found, with file and author.
func TestVerifyFindsTampering(t *testing.T) {
	t.Parallel()
	lock := folder + "/" + lockName
	cases := map[string]struct {
		files func(w *world) map[string]string
		words []string
	}{
		"a manifest":                {func(w *world) map[string]string { return edit(w, redFile, "v1", "v6") }, []string{redFile, "somebody"}},
		"a manifest and its record": {func(w *world) map[string]string { return relock(w, redFile, "v1", "v6") }, []string{redFile, "somebody"}},
		"an input in the record":    {func(w *world) map[string]string { return edit(w, lock, `"v1"`, `"v6"`) }, []string{lock, "Inputs-Digest"}},
		"the record, unreadable":    {func(w *world) map[string]string { return edit(w, lock, "version: 1\n", "version: one\n") }, []string{lock}},
		"a file beside":             {func(*world) map[string]string { return map[string]string{folder + "/extra.yaml": "a: b\n"} }, []string{folder + "/extra.yaml", "added", "somebody"}},
		"a file elsewhere":          {func(*world) map[string]string { return map[string]string{"clusters/evil.txt": "a\n"} }, []string{"clusters/evil.txt"}},
		"the list of files": {func(w *world) map[string]string {
			return edit(w, folder+"/kustomization.yaml", "tenants-blue", "tenants-bleu")
		}, []string{folder + "/kustomization.yaml"}},
		"the list of folders": {func(w *world) map[string]string {
			return edit(w, target+"/kustomization.yaml", "apps/app", "apps/app/shared")
		}, []string{target + "/kustomization.yaml"}},
		"a manifest deleted": {func(*world) map[string]string { return map[string]string{redFile: ""} }, []string{redFile, "missing"}},
	}
	w := newWorld(t)
	head := w.rendered()
	message := w.message(head)
	w.proved(1)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w.repo.Git("update-ref", "refs/heads/main", head)
			files := c.files(w)
			if _, ok := files["clusters/evil.txt"]; ok {
				files[folder+"/extra.yaml"] = "a: b\n"
			}
			hash := w.person(message, files) // with our trailers copied
			w.finding(w.verify(Verification{Commit: hash}), hash, Altered, c.words...)
			w.finding(w.verify(Verification{Since: "HEAD~1"}), hash, Altered, c.words...)
		})
	}
}

// edit replaces a text in a file of the branch.
func edit(w *world, file, old, new string) map[string]string {
	text := w.read(file)
	if !strings.Contains(text, old) {
		w.t.Fatalf("%s has no %q:\n%s", file, old, text)
	}
	return map[string]string{file: strings.ReplaceAll(text, old, new)}
}

// relock changes a manifest together with the record that names its blob.
func relock(w *world, file, old, new string) map[string]string {
	files := edit(w, file, old, new)
	lock := folder + "/" + lockName
	files[lock] = strings.ReplaceAll(w.read(lock), expand.BlobHash([]byte(w.read(file))), expand.BlobHash([]byte(files[file])))
	if files[lock] == w.read(lock) {
		w.t.Fatalf("%s does not list the blob of %s", lock, file)
	}
	return files
}

// One of our commits replaced by another with the same parent and message, in which
// manifest and record agree: only rendering again tells.
func TestVerifyFindsAmendedCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hash := w.rendered()
	w.person("scratch", relock(w, redFile, "v1", "v6"))
	amended := w.repo.Git("commit-tree", "main^{tree}", "-p", hash+"^", "-m", w.message(hash))
	w.repo.Git("update-ref", "refs/heads/main", amended)
	w.finding(w.verify(Verification{}), amended, Altered, redFile, "is not what the definitions and the recorded inputs give")
}

// A commit from before inputs.lock had a checksum is proved as it is.
func TestVerifyProvesOlderLocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hash := w.rendered()
	name := folder + "/" + lockName
	text := w.read(name)
	older := string(expand.WithoutChecksum([]byte(text)))
	if older == text || strings.Contains(older, "checksum") {
		t.Fatalf("got %s", older)
	}
	w.person("scratch", map[string]string{name: older})
	amended := w.repo.Git("commit-tree", "main^{tree}", "-p", hash+"^", "-m", w.message(hash))
	w.repo.Git("update-ref", "refs/heads/main", amended)
	if report := w.verify(Verification{}); !report.OK() {
		t.Errorf("%+v", report)
	}
}

func TestVerifyReportsEditsOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rendered()
	hash := w.person("Fix it quickly", map[string]string{redFile: strings.ReplaceAll(w.read(redFile), "v1", "v7")})
	report := w.verify(Verification{})
	w.finding(report, hash, Altered, redFile, "by hand", "somebody")
	if report.Proved != 1 || report.Commits[0].Renderer {
		t.Errorf("report:\n%s", show(report))
	}
	// The edit stays in the folder: what is rendered on top of it names the editor.
	w.tenants("red", "blue", "green")
	next := w.rendered()
	w.finding(w.verify(Verification{Commit: next}), next, Altered, redFile, "earlier commit", hash, "somebody")
}

// A commit taken out of the middle: the next one claims less than it changes.
func TestVerifyFindsRewrittenHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.rendered()
	w.tenants("red", "blue", "green")
	dropped := w.rendered()
	w.tenants("red", "blue", "green", "black")
	last := w.rendered()
	w.proved(3)
	w.stop()

	rewritten := w.repo.Git("commit-tree", last+"^{tree}", "-p", first, "-m", w.message(last))
	w.repo.Git("update-ref", "refs/heads/main", rewritten)
	report := w.verify(Verification{})
	w.finding(report, rewritten, Altered, "Input-Added", "green")
	r := w.open()
	_, err := r.Verify(context.Background(), Verification{Target: target, Source: r, SourcePath: "clusters", Exclude: target, Since: dropped})
	if err == nil || !strings.Contains(err.Error(), "not in the history") {
		t.Errorf("--since a commit that is gone: %v", err)
	}
}

// Definitions of a side branch prove nothing: anybody could write them.
func TestVerifyWantsDefinitionsOfTheSourceBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hash := w.rendered()
	side := w.repo.Commit("side", "Definitions of my own", map[string]string{"clusters/" + appSet: appFile})
	message := strings.ReplaceAll(w.message(hash), w.repo.Git("rev-parse", hash+"^"), side)
	forged := w.person(message, map[string]string{redFile: strings.ReplaceAll(w.read(redFile), "v1", "v7")})
	w.finding(w.verify(Verification{Commit: forged}), forged, Altered, redFile)
	report := w.verify(Verification{Commit: forged})
	found := false
	for _, f := range report.Commits[0].Findings {
		found = found || strings.Contains(f.Reason, "not in the history of the source branch")
	}
	if !found {
		t.Errorf("findings:\n%s", show(report))
	}
	gone := w.person(strings.ReplaceAll(message, side, strings.Repeat("0", 39)+"1"), map[string]string{folder + "/x.yaml": "a: b\n"})
	w.finding(w.verify(Verification{Commit: gone}), gone, Altered, folder+"/x.yaml")
}

func TestVerifySaysWhatCannotBeReproduced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(map[string]string{"tenants.yaml": w.provider("tenants", "  annotations: {renderer/sensitive: version}\n")})
	hash := w.rendered()
	w.finding(w.verify(Verification{}), hash, NotReproducible, "version", "digest")
	// What can be checked without rendering still is.
	forged := w.person(w.message(hash), map[string]string{redFile: "a: b\n"})
	w.finding(w.verify(Verification{Commit: forged}), forged, Altered, redFile, "not what inputs.lock lists")
}

func TestVerifyNewerLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hash := w.rendered()
	lock := folder + "/" + lockName
	newer := w.person(w.message(hash), map[string]string{lock: strings.Replace(w.read(lock), "version: 1\n", "version: 9\n", 1)})
	w.finding(w.verify(Verification{Commit: newer}), newer, NotReproducible, lock, "format 9")
}

// A set that fails keeps its files; the commit is proved as long as they are the
// parent's, and proved there.
func TestVerifyKeptSets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rendered()
	// red fails from now on, and blue changes.
	w.orchestrator.Set(map[string]any{"tenant": "red"}, map[string]any{"tenant": "blue", "version": "2.0"})
	kept := w.rendered()
	if lock := w.read(folder + "/" + lockName); !strings.Contains(lock, "kept: true") {
		t.Fatalf("nothing is kept:\n%s", lock)
	}
	w.proved(2)
	// The same, on files that somebody has edited: not proved.
	edited := w.person("Edit", map[string]string{redFile: strings.ReplaceAll(w.read(redFile), "v1", "v6")})
	w.orchestrator.Set(map[string]any{"tenant": "red"}, map[string]any{"tenant": "blue", "version": "3.0"})
	next := w.rendered()
	report := w.verify(Verification{Commit: next})
	w.finding(report, next, Altered, redFile, edited)
	w.status(w.verify(Verification{Commit: kept}), kept, Proved)
}

func TestVerifyPermutations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	permuted := strings.NewReplacer(
		"    - name: tenants\n", "    - name: tenants\n    - name: regions\n  inputStrategy: {name: Permute}\n  inputs: [{size: small}, {size: large}]\n",
		"app-<< inputs.tenant >>", "app-<< inputs.tenants.tenant >>-<< inputs.regions.region >>-<< inputs.app.size >>",
		"<< inputs.version >>", "<< inputs.id >>").Replace(appFile)
	other := newOrchestrator(t, map[string]any{"region": "north"}, map[string]any{"region": "south"})
	w.define(map[string]string{appSet: permuted, "regions.yaml": strings.ReplaceAll(w.provider("regions", ""), w.orchestrator.URL, other.URL)})
	w.rendered()
	other.Set(map[string]any{"region": "west"}, map[string]any{"region": "north"})
	w.rendered()
	w.proved(2)
	if files := w.repo.Files("main"); len(files) < 10 {
		t.Errorf("too few permutations: %v", files)
	}
}

func TestVerifyInlineInputs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inline := strings.ReplaceAll(appFile, "  inputsFrom:\n    - name: tenants\n", "  inputs:\n    - {tenant: a, version: \"1\"}\n    - {tenant: b, version: \"2\"}\n")
	none := "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: none, namespace: apps}\nspec:\n  resources:\n    - {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: apps}}\n"
	w.define(map[string]string{appSet: inline, "apps/none.yaml": none})
	hash := w.rendered()
	w.proved(2)
	// An inline set that is taken out of record and folder alike: it still is defined.
	_ = hash
}

// A commit of ours that puts right what somebody edited or deleted says so: the set is
// in its list although the record is what it was.
func TestVerifyProvesHandEditsUndone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rendered()
	undone := func(body string) {
		t.Helper()
		hash := w.rendered()
		w.status(w.verify(Verification{Commit: hash}), hash, Proved)
		if message := w.message(hash); !strings.Contains(message, "Input-Updated: tenants-red") || !strings.Contains(message, body) {
			t.Errorf("message without %q:\n%s", body, message)
		}
	}
	for _, edit := range []string{strings.ReplaceAll(w.read(redFile), "v1", "v6"), ""} {
		w.cfg.Drift = config.DriftHold
		w.person("By hand", map[string]string{redFile: edit})
		w.pass()
		if _, err := w.loop.Release(context.Background(), "apps/app", []string{"tenants-red"}, "olga"); err != nil {
			t.Fatal(err)
		}
		undone("released, hand edit undone")

		w.stop()
		w.cfg.Drift = config.DriftRestore
		w.person("By hand again", map[string]string{redFile: edit})
		undone("red  hand edit undone")
		w.stop()
	}

	// The list is still to be that of the commit: a set that was in order is not undone.
	message := strings.ReplaceAll(w.message("main"), "Input-Updated: tenants-red", "Input-Updated: tenants-blue\nInput-Updated: tenants-red")
	w.person("By hand", map[string]string{redFile: "a: b\n"})
	w.reset(w.repo.Git("commit-tree", "main~1^{tree}", "-p", "main", "-m", message))
	w.finding(w.verify(Verification{Commit: "HEAD"}), w.repo.Head("main"), Altered, "tenants-blue", "but it is tenants-red")
}

// Others may list their own folders; a merge is judged where its lines were made.
func TestVerifyMergesAndForeignEntries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rendered()
	w.person("Add ours", map[string]string{
		target + "/kustomization.yaml": w.read(target+"/kustomization.yaml") + "- \"base/of/ours\"\n",
	})
	more := strings.NewReplacer("name: app\n", "name: more\n", `"app-`, `"more-`, "name: all", "name: every").Replace(appFile)
	w.define(map[string]string{"apps/more.yaml": more})
	added := w.rendered()
	if text := w.read(target + "/kustomization.yaml"); !strings.Contains(text, "base/of/ours") || !strings.Contains(text, "apps/more") {
		t.Fatalf("list:\n%s", text)
	}
	w.status(w.verify(Verification{Commit: added}), added, Proved)

	// A merge that takes the folder as one side has it is not looked at; one that
	// makes something of its own is.
	clone := w.repo.Clone("main")
	clone.Git("switch", "-q", "-c", "side", "HEAD~1")
	clone.Write(map[string]string{"README.md": "hello\n"})
	clone.Git("add", "README.md")
	clone.Git("commit", "-q", "-m", "A side branch")
	clone.Git("switch", "-q", "main")
	clone.Git("merge", "-q", "--no-edit", "side")
	clone.Git("push", "-q", "origin", "HEAD:main")
	n := len(w.verify(Verification{}).Commits)
	clone.Git("switch", "-q", "-C", "side", "HEAD~2")
	clone.Write(map[string]string{target + "/note.txt": "hello\n"})
	clone.Git("add", target)
	clone.Git("commit", "-q", "-m", "Another side branch")
	clone.Git("switch", "-q", "main")
	clone.Git("merge", "-q", "--no-commit", "side")
	clone.Write(map[string]string{redFile: "a: b\n"})
	clone.Git("add", redFile)
	clone.Git("commit", "-q", "-m", "An evil merge")
	clone.Git("push", "-q", "origin", "HEAD:main")
	report := w.verify(Verification{})
	if len(report.Commits) != n+2 {
		t.Errorf("want %d commits:\n%s", n+2, show(report))
	}
	w.finding(report, w.repo.Head("main"), Altered, "apps/app", "neither of its parents")
}

func TestVerifyShallowClone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rendered()
	w.tenants("red=2", "blue")
	w.rendered()
	dir := t.TempDir()
	w.repo.Git("clone", "-q", "--bare", "--depth", "1", w.repo.URL(), dir)
	r, err := Open(dir, "main")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	report, err := r.Verify(context.Background(), Verification{Target: target, Source: r, SourcePath: "clusters", Exclude: target})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Commits) != 1 || report.Commits[0].Status != NotReproducible || !strings.Contains(report.Commits[0].Findings[0].Reason, "--unshallow") {
		t.Errorf("report:\n%s", show(report))
	}
	// What the oldest commit did is not known: least of all did it add everything.
	events, err := r.History(context.Background(), target, Filter{})
	if err != nil || len(events) > 0 {
		t.Errorf("history: %+v, %v", events, err)
	}
	begins, err := r.Begins(time.Time{})
	if err != nil || begins == nil || begins.Commits[0] != w.repo.Head("main") {
		t.Errorf("begins at %v, %v", begins, err)
	}
	if whole, err := w.open().Begins(time.Time{}); whole != nil || err != nil {
		t.Errorf("a whole clone begins at %v, %v", whole, err)
	}
}
