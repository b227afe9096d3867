// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"regexp"
	"strings"
	"testing"

	"resourceset.example/renderer/pkg/api"
)

func resourceSet(namespace, name string) *api.ResourceSet {
	return &api.ResourceSet{Meta: api.Meta{Namespace: namespace, Name: name}}
}

// folderOf is the folder of one input of a provider.
func folderOf(rs *api.ResourceSet, provider, providerType string, in api.Input, nameFields ...string) string {
	export := Export{Kind: api.KindInputProvider, Namespace: rs.Namespace, Name: provider, Type: providerType}
	if providerType == "" {
		export.Kind = api.KindResourceSet
	}
	return labelOf(export, in, nameFields, nil).folder(rs)
}

func TestFolderNames(t *testing.T) {
	podinfo, app1 := resourceSet("podinfo-preview", "podinfo"), resourceSet("apps", "app1")
	tests := []struct {
		name, provider, providerType string
		rs                           *api.ResourceSet
		in                           api.Input
		nameFields                   []string
		want                         string // "#" stands for the digits of a digest
	}{
		{"a pull request by its number", "podinfo-pull-requests", api.TypeGitHubPullRequest, podinfo,
			api.Input{"id": "12", "branch": "feat/ui", "sha": "bf5d6e0"}, nil, "podinfo-pull-requests-12"},
		{"the orchestrator's sets by the names of their objects", "app1-feature-flags", api.TypeExternalService, app1,
			api.Input{"tenant": "tenant1", "version": "2.0.0-rc.1"}, []string{"tenant"}, "app1-feature-flags-tenant1"},
		{"an id of the service", "flags", api.TypeExternalService, app1,
			api.Input{"id": int64(7), "tenant": "t"}, []string{"tenant"}, "flags-7"},
		{"a label with a dash is ambiguous", "flags", api.TypeExternalService, app1,
			api.Input{"tenant": "team-a"}, []string{"tenant"}, "flags-team-a-x#"},
		{"a branch by its name", "branches", api.TypeGitHubBranch, podinfo,
			api.Input{"id": "178979487", "branch": "fix/bdb"}, nil, "branches-fix-bdb-x#"},
		{"a tag by its name", "tags", api.TypeOCIArtifactTag, podinfo,
			api.Input{"id": "93585765", "tag": "v1.0.1"}, nil, "tags-v1.0.1-x#"},
		{"a static provider by its own name", "defaults", api.TypeStatic, podinfo,
			api.Input{"id": "365954019", "a": "b"}, []string{"a"}, "defaults-x#"},
		{"an inline set by the names of its objects", "app1", "", app1,
			api.Input{"tenant": "t1", "region": "eu"}, []string{"tenant"}, "app1-t1"},
		{"two name fields", "app1", "", app1,
			api.Input{"tenant": "t1", "region": "eu"}, []string{"region", "tenant"}, "app1-eu-t1-x#"},
		{"an inline set by its content", "app1", "", app1, api.Input{"a": "b"}, nil, "app1-x#"},
		{"a provider with the ResourceSet's name", "app1", api.TypeExternalService, app1, api.Input{"id": "7"}, nil, "app1-7-x#"},
		{"an id that looks like a digested name", "p", api.TypeExternalService, app1,
			api.Input{"id": "x0123456789ab"}, nil, "p-x0123456789ab-x#"},
		{"what source-controller ignores", "p", api.TypeExternalService, app1, api.Input{"id": "a.zip"}, nil, "p-a.zip-x#"},
		{"a device of Windows", "con.a", api.TypeExternalService, app1, api.Input{"id": "1"}, nil, "con-a-1-x#"},
		// FR-82
		{"a path", "p", api.TypeExternalService, app1, api.Input{"id": "../../flux-system/x"}, nil, "p-flux-system-x-x#"},
		{"dots", "p", api.TypeExternalService, app1, api.Input{"id": ".."}, nil, "p-x#"},
		{"a hook", "p", api.TypeExternalService, app1, api.Input{"id": ".git/hooks/pre-push"}, nil, "p-git-hooks-pre-push-x#"},
		{"a slash", "p", api.TypeExternalService, app1, api.Input{"id": "a/b"}, nil, "p-a-b-x#"},
		{"an option", "p", api.TypeExternalService, app1, api.Input{"id": "-rf"}, nil, "p-rf-x#"},
		{"a NUL", "p", api.TypeExternalService, app1, api.Input{"id": "a\x00b"}, nil, "p-a-b-x#"},
	}
	digest := regexp.MustCompile(`x[0-9a-f]{12}$`)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := folderOf(tt.rs, tt.provider, tt.providerType, tt.in, tt.nameFields...)
			if strings.HasSuffix(tt.want, "#") {
				got = digest.ReplaceAllString(got, "x#")
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// FR-10: v1.0.1 and v0.2.0 have the same Adler-32. FR-56: names that slugs would fold.
func TestFR10FR56FoldersNeverMeet(t *testing.T) {
	rs := resourceSet("apps", "app")
	long := strings.Repeat("a", 79)
	seen := map[string]string{}
	for _, c := range []struct{ providerType, field, value string }{
		{api.TypeGitHubTag, "tag", "v1.0.1"}, {api.TypeGitHubTag, "tag", "v0.2.0"},
		{api.TypeGitHubBranch, "branch", "feat/a-b"}, {api.TypeGitHubBranch, "branch", "feat/a_b"},
		{api.TypeGitHubBranch, "branch", "Feat/X"}, {api.TypeGitHubBranch, "branch", "feat/x"},
		{api.TypeGitHubBranch, "branch", long + "b"}, {api.TypeGitHubBranch, "branch", long + "c"},
		{api.TypeExternalService, "id", "ID1"}, {api.TypeExternalService, "id", "id1"},
	} {
		folder := folderOf(rs, "p", c.providerType, api.Input{"id": "93585765", c.field: c.value})
		if other, twice := seen[strings.ToLower(folder)]; twice {
			t.Errorf("%q and %q share the folder %s", other, c.value, folder)
		}
		seen[strings.ToLower(folder)] = c.value
	}
	if a, b := folderOf(rs, "a", api.TypeExternalService, api.Input{"id": "b-c"}),
		folderOf(rs, "a-b", api.TypeExternalService, api.Input{"id": "c"}); a == b {
		t.Errorf("two providers share the folder %s", a)
	}
}

func TestFolderKeepsItsNameWhenUnreadFieldsChange(t *testing.T) {
	rs := resourceSet("apps", "app")
	export := Export{Kind: api.KindResourceSet, Name: "app"}
	read := func(in api.Input) api.Input { return api.Input{"a": in["a"]} }
	one := labelOf(export, api.Input{"a": "1", "title": "x"}, nil, read).folder(rs)
	two := labelOf(export, api.Input{"a": "1", "title": "y"}, nil, read).folder(rs)
	three := labelOf(export, api.Input{"a": "2", "title": "y"}, nil, read).folder(rs)
	if one != two || two == three {
		t.Errorf("got %s, %s and %s; want the first two equal, the third another", one, two, three)
	}
}

func TestPermutationFolders(t *testing.T) {
	rs := resourceSet("apps", "app")
	a := setLabel{owner: "a", text: "1", shown: "1"}
	b := setLabel{owner: "b", text: "2", shown: "2"}
	both := permutationFolder(rs, []setLabel{a, b})
	if !strings.HasPrefix(both, "app-1-2-x") {
		t.Errorf("got %s", both)
	}
	swapped := permutationFolder(rs, []setLabel{{owner: "a", text: "2", shown: "2"}, {owner: "b", text: "1", shown: "1"}})
	if both == swapped {
		t.Error("different permutations share a folder")
	}
}

func TestDirectoryNames(t *testing.T) {
	for text, plain := range map[string]bool{
		"tenant1": true, "team-a": true, "1.2": true,
		"shared": false, "inputs.lock": false, "kustomization.yaml": false, "": false, "..": false, "a/b": false,
		"Team": false, "nul": false, "com1.x": false, "x0123456789ab": false, "a-x0123456789ab": false,
		"cloudbuild.yaml": false, "a.tar.gz": false, "a.": false, strings.Repeat("a", 101): false,
	} {
		if got := directoryName(text); (got == text) != plain {
			t.Errorf("directoryName(%q) = %q", text, got)
		}
	}
}

func TestDir(t *testing.T) {
	if got := Dir(resourceSet("podinfo-preview", "podinfo")); got != "podinfo-preview/podinfo" {
		t.Error(got)
	}
	if got := Dir(resourceSet("a", "../../b")); !regexp.MustCompile(`^a/b-x[0-9a-f]{12}$`).MatchString(got) {
		t.Error(got)
	}
}

var safeFolder = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

func checkFolder(t *testing.T, name string) {
	t.Helper()
	if !safeFolder.MatchString(name) || strings.Contains(name, "..") || len(name) > 100 || isReserved(name) || !isFolder(name) {
		t.Errorf("unsafe folder name %q", name)
	}
}

// The law of folder names: safe, and one to one even on a disk that folds case.
func FuzzFolderNames(f *testing.F) {
	f.Add("a", "b-c", false, "a-b", "c", false)
	f.Add("p", "x0123456789ab", false, "p-x0123456789ab", "", true)
	f.Add("p", "Feat/X", true, "p", "feat/x", true)
	f.Add("con.x", "1", false, "con-x", "1", false)
	f.Add("", ".", false, "-", "", false)
	f.Add("p", "a.jpg", false, "p", "A.jpg", false)
	f.Add(strings.Repeat("p", 49)+".", "1-", true, strings.Repeat("p", 86), ".", true)
	f.Add(strings.Repeat("p", 60), strings.Repeat("1", 60), false, strings.Repeat("p", 61), strings.Repeat("1", 59), false)
	rs := resourceSet("ns", "rs")
	f.Fuzz(func(t *testing.T, owner1, text1 string, digest1 bool, owner2, text2 string, digest2 bool) {
		one := setLabel{owner: owner1, text: text1, shown: text1, digest: digest1}
		two := setLabel{owner: owner2, text: text2, shown: text2, digest: digest2}
		inline := setLabel{inline: true, owner: rs.Name, text: text1, shown: text1}
		a, b, c := one.folder(rs), two.folder(rs), inline.folder(rs)
		for _, name := range []string{a, b, c, directoryName(text1), permutationFolder(rs, []setLabel{one, two})} {
			checkFolder(t, name)
		}
		if (owner1 != owner2 || text1 != text2) && a == b {
			t.Errorf("%q/%q and %q/%q share %s", owner1, text1, owner2, text2, a)
		}
		if a == c || b == c && b != "" {
			t.Errorf("an inline set shares %s with a provider's", c)
		}
		if text1 != text2 && directoryName(text1) == directoryName(text2) {
			t.Errorf("%q and %q share the directory %s", text1, text2, directoryName(text1))
		}
	})
}

func TestFileNames(t *testing.T) {
	digest := regexp.MustCompile(`x[0-9a-f]{12}\.yaml$`)
	tests := []struct {
		id   ObjectID
		want string
	}{
		{ObjectID{"helm.toolkit.fluxcd.io", "HelmRelease", "podinfo-preview", "podinfo-12"}, "podinfo-preview_podinfo-12_helm.toolkit.fluxcd.io_HelmRelease.yaml"},
		{ObjectID{"", "Namespace", "", "team-a"}, "_team-a__Namespace.yaml"},
		{ObjectID{rbacGroup, "ClusterRole", "", "system:x"}, "_system__x_rbac.authorization.k8s.io_ClusterRole.yaml"},
		{ObjectID{rbacGroup, "ClusterRole", "", "System:x"}, "_system-x_rbac.authorization.k8s.io_ClusterRole-x#.yaml"},
		{ObjectID{"", "ConfigMap", "a", "b:c"}, "a_b-c__ConfigMap-x#.yaml"},
		{ObjectID{"", "ConfigMap", "../..", "/etc/passwd"}, "_etc-passwd__ConfigMap-x#.yaml"},
		{ObjectID{"", "", "", ""}, "___-x#.yaml"},
	}
	for _, tt := range tests {
		if got := digest.ReplaceAllString(FileName(tt.id), "x#.yaml"); got != tt.want {
			t.Errorf("FileName(%+v) = %s, want %s", tt.id, got, tt.want)
		}
	}
	// FR-82: a name of 253 characters in a namespace of 63.
	long := FileName(ObjectID{"", "ConfigMap", strings.Repeat("n", 63), strings.Repeat("a", 253)})
	if len(long) > 200 || !digest.MatchString(long) {
		t.Errorf("%d bytes: %s", len(long), long)
	}
}

// The law of file names: one component, never ignored, one to one up to the case of kinds.
func FuzzFileNames(f *testing.F) {
	f.Add(rbacGroup, "ClusterRole", "", "system:x", rbacGroup, "ClusterRole", "", "system__x")
	f.Add("", "ConfigMap", "a", "b", "b", "ConfigMap", "a", "")
	f.Add("a", "K", "n", "x-x0123456789ab", "A", "k", "n", "x")
	f.Add("g", "K", strings.Repeat("n", 300), "a", "g", "K", "n", strings.Repeat("a", 300))
	f.Add("", "Secret", "../..", ".git", "", "Secret", "", "\x00")
	f.Fuzz(func(t *testing.T, g1, k1, ns1, n1, g2, k2, ns2, n2 string) {
		one, two := ObjectID{g1, k1, ns1, n1}, ObjectID{g2, k2, ns2, n2}
		a, b := FileName(one), FileName(two)
		for _, name := range []string{a, b, one.digestedFileName()} {
			if !isManifestName(name) || isReserved(strings.ToLower(name)) || strings.ContainsAny(name, "/\\:\x00") {
				t.Errorf("unsafe file name %q", name)
			}
		}
		if one != two && a == b {
			t.Errorf("%+v and %+v share %s", one, two, a)
		}
		folded := ObjectID{g1, strings.ToLower(k1), ns1, n1} == ObjectID{g2, strings.ToLower(k2), ns2, n2}
		if strings.EqualFold(a, b) && !folded {
			t.Errorf("%+v and %+v fold into %s", one, two, a)
		}
		if one != two && (one.digestedFileName() == two.digestedFileName() || one.digestedFileName() == b) {
			t.Errorf("%+v and %+v share %s", one, two, one.digestedFileName())
		}
	})
}
