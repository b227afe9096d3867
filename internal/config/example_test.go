// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

const exampleFile = "../../config.example.yaml"

func loadExample(t *testing.T) *Config {
	t.Helper()
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := Load("config.example.yaml", data)
	if err != nil {
		t.Fatalf("the example does not load:\n%v", err)
	}
	return cfg
}

// leaves are the paths of all fields that hold a value themselves.
func leaves(t reflect.Type, path string) []string {
	switch {
	case t == reflect.TypeFor[SecretRef]():
		return []string{path}
	case t.Kind() == reflect.Pointer:
		return leaves(t.Elem(), path)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return leaves(t.Elem(), path+"[0]")
	case t.Kind() != reflect.Struct:
		return []string{path}
	}
	var all []string
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("yaml"); tag != "" {
			all = append(all, leaves(t.Field(i).Type, join(path, tag))...)
		}
	}
	return all
}

func TestExampleCoversEveryField(t *testing.T) {
	cfg := loadExample(t)
	fields := leaves(reflect.TypeFor[Config](), "")
	if len(fields) < 30 {
		t.Fatalf("only %d fields found: wrong type?", len(fields))
	}
	for _, field := range fields {
		if !cfg.isSet(field) {
			t.Errorf("config.example.yaml does not show %s", field)
		}
	}
}

// Where the example says "Default: x", x is what Default gives.
func TestExampleTellsTrueDefaults(t *testing.T) {
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	minimal, _, err := Load("minimal", []byte("source: {url: https://h/r}\ntarget: {path: out}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for claim, actual := range map[string]string{
		"Default: main.": minimal.Source.Branch + ".",
		"Default: 1m.":   strings.TrimSuffix(minimal.Source.Interval.String(), "0s") + ".",
		"Default: push.": minimal.Target.Mode + ".",
		"Default: renderer <renderer@localhost>.": minimal.Target.Commit.Author.Name + " <" + minimal.Target.Commit.Author.Email + ">.",
		"Default: resourceset.":                   minimal.Target.Commit.Per + ".",
		"Default: none.":                          minimal.Target.Commit.SkipCI + ".",
		"Default: hold.":                          minimal.Drift + ".",
		"Default: @every 10m.":                    minimal.Inputs.Schedule + ".",
		"Default: /var/run/renderer/secrets.":     minimal.Secrets.Directory + ".",
		"Default: /var/lib/renderer.":             minimal.State.Directory + ".",
		"default info. format: json or text;":     "default " + minimal.Log.Level + ". format: json or text;",
		"host:port. Default: \":8080\".":          "host:port. Default: \"" + minimal.Server.Listen + "\".",
		"default json.":                           "default " + minimal.Log.Format + ".",
		"# Default: 10m.":                         "# Default: " + strings.TrimSuffix(defaultFluxInterval.String(), "0s") + ".",
		"that. Default: 1h.":                      "that. Default: " + strings.TrimSuffix(defaultHandover.String(), "0m0s") + ".",
	} {
		text := strings.Join(strings.Fields(strings.ReplaceAll(string(data), "\n", " ")), " ")
		if !strings.Contains(text, claim) {
			t.Errorf("the example does not say %q", claim)
		}
		if !strings.HasSuffix(claim, actual) && claim != actual {
			t.Errorf("the example says %q, the default is %q", claim, actual)
		}
	}
}
