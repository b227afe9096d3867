// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"strings"
	"testing"
)

const (
	appList  = folder + "/kustomization.yaml"
	topList  = target + "/kustomization.yaml"
	blueFile = folder + "/tenants-blue/apps_app-blue__ConfigMap.yaml"
)

// What people do to a list is altered; what we make of the list afterwards follows from
// it and is proved, our own removal of entries that lead nowhere included.
func TestVerifyProvesListsThatOthersChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	more := strings.NewReplacer("name: app\n", "name: more\n", `"app-`, `"more-`, "name: all", "name: every").Replace(appFile)
	w.define(map[string]string{"apps/more.yaml": more})
	w.rendered()
	provedSince := func(since string) {
		t.Helper()
		report := w.verify(Verification{Since: since})
		if !report.OK() || report.Proved == 0 {
			t.Fatalf("want all proved since %s:\n%s", since, show(report))
		}
	}
	edit := w.person("Apply more of ours, and not blue", map[string]string{
		appList: strings.Replace(w.read(appList), "- \"tenants-blue/apps_app-blue__ConfigMap.yaml\"\n", "- ../../../ours\n", 1) + "# why\nimages: []\n",
	})
	w.tenants("red", "blue", "green")
	w.rendered()
	if text := w.read(appList); !strings.Contains(text, "# why\nimages: []\n") || !strings.Contains(text, "green") || strings.Contains(text, "blue") {
		t.Fatal(text)
	}
	provedSince(edit)
	w.finding(w.verify(Verification{Commit: edit}), edit, Altered, appList, "somebody")

	gone := map[string]string{}
	for _, file := range w.repo.Files("main") {
		if strings.HasPrefix(file, target+"/apps/more/") {
			gone[file] = ""
		}
	}
	edit = w.person("Take more away", gone)
	w.rendered() // its entry
	if c := w.report.Commits; len(c) != 1 || c[0].ResourceSet != "" || !strings.HasPrefix(w.message(c[0].Hash), c[0].Message) || c[0].Message == "" {
		t.Errorf("the report does not say what the commit did: %+v", c)
	}
	provedSince(edit)
	if strings.Contains(w.read(topList), "apps/more") {
		t.Fatal(w.read(topList))
	}
	w.tenants("red=2", "blue=2") // it comes back
	w.rendered()
	provedSince(edit)

	edit = w.person("Take red away", map[string]string{redFile: ""})
	next := w.rendered() // its entry: blamed for the file that is missing, and for nothing else
	if events, _ := w.history(Filter{ResourceSet: "apps/app"}); events[0].Commit != next || events[0].Kind != Listed || len(events[0].Files) != 1 {
		t.Errorf("want the list brought up to what there is: %+v", events[0])
	}
	report := w.verify(Verification{Commit: next})
	w.finding(report, next, Altered, redFile, "missing", edit)
	if len(report.Commits[0].Findings) != 1 {
		t.Error(show(report))
	}

	// With our trailers, but not what follows.
	forged := w.person(w.message(next), map[string]string{topList: w.read(topList) + "- ../evil\n"})
	w.finding(w.verify(Verification{Commit: forged}), forged, Altered, topList)
}
