// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"bytes"
	"errors"
	"math"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"

	"resourceset.example/renderer/pkg/api"
)

const someBlob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"

func exampleLock() *Lock {
	return &Lock{
		ResourceSet:   "podinfo-preview/podinfo",
		Kustomization: someBlob,
		Shared: map[string]SharedFile{
			"_podinfo-preview__Namespace.yaml":         {Blob: someBlob, All: true},
			"podinfo-preview_team-a__ConfigMap.yaml":   {Blob: someBlob, Sets: []string{"prs-9", "prs-12"}},
			"podinfo-preview_no-inputs__Whatever.yaml": {Blob: someBlob},
		},
		Sets: []LockedSet{
			{Name: "prs-12", ID: "12", Provider: "prs", Inputs: api.Input{
				"id": "12", "sha": "8492c0b", "labels": []any{"a", "b: c", []any{int64(1), []any{}}, map[string]any{"x": nil}},
				"nested": map[string]any{"yes": true, "f": 1.5, "g": 1e30, "empty": map[string]any{}},
				"text":   "line\nbreak \u00e4 \u2028 \"quoted\" \\ \x01 # no comment", "<<": "merge?", "": "", "12": int64(-3),
			}, Files: map[string]string{"podinfo-preview_podinfo-12_helm.toolkit.fluxcd.io_HelmRelease.yaml": someBlob}},
			{Name: "prs-9", ID: "9", Provider: "prs", Kept: true, Sensitive: []string{"token"},
				Inputs: api.Input{"id": "9", "token": "sha256:ab"}, Files: map[string]string{}},
			{Name: "podinfo-x0123456789ab", Inline: true, Files: map[string]string{}},
		},
	}
}

func TestLockRoundTrip(t *testing.T) {
	lock := exampleLock()
	data := lock.Encode()
	back, err := ParseLock(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if diff := cmp.Diff(lock, back); diff != "" {
		t.Errorf("(-written +read):\n%s\n%s", diff, data)
	}
	if !bytes.Equal(data, back.Encode()) {
		t.Error("written again, the bytes differ")
	}
	if crlf, err := ParseLock(bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))); err != nil || !cmp.Equal(lock, crlf) {
		t.Errorf("with CRLF: %v", err)
	}
}

// What we write is YAML to others, and means the same.
func TestLockIsYAML(t *testing.T) {
	data := exampleLock().Encode()
	var theirs map[string]any
	if err := yamlv3.Unmarshal(data, &theirs); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	delete(theirs, "version")
	ours, err := parseYAML(bytes.Replace(data, []byte("version: 1\n"), nil, 1))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plainInts(ours), plainInts(theirs)); diff != "" {
		t.Errorf("(-ours +theirs):\n%s", diff)
	}
}

// plainInts turns all whole numbers into int64.
func plainInts(value any) any {
	switch v := value.(type) {
	case int:
		return int64(v)
	case map[string]any:
		for key := range v {
			v[key] = plainInts(v[key])
		}
	case []any:
		for i := range v {
			v[i] = plainInts(v[i])
		}
	}
	return value
}

// Rule 10: what a newer version wrote is recognised whatever else is in it.
func TestRule10NewerLock(t *testing.T) {
	for _, text := range []string{"version: 3\n", "# a comment\n\nversion: 17\nwhatever: [x\n"} {
		_, err := ParseLock([]byte(text))
		var newer *NewerLockError
		if !errors.As(err, &newer) || newer.Suggestion() == "" {
			t.Errorf("%q: got %v, want a NewerLockError", text, err)
		}
	}
}

func TestDamagedLocks(t *testing.T) {
	good := string(exampleLock().Encode())
	edit := func(old, with string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("nothing to edit: %q", old)
		}
		return strings.Replace(good, old, with, 1)
	}
	tests := map[string]struct{ text, want string }{
		"empty":             {"", "does not begin with a version"},
		"not YAML":          {"<<<<<<< HEAD\n" + good, "does not begin with a version"},
		"a merge conflict":  {edit("sets:", "<<<<<<< HEAD\nsets:"), "inputs.lock:6: neither a key"},
		"another value":     {edit(`"8492c0b"`, `"8492c0c"`), "edited by hand"},
		"a comment":         {edit("sets:", "# mine\nsets:"), "edited by hand"},
		"cut":               {good[:len(good)/2], "inputs.lock"},
		"unknown field":     {good + "unknown: 1\n", `unknown field "unknown"`},
		"repeated key":      {edit("resourceSet:", "kustomization: \"\"\nresourceSet:"), "repeated or not in its sorted place"},
		"wrong type":        {edit(`id: "12"`, "id: 12"), "id is not a text"},
		"a path":            {edit("name: \"prs-12\"", `name: "../x"`), "no folder name"},
		"an absolute path":  {edit("name: \"prs-12\"", `name: "/etc"`), "no folder name"},
		"the shared folder": {edit("name: \"prs-12\"", `name: "shared"`), "no folder name"},
		"a file elsewhere":  {edit("podinfo-preview_podinfo-12_helm.toolkit.fluxcd.io_HelmRelease.yaml", `"../x_y__Z.yaml"`), "no name of a manifest"},
		"kustomization":     {edit("podinfo-preview_podinfo-12_helm.toolkit.fluxcd.io_HelmRelease.yaml", "kustomization.yaml"), "no name of a manifest"},
		"no hash":           {strings.Replace(good, someBlob, "123", 4), "no Git blob"},
		"the same set":      {edit("name: \"prs-9\"", `name: "prs-12"`), "a second set"},
		"plain text":        {edit(`"8492c0b"`, "8492c0b"), "no number"},
		"deep":              {"version: 1\n" + deepYAML(200), "levels deep"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			lock, err := ParseLock([]byte(tt.text))
			var damaged *DamagedLockError
			if !errors.As(err, &damaged) || lock != nil {
				t.Fatalf("got %v, want a DamagedLockError", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want it to mention %q", err, tt.want)
			}
			if damaged.Suggestion() == "" {
				t.Error("no hint")
			}
		})
	}
}

// A checkout on Windows that was committed is no edit, and a lock that is older than
// checksums is read.
func TestLockChecksum(t *testing.T) {
	want := exampleLock()
	text := string(want.Encode())
	line := strings.SplitAfter(text, "\n")[2]
	if !strings.HasPrefix(line, checksumLine) {
		t.Fatalf("third line: %q", line)
	}
	for name, other := range map[string]string{
		"CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "none": strings.Replace(text, line, "", 1),
	} {
		lock, err := ParseLock([]byte(other))
		if err != nil || string(lock.Encode()) != text {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func deepYAML(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat("  ", i) + "a:\n")
	}
	return b.String()
}

func TestExportFromLock(t *testing.T) {
	lock := exampleLock()
	lock.Sets[1].Sensitive = nil
	got, err := lock.Export("prs")
	if err != nil {
		t.Fatal(err)
	}
	if want := []api.Input{lock.Sets[0].Inputs, lock.Sets[1].Inputs}; !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
	if got, err := lock.Export("podinfo"); err != nil || len(got) > 0 {
		t.Errorf("inline sets are no provider's: %v, %v", got, err)
	}
}

func TestExportFromPermutedLock(t *testing.T) {
	set := func(name, dish, wine string) LockedSet {
		return LockedSet{Name: name, Files: map[string]string{}, Inputs: api.Input{
			"menu": map[string]any{"dish": dish}, "wine_bar": map[string]any{"id": "1", "wine": wine}}}
	}
	lock := &Lock{Keys: map[string]string{"wine_bar": "wine-bar"},
		Sets: []LockedSet{set("a", "soup", "red"), set("b", "soup", "white"), set("c", "pie", "red"), set("d", "pie", "white")}}
	got, err := lock.Export("wine-bar")
	want := []api.Input{{"id": "1", "wine": "red"}, {"id": "1", "wine": "white"}}
	if err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v %s", err, cmp.Diff(want, got))
	}
	lock.Sets[2].Sensitive = []string{"menu/dish", "wine_bar/wine"}
	lock.Sets[2].Inputs["wine_bar"] = map[string]any{"id": "1", "wine": "sha256:00"}
	var incomplete *IncompleteError
	if _, err := lock.Export("wine-bar"); !errors.As(err, &incomplete) || !cmp.Equal(incomplete.Fields, []string{"wine"}) {
		t.Errorf("got %v", err)
	}
	if lock.Complete() {
		t.Error("complete although a value is missing")
	}
}

// Rule 8: a digest is not taken for the value that it stands for.
func TestRule08SensitiveFieldsAreNotExported(t *testing.T) {
	_, err := exampleLock().Export("prs")
	var incomplete *IncompleteError
	if !errors.As(err, &incomplete) || incomplete.Set != "prs-9" || !strings.Contains(incomplete.Suggestion(), api.AnnotationSensitive) {
		t.Errorf("got %v", err)
	}
}

func TestBlobHashIsGits(t *testing.T) {
	if got := BlobHash(nil); got != someBlob {
		t.Errorf("empty blob: %s", got)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git to compare with")
	}
	cmd := exec.Command(git, "hash-object", "--stdin")
	cmd.Stdin = strings.NewReader("some\ncontent\n")
	want, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := BlobHash([]byte("some\ncontent\n")); got != strings.TrimSpace(string(want)) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFloats(t *testing.T) {
	for _, f := range []float64{0, 1, -1.5, 1e21, 1e-7, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1)} {
		text := string(appendFloat(nil, f))
		got, err := (&yamlReader{}).readScalar(text)
		if err != nil || got != f {
			t.Errorf("%v as %s: %v, %v", f, text, got, err)
		}
		var theirs any
		if err := yamlv3.Unmarshal([]byte(text), &theirs); err != nil || theirs != f {
			t.Errorf("%v as %s: others read %T %v", f, text, theirs, theirs)
		}
	}
}

// Whatever parses is written back to the same data, and whatever we write, others
// read alike.
func FuzzParseLock(f *testing.F) {
	f.Add(exampleLock().Encode())
	f.Add((&Lock{}).Encode())
	f.Add([]byte("version: 1\nsets:\n  - files: {}\n    inputs:\n      a: 1.0\n      \"b\": .inf\n    name: \"x\"\n"))
	f.Add([]byte("version: 1\nkeys:\n  \"y\": \"\\u00e4\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lock, err := ParseLock(data)
		if err != nil {
			var newer *NewerLockError
			var damaged *DamagedLockError
			if !errors.As(err, &newer) && !errors.As(err, &damaged) {
				t.Errorf("untyped error %v", err)
			}
			return
		}
		for file := range lock.Files() {
			if strings.HasPrefix(file, "/") || strings.Contains(file, "..") && strings.Contains("/"+file+"/", "/../") || strings.Count(file, "/") > 1 {
				t.Errorf("path %q leaves the folder", file)
			}
		}
		written := lock.Encode()
		again, err := ParseLock(written)
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		if !bytes.Equal(written, again.Encode()) {
			t.Errorf("not the same again:\n%s\n%s", written, again.Encode())
		}
		var theirs any
		if err := yamlv3.Unmarshal(written, &theirs); err != nil {
			t.Errorf("no YAML to others: %v\n%s", err, written)
		}
	})
}
