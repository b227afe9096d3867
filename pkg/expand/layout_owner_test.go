// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"strings"
	"testing"
)

const (
	teamA  = "_team-a__Namespace.yaml"
	deploy = "apps_web_apps_Deployment.yaml"
)

func owning(files ...string) *Lock {
	lock := &Lock{Shared: map[string]SharedFile{}}
	for _, file := range files {
		lock.Shared[file] = SharedFile{Blob: someBlob}
	}
	return lock
}

// Rule 14, FR-54: two ResourceSets make the same object. IDs have no version, so
// apps/v1 and apps/v1beta1 are the same.
func TestRule14FR54OneOwner(t *testing.T) {
	tests := map[string]struct {
		claims []Claim
		want   []string // "loser/set file owner/set"
	}{
		"none": {[]Claim{
			{ResourceSet: "a/one", Files: []string{kustomizationFile, LockFile, "shared/" + teamA}},
			{ResourceSet: "a/two", Files: []string{kustomizationFile, LockFile, "shared/" + deploy}},
		}, nil},
		"nobody has it: the first by name keeps it": {[]Claim{
			{ResourceSet: "b/two", Files: []string{"shared/" + teamA}},
			{ResourceSet: "b/one", Files: []string{"prs-1/" + teamA}},
		}, []string{"b/two/shared " + teamA + " b/one/prs-1"}},
		"the one that has it in Git keeps it": {[]Claim{
			{ResourceSet: "a/one", Files: []string{"shared/" + teamA}},
			{ResourceSet: "b/two", Files: []string{"shared/" + teamA}, Previous: owning(teamA)},
		}, []string{"a/one/shared " + teamA + " b/two/shared"}},
		"both have it": {[]Claim{
			{ResourceSet: "b/two", Files: []string{"shared/" + teamA}, Previous: owning(teamA)},
			{ResourceSet: "a/one", Files: []string{"shared/" + teamA}, Previous: owning(teamA)},
		}, []string{"b/two/shared " + teamA + " a/one/shared"}},
		"three want it, and another": {[]Claim{
			{ResourceSet: "c/c", Files: []string{"shared/" + teamA, "shared/" + deploy}},
			{ResourceSet: "b/b", Files: []string{"shared/" + teamA, "shared/" + deploy}},
			{ResourceSet: "a/a", Files: []string{"shared/" + teamA}, Previous: &Lock{Sets: []LockedSet{{Name: "x", Files: map[string]string{}}}}},
		}, []string{
			"b/b/shared " + teamA + " a/a/shared",
			"c/c/shared " + teamA + " a/a/shared",
			"c/c/shared " + deploy + " b/b/shared",
		}},
		"moved within one ResourceSet": {[]Claim{
			{ResourceSet: "a/one", Files: []string{"shared/" + teamA}, Previous: &Lock{Sets: []LockedSet{{Name: "x", Files: map[string]string{teamA: someBlob}}}}},
		}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range FindConflicts(tt.claims) {
				got = append(got, c.Loser+"/"+c.LoserSet+" "+c.File+" "+c.Owner+"/"+c.OwnerSet)
				if text := c.Error(); !strings.Contains(text, c.Loser) || !strings.Contains(text, c.Owner) || c.Suggestion() == "" {
					t.Errorf("both must be named: %s", text)
				}
			}
			equal(t, "conflicts", tt.want, got)
		})
	}
}

func TestRule14ConflictNamesTheObject(t *testing.T) {
	c := FindConflicts([]Claim{
		{ResourceSet: "a/one", Files: []string{"shared/" + deploy}, Previous: owning(deploy)},
		{ResourceSet: "b/two", Files: []string{"web-1/" + deploy}},
	})[0]
	want := "ResourceSet b/two: Deployment apps/web (web-1) belongs to ResourceSet a/one (shared), which has it in Git already"
	equal(t, "message", want, c.Error())
	for file, want := range map[string]string{
		teamA: "Namespace team-a",
		"_system__x_rbac.authorization.k8s.io_ClusterRole.yaml": "ClusterRole system:x",
		FileName(ObjectID{Kind: "ConfigMap", Name: "A"}):        FileName(ObjectID{Kind: "ConfigMap", Name: "A"}),
	} {
		equal(t, file, want, describeFile(file))
	}
}

// Rule 14: the set that makes the loser's object fails, its siblings go on.
func TestRule14LosersAreRefused(t *testing.T) {
	f := newFolder(t)
	file := "apps_both__ConfigMap.yaml"
	out := f.apply(LayoutParams{Sets: prs("1", "2"), Refused: map[string]error{file: &Conflict{File: file, Owner: "a/a", Loser: "apps/app"}},
		Rendering: rendering(configMap("both", "x", 0), configMap("other", "x", 1))})
	equal(t, "files", []string{"prs-2/apps_other__ConfigMap.yaml"}, f.names())
	if len(out.Failed) != 1 || out.Failed[0].Set != 0 {
		t.Errorf("failed: %v", out.Failed)
	}
}
