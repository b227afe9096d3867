// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"resourceset.example/renderer/internal/forgetest"
	"resourceset.example/renderer/internal/gittest"
)

func TestFirstPassAndSecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	report := w.ok()
	w.has("red", "blue")
	if len(report.Commits) != 1 || report.Commits[0].Added != 2 {
		t.Errorf("commits: %+v", report.Commits)
	}
	w.unchanged(w.ok) // the same process
	w.restart()
	w.unchanged(w.ok) // and another one
}

// FR-32: passes over the same inputs move nothing, however many.
func TestManyPassesMakeNoCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	w.unchanged(func() *Report {
		for range 25 {
			w.ok()
		}
		return nil
	})
}

func TestRule01_FailedFetchChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	faults := map[string]forgetest.Fault{
		"a page with status 200": forgetest.Page(),
		"a sign-in page":         forgetest.SignIn(),
		"null":                   forgetest.JSON(`null`),
		"an empty object":        forgetest.JSON(`{}`),
		"inputs null":            forgetest.JSON(`{"inputs": null}`),
		"an empty body":          forgetest.JSON(``),
		"cut":                    forgetest.Truncate(),
		"404":                    forgetest.Status(http.StatusNotFound, "no such thing"),
		"500":                    forgetest.Status(http.StatusInternalServerError, "oops"),
		"401":                    forgetest.Status(http.StatusUnauthorized, "who?"),
		"twice the same tenant":  forgetest.JSON(`{"inputs": [{"id": "a", "tenant": "a", "version": "1"}, {"id": "a", "tenant": "b", "version": "1"}]}`),
	}
	for name, fault := range faults {
		for _, cold := range []bool{false, true} {
			if cold {
				w.restart()
			}
			w.orchestrator.Break(fault)
			report := w.unchanged(w.once)
			w.problem(report, "ResourceSetInputProvider apps/tenants")
			if t.Failed() {
				t.Fatalf("after %s, cold %t", name, cold)
			}
			w.orchestrator.Heal()
		}
	}
	w.has("red", "blue")
	w.tenants("red") // an honest answer counts
	w.ok()
	w.has("red")
}

func TestRule02_ColdStartCountsWithTheRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	w.restart()
	w.orchestrator.Break(forgetest.Status(http.StatusBadGateway, "down"))
	// The provider is down and the process new, but the template changed: the recorded
	// inputs are rendered with it.
	w.define(map[string]string{"app.yaml": strings.Replace(appSet, "      data:\n", "      data:\n        added: \"yes\"\n", 1)})
	report := w.once()
	w.problem(report, "apps/tenants", "502")
	w.has("red", "blue")
	if text := w.repo.Read("main", "clusters/generated/apps/app/tenants-red/apps_app-red__ConfigMap.yaml"); !strings.Contains(text, "added:") {
		t.Errorf("the changed template was not rendered:\n%s", text)
	}
}

func TestRule02_WithoutARecordNothingIsTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	w.restart()
	w.orchestrator.Break(forgetest.Status(http.StatusBadGateway, "down"))
	w.define(map[string]string{
		"other.yaml": w.provider("others"),
		"app.yaml":   strings.Replace(appSet, "- name: tenants", "- name: tenants\n    - name: others", 1),
	})
	report := w.unchanged(w.once)
	w.problem(report, "ResourceSet apps/app", "apps/others", "nothing is recorded")
	w.has("red", "blue")
}

// A value that somebody changed in inputs.lock is no record: it is not rendered, not
// even where it is all that there is; it is reported until the file is put right.
func TestRule02_EditedRecordIsNotUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	const lock = "clusters/generated/apps/app/inputs.lock"
	good := w.repo.Read("main", lock)
	edited := strings.Replace(good, `"red"`, `"pink"`, 1)
	if edited == good {
		t.Fatalf("no value to edit in:\n%s", good)
	}
	w.repo.Commit("main", "Paint it", map[string]string{lock: edited})
	w.restart()
	w.orchestrator.Break(forgetest.Status(http.StatusBadGateway, "down"))
	w.define(map[string]string{"app.yaml": strings.Replace(appSet, "      data:\n", "      data:\n        added: \"yes\"\n", 1)})
	report := w.unchanged(w.once)
	w.problem(report, "ResourceSet apps/app", "inputs.lock", "edited by hand")
	w.orchestrator.Heal()
	report = w.unchanged(w.once)
	w.problem(report, "ResourceSet apps/app", "inputs.lock", "edited by hand")

	w.repo.Commit("main", "Put it back", map[string]string{lock: good})
	w.ok()
	if text := w.repo.Read("main", "clusters/generated/apps/app/tenants-red/apps_app-red__ConfigMap.yaml"); !strings.Contains(text, "added:") {
		t.Errorf("the ResourceSet did not go on:\n%s", text)
	}
}

// FR-62: outside its window a provider holds what it exported inside.
func TestRule02_OutsideTheScheduleWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	w.restart()
	w.orchestrator.Forget()
	w.define(map[string]string{
		"tenants.yaml": w.provider("tenants") + "  schedule:\n    - {cron: \"0 3 * * *\", window: 1h}\n",
		"inline.yaml":  inlineSet("other"),
	})
	w.tenants()
	report := w.ok()
	w.has("red", "blue")
	if n := len(w.orchestrator.Requests()); n != 0 {
		t.Errorf("the provider was called %d times outside its window", n)
	}
	if len(report.Commits) != 1 || report.Commits[0].ResourceSet != "apps/other" {
		t.Errorf("the other ResourceSet did not go on: %+v", report.Commits)
	}
}

func inlineSet(name string) string {
	return fmt.Sprintf(`apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: %[1]s, namespace: apps}
spec:
  inputs: [{part: one}, {part: two}, {part: three}]
  resources:
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: "%[1]s-<< inputs.part >>", namespace: apps}
`, name)
}

// FR-16: a file that does not parse is not a ResourceSet that is gone.
func TestRule03_UnreadableDefinitionRemovesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(map[string]string{"one.yaml": inlineSet("one"), "two.yaml": inlineSet("two")})
	w.ok()
	before := w.tree()

	w.define(map[string]string{"one.yaml": inlineSet("one") + "\n  : [broken\n"})
	report := w.once()
	w.problem(report, "clusters/one.yaml:")
	if w.tree() != before {
		t.Fatal("the generated folder changed while a definition could not be read")
	}
	// One file is gone and another one broken: neither is removed.
	w.define(map[string]string{"two.yaml": ""})
	w.once()
	if w.tree() != before {
		t.Fatal("a ResourceSet was removed while a definition could not be read")
	}
	// Others go on meanwhile.
	w.tenants("red", "blue", "green")
	w.once()
	w.has("red", "blue", "green")
	// Repaired: now the one whose file is gone goes.
	w.define(map[string]string{"one.yaml": inlineSet("one")})
	w.ok()
	if files := strings.Join(w.generated(), "\n"); strings.Contains(files, "apps/two/") || !strings.Contains(files, "apps/one/") {
		t.Errorf("after the repair:\n%s", files)
	}
	if root := w.repo.Read("main", "clusters/generated/kustomization.yaml"); strings.Contains(root, "apps/two") {
		t.Errorf("the list still names it:\n%s", root)
	}
}

// A provider that a selector does not find, because its file is broken, is not gone.
func TestRule03_SelectorWhileADefinitionIsBroken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	selecting := strings.Replace(appSet, "- name: tenants", "- selector: {matchLabels: {team: red}}", 1)
	static := "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSetInputProvider\nmetadata: {name: fixed, namespace: apps, labels: {team: red}}\nspec: {type: Static, defaultValues: {tenant: fixed, version: \"7\"}}\n"
	w.define(map[string]string{"app.yaml": selecting, "fixed.yaml": static})
	w.ok()
	before := w.generated()
	w.define(map[string]string{"fixed.yaml": strings.Replace(static, "type: Static", "type: [Static", 1)})
	report := w.once()
	w.problem(report, "clusters/fixed.yaml:")
	if got := w.generated(); strings.Join(got, "\n") != strings.Join(before, "\n") {
		t.Fatalf("files changed from\n%s\nto\n%s", strings.Join(before, "\n"), strings.Join(got, "\n"))
	}
}

// FR-17: a path that is gone, or holds nothing, is not an empty fleet.
func TestRule03_PathThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	clone := w.repo.Clone("main")
	clone.Git("mv", "clusters/app.yaml", "app.yaml")
	clone.Git("mv", "clusters/tenants.yaml", "tenants.yaml")
	clone.CommitAndPush("Move the definitions away")
	for _, cold := range []bool{false, true} {
		if cold {
			w.restart()
		}
		report := w.unchanged(w.once)
		w.problem(report, "clusters", "no ResourceSet")
	}
	// Files that only move below the path change nothing.
	clone.Git("mv", "app.yaml", "clusters/app.yaml")
	if err := os.MkdirAll(filepath.Join(clone.Dir, "clusters/sub/folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	clone.Git("mv", "tenants.yaml", "clusters/sub/folder/tenants.yaml")
	clone.CommitAndPush("Move them back")
	w.unchanged(w.ok)
}

// The source repository is away: what is known stands.
func TestRule03_SourceAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source := w.repo
	w.ok()
	away := source.Dir + ".away"
	if err := os.Rename(source.Dir, away); err != nil {
		t.Fatal(err)
	}
	report := w.once()
	w.problem(report, "repository")
	if err := os.Rename(away, source.Dir); err != nil {
		t.Fatal(err)
	}
	w.unchanged(w.ok)
	w.has("red", "blue")
}

// FR-26: the second of three input sets fails; the others advance.
func TestRule04_OneSetFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenants("a", "b", "c")
	w.ok()
	w.orchestrator.Set(
		map[string]any{"tenant": "a", "version": "2"},
		map[string]any{"tenant": "b"},
		map[string]any{"tenant": "c", "version": "2"})
	report := w.once()
	w.problem(report, "ResourceSet apps/app", "input set tenants-b", "version", "resources[0]")
	w.has("a", "b", "c")
	for tenant, want := range map[string]string{"a": `"2"`, "b": `"1.0"`, "c": `"2"`} {
		text := w.repo.Read("main", "clusters/generated/apps/app/tenants-"+tenant+"/apps_app-"+tenant+"__ConfigMap.yaml")
		if !strings.Contains(text, "version: "+want) {
			t.Errorf("%s should have version %s:\n%s", tenant, want, text)
		}
	}
	w.unchanged(w.once)
	w.restart()
	w.unchanged(w.once)
}

func TestRule04_OneResourceSetFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(map[string]string{"bad.yaml": strings.Replace(inlineSet("bad"), "inputs.part >>", "inputs.part | nosuch >>", 1), "good.yaml": inlineSet("good")})
	report := w.once()
	w.problem(report, "ResourceSet apps/bad", "nosuch")
	if files := strings.Join(w.generated(), "\n"); !strings.Contains(files, "apps/good/") || !strings.Contains(files, "apps/app/") || strings.Contains(files, "apps/bad/") {
		t.Errorf("generated:\n%s", files)
	}
}

// FR-31: the server accepts the data and refuses the branch.
func TestRule06_RefusedPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Hook("pre-receive", `echo "push declined due to repository rule violations" >&2; exit 1`)
	report := w.unchanged(w.once)
	w.problem(report, "target repository", "push declined due to repository rule violations")
	w.unchanged(w.once)
	w.repo.Hook("pre-receive", "exit 0")
	w.ok()
	w.has("red", "blue")
}

// A target branch that was there and is gone is a fault, and not an empty one: begun
// anew it would hold only what can be rendered now.
func TestRule01_TargetBranchGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok()
	webhook := request{trigger: TriggerWebhook, targets: []Target{{Kind: "ResourceSetInputProvider", Namespace: "apps", Name: "tenants"}}}
	was := w.repo.Head("main")
	gone := func(req request, when string) {
		t.Helper()
		report := w.pass(req)
		w.problem(report, "target repository", `"main"`, "was there before", "push the branch again")
		if branches := w.repo.Git("for-each-ref"); branches != "" {
			t.Fatalf("%s, a branch was made: %s", when, branches)
		}
	}

	w.tenants("red")
	w.repo.Git("update-ref", "-d", "refs/heads/main")
	gone(webhook, "by a webhook")
	gone(request{trigger: TriggerSchedule}, "by schedule")
	w.repo.Git("update-ref", "refs/heads/main", was)
	w.ok()
	w.has("red")

	w.tenants("red", "green") // it goes while the pass is being pushed
	was = w.repo.Head("main")
	w.repo.Hook("pre-receive", "unset GIT_QUARANTINE_PATH; git update-ref -d refs/heads/main")
	gone(webhook, "during a push")
	w.repo.Hook("pre-receive", "exit 0")
	w.repo.Git("update-ref", "refs/heads/main", was)
	w.ok()
	w.has("red", "green")
}

// The same for a target of its own, also after a restart.
func TestRule01_TargetBranchGoneElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	w := newWorld(t)
	target := gittest.NewRepo(t)
	w.cfg.Target.URL = target.URL()
	w.ok() // it begins the branch
	w.ok() // and has fetched it
	target.Git("update-ref", "-d", "refs/heads/main")
	for range 2 {
		w.problem(w.once(), "target repository", "was there before")
		w.restart()
	}
	if branches := target.Git("for-each-ref"); branches != "" {
		t.Fatalf("a branch was made: %s", branches)
	}
	if err := os.RemoveAll(w.cfg.State.Directory); err != nil {
		t.Fatal(err)
	}
	w.ok() // as the hint says
}

// A ResourceSet whose inputs.lock somebody deleted is rendered anew, and listed once.
func TestRule07_LostLockListsNothingTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	w := newWorld(t)
	w.ok()
	clone := w.repo.Clone("main")
	clone.Git("rm", "--quiet", "clusters/generated/apps/app/inputs.lock")
	clone.Git("commit", "--quiet", "--message", "Start again")
	clone.Git("push", "--quiet", "origin", "HEAD:main")
	w.ok()
	if list := w.repo.Read("main", "clusters/generated/kustomization.yaml"); strings.Count(list, "apps/app") != 1 {
		t.Errorf("kustomize refuses this list:\n%s", list)
	}
	w.unchanged(w.ok)
}

// FR-33: what others put into the target path is theirs.
func TestRule07_ForeignFilesStay(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	w := newWorld(t)
	w.ok()
	foreign := map[string]string{
		"README.md":                                         "hello\n",
		".github/ci.yml":                                    "on: push\n",
		"clusters/generated/handmade.yaml":                  "kind: ConfigMap\n",
		"clusters/generated/apps/app/notes.txt":             "mine\n",
		"clusters/generated/apps/app/tenants-red/notes.txt": "mine too\n",
	}
	w.repo.Commit("main", "Add files by hand", foreign)
	w.tenants("blue")
	w.ok()
	for path, text := range foreign {
		if got := w.repo.Read("main", path); got != text {
			t.Errorf("%s is %q", path, got)
		}
	}
	w.define(map[string]string{"app.yaml": "", "one.yaml": inlineSet("one")})
	w.ok()
	for path, text := range foreign {
		if got := w.repo.Read("main", path); got != text {
			t.Errorf("%s is %q", path, got)
		}
	}
}

// FR-85: values of our own credentials never get into Git, raw or in base64.
func TestRule08_OwnCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"x s3cret-token-value y", "czNjcmV0LXRva2VuLXZhbHVl"} {
		w := newWorld(t)
		w.ok()
		w.orchestrator.Set(
			map[string]any{"tenant": "red", "version": value},
			map[string]any{"tenant": "blue", "version": "2"})
		report := w.once()
		p := w.problem(report, "ResourceSet apps/app", "apps/orchestrator")
		if strings.Contains(p.Error(), "s3cret") {
			t.Errorf("the message tells it: %v", p)
		}
		if out := w.repo.Git("log", "--all", "-p"); strings.Contains(out, value) {
			t.Error("the value got into Git")
		}
		if text := w.repo.Read("main", "clusters/generated/apps/app/tenants-blue/apps_app-blue__ConfigMap.yaml"); !strings.Contains(text, `"2"`) {
			t.Errorf("the other set did not advance:\n%s", text)
		}
		if strings.Contains(w.log.String(), "s3cret-token-value") {
			t.Error("the log holds the token")
		}
	}
}

func TestRule08_SecretsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secret := strings.Replace(inlineSet("sec"), "ConfigMap", "Secret", 1)
	w.define(map[string]string{"sec.yaml": secret + "      stringData: {password: \"<< inputs.part >>\"}\n"})
	report := w.once()
	w.problem(report, "ResourceSet apps/sec", "Secret")
	if files := strings.Join(w.generated(), "\n"); strings.Contains(files, "Secret") {
		t.Errorf("a Secret got into Git:\n%s", files)
	}
	w.cfg.Secrets.AllowPlainOutput = true
	w.ok()
	if files := strings.Join(w.generated(), "\n"); !strings.Contains(files, "Secret") {
		t.Errorf("allowed Secrets are not there:\n%s", files)
	}
}

// Sensitive fields are rendered, and never recorded.
func TestRule08_SensitiveFieldsAreNotRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: `make integration` runs it")
	}
	t.Parallel()
	w := newWorld(t)
	w.define(map[string]string{"tenants.yaml": strings.Replace(w.provider("tenants"), "  labels:", "  annotations: {renderer/sensitive: version}\n  labels:", 1)})
	w.tenants("red=very-private-version", "blue")
	w.ok()
	if lock := w.repo.Read("main", "clusters/generated/apps/app/inputs.lock"); strings.Contains(lock, "very-private") {
		t.Errorf("inputs.lock tells it:\n%s", lock)
	}
	if out := w.repo.Git("log", "-1", "--format=%B"); strings.Contains(out, "very-private") {
		t.Errorf("the message tells it:\n%s", out)
	}
	w.unchanged(w.ok)
	w.restart()
	w.orchestrator.Break(forgetest.Status(http.StatusBadGateway, "down"))
	w.unchanged(w.once)
}

// FR-54: two ResourceSets want one object; the one that has it in Git keeps it.
func TestRule14_OneOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shared := func(name string) string {
		return fmt.Sprintf(`apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: %s, namespace: apps}
spec:
  resources:
    - apiVersion: v1
      kind: Namespace
      metadata: {name: team-a}
`, name)
	}
	w.define(map[string]string{"z.yaml": shared("zebra")})
	w.ok()
	w.define(map[string]string{"a.yaml": shared("ant")})
	for range 2 { // it does not go away by being looked at twice
		report := w.once()
		w.problem(report, "apps/ant", "apps/zebra", "Namespace")
		if files := strings.Join(w.generated(), "\n"); !strings.Contains(files, "apps/zebra/shared/_team-a__Namespace.yaml") || strings.Contains(files, "apps/ant/shared/") {
			t.Fatalf("generated:\n%s", files)
		}
	}
	w.restart()
	w.problem(w.once(), "apps/ant", "apps/zebra")
	// The owner goes: the other one takes over.
	w.define(map[string]string{"z.yaml": ""})
	w.ok()
	if files := strings.Join(w.generated(), "\n"); !strings.Contains(files, "apps/ant/shared/_team-a__Namespace.yaml") {
		t.Errorf("generated:\n%s", files)
	}
}
